"""Clean a TSV of pairs, or a pipe, line by line: `ems clean`, with the filters of the stage.

A line stays or goes, in order, and columns after the second are kept. Memory is bounded, except for
12 to 36 bytes per line to find repeated pairs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ems.base.progress import Progress
from ems.base.texts import STREAM
from ems.config.text import CleanSettings
from ems.corpora.own import BAD, Bad, read_columns
from ems.text.clean import check_form, through_filters
from ems.text.filters import CleanReport, in_batches, row_filters
from ems.text.tsv import Pair


def clean_tsv(
    path: Path, languages: Sequence[str], settings: CleanSettings, report: CleanReport
) -> Iterator[bytes]:
    """Yield the lines that stay, in blocks, and fill the report. Raises `EmsError` at the end if
    more than half of the lines are no pairs.
    """
    name = Path("standard input") if path == STREAM else path
    report.expect(BAD)
    filters = row_filters(settings, languages, None, "")
    batches = Progress(f"clean {name}", None, "pairs").over(in_batches(_pairs(path, report)), len)
    for batch in through_filters(batches, filters, settings, report):
        report.kept += len(batch)
        yield "".join([f"{one}\t{other}{rest}\n" for one, other, (rest, _) in batch]).encode()
    check_form(name, report)


def _pairs(path: Path, report: CleanReport) -> Iterator[Pair]:
    """Yield pairs, each with (further columns, line number); count the other lines."""
    for number, (row, rest) in enumerate(read_columns(path), start=1):
        report.read += 1
        if isinstance(row, Bad):
            report.remove(row.reason, 1, [(number, row.text)])
        else:
            yield *row, (rest, number)
