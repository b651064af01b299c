"""Rows that pass the filters of the cleaning, as a stage does it."""

from itertools import chain
from pathlib import Path

from ems.config.text import CleanSettings
from ems.text.duplicates import without_duplicates
from ems.text.filters import OFF, CleanReport, in_batches, row_filters
from ems.text.filters import filtered as all_filtered


def reasons(settings, sides=("de", "en")):
    """The filters of some settings, and the reasons that they count under, in their order."""
    filters = row_filters(settings, sides, {}, "folded")
    return list(chain.from_iterable(each.reasons for each in filters))


def passed(rows, report, sides=("de", "en"), known=None, key="folded", settings=None):
    """Yield the rows that stay. `report` counts the others."""
    settings = settings or CleanSettings()
    filters = row_filters(settings, sides, known or {}, key)
    report.expect(chain.from_iterable(each.reasons for each in filters))
    batches = all_filtered(in_batches(rows), filters, report)
    if settings.duplicates not in OFF:
        batches = without_duplicates(batches, report, Path("never used"))
    for batch in batches:
        report.kept += len(batch)
        yield from batch


def filtered(pairs, sides=("de", "en"), known=None, **settings):
    """((first, second) that stay, report) of pairs that may hold None."""
    report = CleanReport(read=len(pairs))
    numbered = [(first, second, at) for at, (first, second) in enumerate(pairs, start=1)]
    rows = passed(numbered, report, sides, known, settings=CleanSettings(**settings))
    kept = [row[:2] for row in rows]
    assert report.read == report.kept + report.removed.total()
    assert report.kept == len(kept)
    return kept, report
