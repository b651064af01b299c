"""NTREX-128: news in OPUS layout, the same English sentences in every language.

If an experiment also trains on NTREX, the benchmark has the documents of one part (`splits`).
Source: Federmann et al. (2022), https://github.com/MicrosoftTranslator/NTREX.
"""

from itertools import compress
from pathlib import Path

from ems.config.corpus_entries import Split
from ems.config.languages import pair_name
from ems.corpora.moses import count_pairs, read_pairs
from ems.corpora.split import lines_of_part

CORPUS = "NTREX"


def file_names(code: str) -> tuple[str, ...]:
    return (f"moses/{pair_name('en', code)}.txt.zip",)


def read_language(folder: Path, code: str, split: Split | None, part: str) -> list[list[str]]:
    """Return [sentences, English sentences], aligned; with `split`, only the lines of `part`."""
    archive, pair = folder / file_names(code)[0], pair_name("en", code)
    lines = count_pairs(archive, CORPUS, pair)
    wanted = [True] * lines
    if split is not None:
        wanted = lines_of_part(folder / split.documents, split, part, lines, archive)
    pairs = compress(read_pairs(archive, CORPUS, pair), wanted)
    sides = [list(side) for side in zip(*pairs, strict=True)] or [[], []]
    return sides if pair.startswith(f"{code}-") else sides[::-1]


read_sides = read_language
