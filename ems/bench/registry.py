"""Scores a system on a benchmark: the module that its record names does it, imported then."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from ems.bench.task import LineEncoder, Task
from ems.benchmarks import score_module, sets_of
from ems.config import Experiment
from ems.errors import EmsError
from ems.scores import Result, write_scores


def evaluate(
    encoder: LineEncoder,
    experiment: Experiment,
    names: dict[str, str],
    folder: Path | Mapping[str, Path],
    out: Path,
) -> Result:
    """Score `encoder` on a benchmark; write the score file and return what was measured.

    `names`: the `system` and the `benchmark`; `folder`: where its evaluation set lies, or each of
    its sets by name. Raises `EmsError` for a set without a folder.
    """
    folders = _folders(names["benchmark"], folder)
    task = Task(encoder, experiment, names["system"], names["benchmark"], folders, out.parent)
    header = task.header()  # first: it is checked that the files are those that were fetched
    result = import_module(score_module(task.benchmark)).score(task)
    write_scores(out, header, result)
    return result


def _folders(benchmark: str, folder: Path | Mapping[str, Path]) -> Mapping[str, Path]:
    sets = sets_of(benchmark)
    folders = dict.fromkeys(sets[:1], folder) if isinstance(folder, Path) else folder
    missing = [name for name in sets if name not in folders]
    if missing:
        raise EmsError(
            f"benchmark {benchmark}: expected the folder of {' and of '.join(missing)}; name "
            "each of its sets, --evalset NAME=FOLDER"
        )
    return folders
