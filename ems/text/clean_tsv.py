"""Clean a TSV of pairs, or a pipe, line by line: `ems clean`, the stage `clean` without a corpus.

A line stays or goes, in order, and columns after the second are kept. Texts are tidy, as in the
stage. Memory is bounded except for repeated pairs, which take 12 to 36 bytes a line.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ruamel.yaml import YAMLError

from ems.base.mistakes import check, mistake
from ems.base.progress import Progress, log
from ems.base.schema import checked
from ems.base.texts import STREAM
from ems.config.load import parse_yaml
from ems.config.text import CleanSettings, check_clean
from ems.corpora.own import BAD, Bad, read_columns
from ems.text.clean import ACROSS, check_form, through_filters
from ems.text.filters import CleanReport, Filter, in_batches, row_filters
from ems.text.tsv import Pair

DEFAULT = "default"


def settings_of(filters: Sequence[str], further: str) -> CleanSettings:
    """Return the settings `clean` of the flags --filters and --settings."""
    words = list(filters) or [DEFAULT]
    chosen = {"filters": words[0] if words in ([DEFAULT], ["none"]) else words}
    try:
        keys = dict(parse_yaml(f"{{{further}}}"))
    except (YAMLError, TypeError, ValueError):
        raise mistake("settings of no form", found=further) from None
    settings = checked(CleanSettings, chosen | keys, "--settings" if further else "--filters")
    check_clean(settings)
    refused = {
        "similarity": settings.similarity,
        "commands": settings.commands,
        "duplicates": settings.duplicates == ACROSS,
    }
    key = next((key for key, found in refused.items() if found), "")
    check({"filter of a pipe": key}, key=key)
    return settings


def clean_tsv(
    path: Path, languages: Sequence[str], settings: CleanSettings
) -> tuple[Iterator[bytes], CleanReport]:
    """Return the lines that stay, in blocks, and the report, which is complete after them. Raises
    `EmsError` at the end if more than half of the lines are no pairs.
    """
    check({"no pair of languages": len({*languages}) != 2}, found=",".join(languages))
    report = CleanReport()
    report.expect(BAD)
    filters = row_filters(settings, languages, None, "")
    return _blocks(path, settings, filters, report), report


def _blocks(
    path: Path, settings: CleanSettings, filters: Sequence[Filter], report: CleanReport
) -> Iterator[bytes]:
    name = Path("standard input") if path == STREAM else path
    progress = Progress(f"clean {name}", None, "pairs")
    batches = progress.over(in_batches(_pairs(path, report)), len)
    for batch in through_filters(batches, filters, settings, report, Path()):
        report.kept += len(batch)
        lines = [f"{first}\t{second}{rest}\n" for first, second, (rest, _) in batch]
        yield "".join(lines).encode()
    counts = (report.read, report.kept, dict(+report.removed))
    log.info("%s: %s read, %s kept, removed %s", name, *counts)
    check_form(name, report)


def _pairs(path: Path, report: CleanReport) -> Iterator[Pair]:
    """Yield pairs, whose place is their further columns and line number; count other lines."""
    for number, (row, rest) in enumerate(read_columns(path), start=1):
        report.read += 1
        if isinstance(row, Bad):
            report.remove(row.reason, 1, [(number, row.text)])
        else:
            yield *row, (rest, number)
