"""`ems eval`: any encoder on benchmarks, outside of the workflow.

The score files are those that the workflow writes, so that the tables and `ems compare` read them.

Notable choices:
- what is given is told apart by what is there: a folder with a model.json is ours, anything else is
  for sentence-transformers;
- it stands in the experiment as one more system, so a benchmark sees nothing special; of our models
  it has the languages that they were trained for. Its hash in the score file is of its files' bytes
  too: nothing else would say which model it was;
- nothing is downloaded: what is missing is an error with the command that fetches it.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ems.bench.cache import FOLDER, cached
from ems.bench.encoders import make_encoder, model_files
from ems.bench.registry import evaluate
from ems.benchmarks import benchmarks, sets_of
from ems.config import SHARED, Experiment
from ems.config.provenance import digest
from ems.encode import MODEL
from ems.errors import EmsError
from ems.evalsets.sets import data_files, default_folder
from ems.files import read_json, sha256_file
from ems.scores import RANGES

SHOWN = 3  # files that an error names


@dataclass(frozen=True)
class Given:
    """What `ems eval` was asked: a `model` or a `command`, on which benchmarks.

    `folders`: of the evaluation sets that lie elsewhere than the workflow puts them, below `data`.
    """

    benchmarks: list[str]
    data: Path
    model: str | None = None
    command: str | None = None
    name: str = ""
    folders: dict[str, Path] = field(default_factory=dict)
    cache_mb: int = 0


def evaluate_by_hand(experiment: Experiment, given: Given, out: Path) -> str:
    """Score what is given on each benchmark, to `out`/<benchmark>.json; the summary as text.

    Raises `EmsError` before anything is encoded when a benchmark is unknown or its data are
    missing.
    """
    system = _system(experiment, given)
    system["content"] = digest([sha256_file(Path(path)) for path in model_files(system)])
    name = given.name or _name(given)
    experiment = replace(experiment, systems={**experiment.systems, name: system})
    folders = {benchmark: _folders(experiment, benchmark, given) for benchmark in given.benchmarks}
    encoder = make_encoder(system)
    kept = Path("results") / experiment.name / FOLDER
    encoder = cached(encoder, kept, given.cache_mb)
    rows = []
    for benchmark, own in folders.items():
        names = {"system": name, "benchmark": benchmark}
        result = evaluate(encoder, experiment, names, own, out / f"{benchmark}.json")
        rows += [
            (f"{benchmark}, {languages}" if languages else benchmark, result.metric, mean)
            for languages, mean in result.means()
        ]
    return _summary(name, rows)


def _system(experiment: Experiment, given: Given) -> dict[str, Any]:
    """The entry under `systems` that says what is given."""
    if (given.model is None) == (given.command is None):
        raise EmsError("ems eval: give either --model or --command")
    placed = {"vocabulary": SHARED, "languages": list(experiment.languages)}
    if given.command is not None:
        return {"kind": "command", "command": given.command, **placed}
    description = Path(given.model) / "model.json"
    if not description.is_file():
        return {"kind": "sentence-transformers", "model": given.model, **placed}
    known = read_json(description, MODEL)["segmenters"]
    codes = [code for code in experiment.languages if code in known]
    if "en" not in codes or len(codes) < 2:
        raise EmsError(
            f"{given.model}: it knows {', '.join(sorted(known))}; of the languages of experiment "
            f"{experiment.name} expected en and at least one more: name another --experiment"
        )
    return {"kind": "folder", "model": given.model, "vocabulary": SHARED, "languages": codes}


def _name(given: Given) -> str:
    """The last part of a model's path or name, or the program of a command."""
    if given.model is not None:
        return Path(given.model).resolve().name or "model"
    return Path((given.command or "").partition(" ")[0]).name or "command"


def _folders(experiment: Experiment, benchmark: str, given: Given) -> dict[str, Path]:
    """Evaluation set -> where it lies, of each that a benchmark reads."""
    if benchmark not in benchmarks():
        known = ", ".join(benchmarks())
        raise EmsError(f"--bench: unknown benchmark {benchmark!r}; allowed: {known}")
    return {name: _folder(experiment, name, given) for name in sets_of(benchmark)}


def _folder(experiment: Experiment, name: str, given: Given) -> Path:
    """Where an evaluation set lies, checked to be there."""
    if name not in experiment.evalsets:
        sets = experiment.evalsets.keys()
        known = ", ".join(bench for bench in benchmarks() if sets >= set(sets_of(bench)))
        raise EmsError(
            f"--bench: configs/{experiment.name}.yaml has no evalsets.{name}; add "
            f"`{name}: {{version: v1}}` to it, or name another --experiment. It has: {known}"
        )
    folder = given.folders.get(name) or default_folder(experiment, name, given.data)
    missing = [str(p) for p in data_files(experiment, name, folder) if not p.exists()]
    if missing:
        raise EmsError(_how_to_fetch(experiment, name, missing, name in given.folders))
    return folder


def _how_to_fetch(
    experiment: Experiment, benchmark: str, missing: list[str], elsewhere: bool
) -> str:
    more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
    files = " ".join(missing[:SHOWN])
    told = f"{benchmark}: {len(missing):,} files are not there: {files}{more}"
    if elsewhere or experiment.evalsets[benchmark].path:
        return f"{told}; check the folder"
    return f"{told}; fetch them: `snakemake --config experiment={experiment.name} -- evalsets`"


def _summary(name: str, rows: list[tuple[str, str, float]]) -> str:
    """A row per benchmark, or per group of its languages: its name, its metric, its mean."""
    cells = [("benchmark", "metric", name)]
    cells += [(b, metric, f"{mean:.{2 if metric in RANGES else 1}f}") for b, metric, mean in rows]
    widths = [max(len(row[at]) for row in cells) for at in range(3)]
    return "".join(
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}\n" for row in cells
    )
