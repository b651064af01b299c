"""What OPUS has: the codes that a corpus files a language under, and the files that there are.

opus_codes.tsv lists only codes that differ from the language's iso1 code, in the order in which the
files are read; the code `-` says that the corpus has nothing of the language, whatever it calls its
files (the "ku" of TED2020 is another language than ours). Its column `paper` marks what EMS
evidently used: where the counts of its Table I leave no room for a code, it did not, as
OpenSubtitles' 8.6M pairs of "no" against the 46k of nb.

opus.tsv is generated from OpusTools' database (`ems corpora update`) and holds the pairs with
English of the versions that ems/corpora/catalogue.tsv calls `counted`; sizes are KB, rounded.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ems.files import read_table

HERE = Path(__file__).parent
NOTHING = "-"


@dataclass(frozen=True)
class OpusCode:
    """A code of a language in a corpus, and whether the EMS paper used it."""

    code: str
    paper: bool


@dataclass(frozen=True)
class OpusFile:
    """One Moses zip of OPUS: its sentence pairs, and its size in KB."""

    pairs: int
    kilobytes: int


@cache
def _codes() -> dict[tuple[str, str], tuple[OpusCode, ...]]:
    codes: dict[tuple[str, str], tuple[OpusCode, ...]] = {}
    for row in read_table(HERE / "opus_codes.tsv"):
        key = (row["corpus"], row["language"])
        codes[key] = (*codes.get(key, ()), OpusCode(row["code"], row["paper"] == "yes"))
    return codes


@cache
def _files() -> dict[tuple[str, str], dict[str, OpusFile]]:
    releases: dict[tuple[str, str], dict[str, OpusFile]] = {}
    for row in read_table(HERE / "opus.tsv"):
        release = releases.setdefault((row["corpus"], row["version"]), {})
        release[row["file"]] = OpusFile(int(row["pairs"]), int(row["kilobytes"]))
    return releases


def opus_codes(corpus: str, language: str, paper: bool = False) -> tuple[str, ...]:
    """Return the codes of a language (its iso1) in a corpus, in order; only those that EMS used
    with `paper`.

    Empty if the corpus has nothing of it. A language without a line has its iso1 code.
    """
    rows = _codes().get((corpus, language), (OpusCode(language, True),))
    return tuple(row.code for row in rows if row.code != NOTHING and (row.paper or not paper))


def opus_files(corpus: str, version: str) -> dict[str, OpusFile]:
    """Return the files of a corpus with English by name ("en-zh_cn"); none if not known."""
    return _files().get((corpus, version), {})
