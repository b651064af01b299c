"""The user's own files in the cleaning stage: what they were, that they stayed so, their bad rows.

They are read where they lie, so they may change or vanish while a job reads them, which is an error
and never half a corpus.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.content import check_lock
from ems.corpora.own import BAD, Bad
from ems.text.filters import Report
from ems.text.tsv import Pair


@contextmanager
def unchanged(paths: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Give the SHA-256 of each file by its path. Raises `EmsError` for one that is not as a lock
    beside it says, or that another program changes or removes inside of the context.
    """
    before = _state(paths)
    yield {str(path): check_lock(path) for path in paths}
    if _state(paths) != before:
        names = ", ".join(map(str, paths))
        raise EmsError(f"{names}: changed while it was read; run again when it is whole")


def _state(paths: Sequence[Path]) -> list[tuple[int, int]]:
    """Return size and time of each file. Raises `EmsError` for one that is gone."""
    try:
        return [(stat.st_size, stat.st_mtime_ns) for stat in (path.stat() for path in paths)]
    except OSError as error:
        raise EmsError(
            f"{error.filename}: {error.strerror}; a file of the corpus is gone: put it back and "
            "run again"
        ) from None


def without_bad(rows: Iterable[Pair], report: Report) -> Iterator[Pair]:
    """Yield the rows that are pairs; count the others."""
    for row in rows:
        if isinstance(bad := row[0], Bad):
            report.remove(bad.reason, 1, [(row[-1], bad.text)])
        else:
            yield row


def check_form(path: Path, report: Report) -> None:
    """Raise `EmsError` if more than half of the rows are no pairs: the form is another one."""
    counts = {reason: report.removed[reason] for reason in BAD if report.removed[reason]}
    read = report.read - report.removed["cap"]
    if 2 * sum(counts.values()) <= read:
        return
    worst = max(counts, key=lambda reason: counts[reason])
    line, text = report.examples[worst][0]
    why = ", ".join(f"{count:,} {BAD[reason]}" for reason, count in counts.items())
    raise EmsError(
        f"{path}: {sum(counts.values()):,} of {read:,} rows are no pairs ({why}), like line "
        f"{line:,}: {text!r}; expected two texts in UTF-8 in each, in the form that its name says"
    )
