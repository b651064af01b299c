"""The benchmarks by name: each is a module with `score(task)`, which returns a `Result`.

Modules are named, not imported: a job runs again when the source of its own benchmark changed, not
that of any other.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from ems.bench.task import LineEncoder, Task
from ems.config import Experiment
from ems.config.benchmarks import sets_of
from ems.errors import EmsError
from ems.scores import Result, write_scores

MODULES = {
    "tatoeba": "ems.bench.search",
    "ntrex": "ems.bench.search",
    "flores200": "ems.bench.flores",
    "xsim": "ems.bench.xsim",
    "xsimpp": "ems.bench.xsim",
    "wordorder": "ems.bench.case_study",
    "bucc2018": "ems.bench.bucc",
    "paracrawl": "ems.bench.xsr",
    "europarlxsr": "ems.bench.xsr",
    "mldoc": "ems.bench.documents",
    "cls": "ems.bench.documents",
    "marc": "ems.bench.documents",
    "rcv2": "ems.bench.documents",
    "sib200": "ems.bench.documents",
    "counterfactual": "ems.bench.documents",
    "xnli": "ems.bench.inference",
    "pawsx": "ems.bench.paraphrases",
}


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
    result = import_module(MODULES[task.benchmark]).score(task)
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
