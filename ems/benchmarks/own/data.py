"""A pair per line of `pairs.tsv`: two language codes, then a sentence of each, between tabs.

`ems init --files` holds pairs out of your text once (`ems.workflow.own_pairs`). The file stays as
it is when the text grows, so that scores remain comparable.
"""

from collections.abc import Collection
from pathlib import Path

from ems.corpora.evalsets.formats import check_count, rows

LanguagePair = tuple[str, str]

file_names = ("pairs.tsv",)


def read_pairs(folder: Path, codes: Collection[str]) -> dict[LanguagePair, list[list[str]]]:
    """Map each language pair of these codes to its two sides, aligned."""
    path = folder / file_names[0]
    sides: dict[LanguagePair, list[list[str]]] = {}
    for _, (first, second, *texts) in rows(path, 4):
        if first in codes and second in codes:
            for side, text in zip(sides.setdefault((first, second), [[], []]), texts, strict=True):
                side.append(text)
    check_count(len(sides), path, f"pairs of {' and '.join(codes)}")
    return sides


def read_language(folder: Path, code: str) -> list[list[str]]:
    """Return [sentences, English sentences] of the pairs with English, for the report."""
    pairs = read_pairs(folder, (code, "en"))
    return next(sides if pair[0] == code else sides[::-1] for pair, sides in pairs.items())


def read_sides(folder: Path, code: str) -> list[list[str]]:
    pairs = [row for _, row in rows(folder / file_names[0], 4)]
    return [[row[side + 2] for row in pairs if row[side] == code] for side in (0, 1)]
