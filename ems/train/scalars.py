"""TensorBoard's scalars, beside the loss log (`train.tensorboard`; an optional package).

The event file is a view of the loss log: each start of a run writes the log so far anew, so that
nothing is missing or there twice, whenever the run was killed. Nothing reads or hashes it.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError

SUFFIX = ".ems"  # of our event files: others in the folder are not ours to delete
LogRow = dict[str, Any]  # a line of losses.jsonl or times.jsonl
NO_SCALARS = {"part", "step", "pairs"}  # keys of a row
BY_LANGUAGE, BY_CORPUS = "p1_by_language", "p1_by_corpus"
TAGS = {BY_LANGUAGE: "p1", BY_CORPUS: BY_CORPUS}  # of the numbers in a mapping


def rounded(value: Any) -> Any:
    """Round a number, or each value of a mapping, to six significant digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.6g}")


class Scalars:
    """The event file of a run in `folder`; without a folder nothing is written.

    Raises `EmsError` when the package tensorboard is needed and not installed.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.writer: Any = None
        if folder:
            check_tensorboard()

    def write(self, log: list[LogRow]) -> None:
        """Add the last row of the loss log; the first time all rows, in place of older files."""
        if self.folder is None:
            return
        rows = log[-1:] if self.writer else log
        if not self.writer:
            self._open(self.folder)
        for row in rows:
            for tag, value in scalars(row).items():
                self.writer.add_scalar(tag, value, row["step"])
        self.writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if self.writer:
            self.writer.close()

    def _open(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        old = list(folder.glob(f"events.out.tfevents.*{SUFFIX}"))
        # purge_step: a TensorBoard that has the page open drops the values of older files
        self.writer = SummaryWriter(str(folder), purge_step=0, filename_suffix=SUFFIX)
        for path in old:
            path.unlink()


def scalars(row: LogRow) -> dict[str, float]:
    """Return the numbers of a row by tag: "train/xtr", "validation/p1", "p1/de",
    "p1_by_corpus/NTREX".
    """
    values = {f"{row['part']}/{k}": row[k] for k in row if k not in NO_SCALARS | TAGS.keys()}
    for key, tag in TAGS.items():
        values |= {f"{tag}/{name}": value for name, value in row.get(key, {}).items()}
    return values


def check_tensorboard() -> None:
    """Raise `EmsError` when the package is not installed."""
    if find_spec("tensorboard") is None:
        raise EmsError(
            "train.tensorboard: the package tensorboard is not installed; "
            "`pip install -e .[tensorboard]`, or set train.tensorboard: false"
        )
