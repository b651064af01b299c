"""The loss log as numbers, and as TensorBoard's scalars beside it (`train.tensorboard`).

Notable choices:
- the event file is a view of the loss log: a run that starts, resumed or not, writes the log so far
  anew, so nothing is there twice or missing, whenever it was killed or the setting was turned on;
- it is never read, hashed or compared: it holds times, and the model does not depend on it;
- the package tensorboard is an extra: without the setting nothing asks for it.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ems.errors import EmsError

SUFFIX = ".ems"  # of our event files: others in the folder are not ours to delete
EVENTS = f"events.out.tfevents.*{SUFFIX}"
PLACE = {"part", "step", "pairs"}  # what a row has besides scalars
BY_LANGUAGE = "p1_by_language"


def rounded(value: Any) -> Any:
    """A number, or each value of a mapping, with six significant digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.6g}")


class Scalars:
    """The event file of a run in `folder`, to be closed; without one nothing is written.

    Raises `EmsError` when there is a folder and the package tensorboard is not installed.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.writer: Any = None
        if folder:
            check_tensorboard()

    def write(self, log: list[dict[str, Any]]) -> None:
        """Add the last row of the loss log; the first time all its rows, in place of older files.

        Tags are "train/xtr", "validation/p1", "p1/de"; the step is that of the row.
        """
        if self.folder is None:
            return
        rows = log[-1:] if self.writer else log
        if not self.writer:
            self._open()
        for row in rows:
            for tag, value in scalars(row).items():
                self.writer.add_scalar(tag, value, row["step"])
        self.writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if self.writer:
            self.writer.close()

    def _open(self) -> None:
        from torch.utils.tensorboard import SummaryWriter

        old = list(self.folder.glob(EVENTS))
        # purge_step: a TensorBoard that has the page open drops what it had read of older files
        self.writer = SummaryWriter(str(self.folder), purge_step=0, filename_suffix=SUFFIX)
        for path in old:
            path.unlink()


def scalars(row: dict[str, Any]) -> dict[str, float]:
    """A row of the loss log by the tags of TensorBoard."""
    values = {
        f"{row['part']}/{name}": value
        for name, value in row.items()
        if name not in PLACE | {BY_LANGUAGE}
    }
    return values | {f"p1/{code}": value for code, value in row.get(BY_LANGUAGE, {}).items()}


def check_tensorboard() -> None:
    """Raise `EmsError` when the package is not here."""
    if find_spec("tensorboard") is None:
        raise EmsError(
            "train.tensorboard: the package tensorboard is not installed; "
            "`pip install -e .[tensorboard]`, or set train.tensorboard: false"
        )
