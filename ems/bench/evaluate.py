"""Score an encoder on a benchmark: as a job of the workflow, or by hand with `ems eval`. By hand,
it is one more system of the experiment, so its score files have the same form as the workflow's.
The system hash in them covers the bytes of the model's files.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.base.files import sha256_file
from ems.base.provenance import digest
from ems.base.templates import aligned
from ems.bench.encoders import CACHE_FOLDER, cached, make_encoder, model_files
from ems.bench.scores import RANGES, Result, write_scores
from ems.bench.task import Task
from ems.config.experiment import Experiment
from ems.config.plugins import benchmarks, score_module, sets_of
from ems.config.systems import SystemSettings
from ems.corpora.evalsets.sets import data_files, default_folder
from ems.model.folder import DESCRIPTION, describe, has_code, kind_of, read_description

SHOWN_FILES = 3  # missing files that an error lists


def evaluate(task: Task, out: Path) -> Result:
    """Write the score file of a task. Raises `EmsError` if `folders` lack one of its sets."""
    if missing := " and ".join(each for each in task.sets if each not in task.folders):
        raise mistake("folders not given", benchmark=task.benchmark, missing=missing)
    task = replace(task, scratch=out.parent)
    header = task.header()  # first: it checks the checksums of the data
    result = import_module(score_module(task.benchmark)).score(task)
    write_scores(out, header, result)
    return result


def evaluate_by_hand(
    experiment: Experiment,
    names: list[str],
    out: Path,
    data: Path,
    model: str | None = None,
    command: str | None = None,
    name: str | None = None,
    folders: Mapping[str, Path] | None = None,
    cache_mb: int = 0,
) -> str:
    """Score a model or command on each of `names`, write `out`/<benchmark>.json, return a summary.
    `folders` maps evaluation sets outside `data` to their folders. Raises `EmsError` for an unknown
    benchmark or missing data before encoding starts.
    """
    system = _system(experiment, model, command)
    content = digest([sha256_file(Path(path)) for path in model_files(system)])
    system = replace(system, content=content)
    place = Path(command.partition(" ")[0]) if model is None else Path(model).resolve()
    name = name or place.name or ("command" if model is None else "model")
    experiment = replace(experiment, systems={**experiment.systems, name: system})
    folder_of = partial(_folder, experiment, folders=folders or {}, data=data)
    data_folders = {}
    for benchmark in names:
        data_folders[benchmark] = {each: folder_of(each) for each in sets_of(benchmark, "--bench")}
    cache = Path("results") / experiment.name / CACHE_FOLDER
    encoder = cached(make_encoder(system), cache, cache_mb)
    rows = [f"benchmark | metric | {name}"]
    for benchmark, of_sets in data_folders.items():
        task = Task(encoder, experiment, name, benchmark, of_sets)
        result = evaluate(task, out / f"{benchmark}.json")
        decimals = 2 if result.metric in RANGES else 1
        for mean in result.means():
            value = f"{mean.value:.{decimals}f}"
            rows.append(f"{benchmark}, {mean.over} | {result.metric} | {value}")
    return aligned("\n".join(rows), "llr")


def _system(experiment: Experiment, model: str | None, command: str | None) -> SystemSettings:
    """Return a `systems` entry for a model or a command. A folder with model.json, or an export of
    ours with code, has the languages it was trained on; sentence-transformers loads all others.
    """
    if (model is None) == (command is None):
        raise EmsError("ems eval: give either --model or --command")
    languages = tuple(experiment.languages)
    if command is not None:
        return SystemSettings("command", languages=languages, place=command)
    folder = Path(model)
    if not (folder / DESCRIPTION).is_file() and not has_code(folder):
        return SystemSettings("sentence-transformers", languages=languages, place=model)
    known = read_description(folder).languages if kind_of(folder) else describe(folder).segmenters
    codes = tuple(code for code in experiment.languages if code in known)
    if len(codes) < 2:
        raise mistake("few languages", model=model, known=sorted(known), experiment=experiment)
    return SystemSettings("folder", languages=codes, place=model)


def _folder(experiment: Experiment, name: str, folders: Mapping[str, Path], data: Path) -> Path:
    """Return the folder of an evaluation set; raise `EmsError` if files are missing."""
    if name not in experiment.evalsets:
        sets = experiment.evalsets.keys()
        known = ", ".join(bench for bench in benchmarks() if sets >= set(sets_of(bench)))
        raise mistake("no such evalset", experiment=experiment, name=name, known=known)
    folder = folders.get(name) or default_folder(experiment, name, data)
    missing = [str(p) for p in data_files(experiment, name, folder) if not p.exists()]
    if not missing:
        return folder
    more = f" and {len(missing) - SHOWN_FILES:,} more" if len(missing) > SHOWN_FILES else ""
    files = f"{name}: {len(missing):,} files are missing: {' '.join(missing[:SHOWN_FILES])}{more}"
    if name in folders or experiment.evalsets[name].path:
        raise EmsError(f"{files}; check the folder")
    raise mistake("sets to fetch", files=files, experiment=experiment)
