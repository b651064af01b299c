"""Score a system on a benchmark by the module that the benchmark's record names."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from ems.base.errors import EmsError
from ems.bench.scores import Result, write_scores
from ems.bench.task import LineEncoder, Task
from ems.config.experiment import Experiment
from ems.config.plugins import score_module, sets_of


def evaluate(
    encoder: LineEncoder,
    experiment: Experiment,
    names: dict[str, str],
    folder: Path | Mapping[str, Path],
    out: Path,
) -> Result:
    """Score `encoder` on a benchmark; write the score file and return the result.

    `names`: the `system` and the `benchmark`; `folder`: the folder of its evaluation set, or of
    each of its sets by name. Raises `EmsError` for a set without a folder.
    """
    sets = sets_of(names["benchmark"])
    folders = dict.fromkeys(sets[:1], folder) if isinstance(folder, Path) else folder
    if missing := [name for name in sets if name not in folders]:
        raise EmsError(
            f"benchmark {names['benchmark']}: expected the folder of {' and of '.join(missing)}; "
            "name each of its sets, --evalset NAME=FOLDER"
        )
    task = Task(encoder, experiment, names["system"], names["benchmark"], folders, out.parent)
    header = task.header()  # first: it checks that the files are those that were fetched
    result = import_module(score_module(task.benchmark)).score(task)
    write_scores(out, header, result)
    return result
