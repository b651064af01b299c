"""What OPUS has: the codes that a corpus files a language under, and the files that there are.

opus_codes.tsv lists only what is not the language's iso1 code, in the order in which the files are
read; opus.tsv is generated from OpusTools' database (`ems corpora update`) and holds the pairs with
English of the versions that ems/corpora/catalogue.tsv calls `counted`.

Notable choices:
- the code `-` says that the corpus has nothing of the language, whatever it calls its files: the
  "ku" of TED2020 is another language than ours;
- `paper` marks what EMS evidently used: where the counts of its Table I leave no room for a code,
  it did not, as OpenSubtitles' 8.6M pairs of "no" against the 46k of nb;
- sizes are those of the database, in KB and rounded: enough to plan a download with.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

NOTHING = "-"
FILES = "opus.tsv"


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


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = files("ems.languages").joinpath(name).read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)


@cache
def _codes() -> dict[tuple[str, str], tuple[OpusCode, ...]]:
    found: dict[tuple[str, str], tuple[OpusCode, ...]] = {}
    for row in _rows("opus_codes.tsv"):
        key = (row["corpus"], row["language"])
        found[key] = (*found.get(key, ()), OpusCode(row["code"], row["paper"] == "yes"))
    return found


@cache
def _files() -> dict[tuple[str, str], dict[str, OpusFile]]:
    found: dict[tuple[str, str], dict[str, OpusFile]] = {}
    for row in _rows(FILES):
        own = found.setdefault((row["corpus"], row["version"]), {})
        own[row["file"]] = OpusFile(int(row["pairs"]), int(row["kilobytes"]))
    return found


def opus_codes(corpus: str, language: str, paper: bool = False) -> tuple[str, ...]:
    """The codes of a language (its iso1) in a corpus, in order; with `paper` those that EMS used.

    Empty where the corpus has nothing of it. A language without a line has its iso1 code.
    """
    rows = _codes().get((corpus, language), (OpusCode(language, True),))
    return tuple(row.code for row in rows if row.code != NOTHING and (row.paper or not paper))


def opus_files(corpus: str, version: str) -> dict[str, OpusFile]:
    """The files of a corpus with English by name ("en-zh_cn"); none where they are not known."""
    return _files().get((corpus, version), {})
