"""P@1 with English per language, its mean, and the mean of all directions. No paper scores it."""

from collections.abc import Sequence

from ems.bench.scores import ENGLISH
from ems.config.languages import UNSEEN
from ems.tables.declarations import noted_table
from ems.tables.engine import Column, average, own_codes
from ems.tables.scores import Scores


def _columns(systems: Sequence[Scores]) -> list[Column]:
    languages = {n: code for s in systems for n, code in s.file.languages.items() if n != ENGLISH}
    codes = own_codes(languages)
    pairs = {name: [f"{name}-{ENGLISH}", f"{ENGLISH}-{name}"] for name in sorted(languages)}
    trained = [each for name in pairs if languages[name] != UNSEEN for each in pairs[name]]
    return [
        *(Column(codes[name], members) for name, members in pairs.items()),
        average(trained),
        Column("With unseen", [each for members in pairs.values() for each in members]),
        Column("All directions", list(dict.fromkeys(n for s in systems for n in s.values))),
    ]


TABLES = {"wmt24pp": noted_table("wmt24pp", "P@1", _columns, label=lambda file, row: row.direction)}
