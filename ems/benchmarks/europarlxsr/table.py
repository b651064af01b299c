"""P@1 per direction: Lightweight Table 4, and the additional rows of its Table 10."""

from functools import partial

from ems.tables.declarations import noted_table
from ems.tables.engine import one_each
from ems.tables.printed import arrow, in_given_order, load_accuracies

_models = partial(load_accuracies, "lightweight-table04-xsr", arrow)
LANGUAGES = ("fr", "de", "es", "it")  # in the paper's order


def _both_ways(labels: set[str]) -> list[str]:
    """Return both directions of the paper's languages, then of the others."""
    names = {label.removeprefix("en->").removesuffix("->en") for label in labels}
    languages = in_given_order(names, LANGUAGES)
    ways = [way for code in languages for way in (f"en->{code}", f"{code}->en")]
    return [way for way in ways if way in labels]


TABLES = {
    "europarlxsr": noted_table(
        "europarlxsr",
        "P@1",
        lambda systems: one_each(systems, _both_ways, _models()),
        _models,
        label=lambda file, row: f"{row.source}->{row.target}",
    )
}
