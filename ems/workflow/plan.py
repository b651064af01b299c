"""Check a run as a whole before any job starts: settings, corpora, segmenters, the cluster."""

import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from os.path import exists
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.base.files import read_table
from ems.base.records import Json
from ems.config.experiment import MULTIWAY, Experiment
from ems.config.file import Site
from ems.config.load import load_experiment, load_site
from ems.config.plugins import benchmark
from ems.config.stages import filter_contents, model_files
from ems.config.systems import LOCATED
from ems.config.train import check_tensorboard
from ems.corpora.catalogue import check_corpora
from ems.corpora.own import check_needs, own_files
from ems.tables.registry import outputs_of
from ems.text.segmenters.base import check_available, warn_of_marks
from ems.workflow.sources import Missing, missing_evalsets, missing_sources
from ems.workflow.trust import check_programs

SLURM = {"slurm", "--profile=slurm", "--executor=slurm"}
# characters that a shell expands in the executor's double quotes, or Slurm in a log's name
UNSUBMITTED = set("$`\\\"'%")
OF_RELEASE = ("opus-", "documents-")  # of the names of jobs that fetch the files of a corpus
AHEAD = 300.0  # seconds that clocks of a network may differ
# {}: the folders, the seconds to subtract
BACK = 'find -L {} -newermt now -exec touch -r {{}} -d "-{} seconds" {{}} \\;'


@dataclass(frozen=True)
class Plan:
    """Site, experiment, files missing from local sources, and messages on missing segmenters."""

    site: Site
    experiment: Experiment
    sources: Missing
    missing: tuple[str, ...] = ()


def on_slurm(words: list[str]) -> bool:
    return bool(SLURM & set(words))


def plans_jobs(words: list[str]) -> bool:
    """Return True if Snakemake will run or list (dry run) jobs, unlike with flags of modes.tsv."""
    flags = read_table(Path(__file__).with_name("modes.tsv"))
    return {row["flag"] for row in flags}.isdisjoint(words)


def check_cluster(run: Plan) -> None:
    """Raise `EmsError` if this machine cannot submit jobs, or a path cannot be passed to Slurm.
    Without `sbatch` the executor would run the local jobs and then wait for ever.
    """
    if shutil.which("sbatch") is None:
        raise mistake("no sbatch")
    places = {"the project's folder": str(Path.cwd()), "data": run.site.data}
    places |= {f"evalsets.{name}.path": of.path for name, of in run.experiment.evalsets.items()}
    for name, system in run.experiment.systems.items():
        if LOCATED.get(system.kind) == "model":
            places[f"systems.{name}.model"] = system.place
    for key, place in places.items():
        if set(place) & UNSUBMITTED:
            raise mistake("path for Slurm", key=key, place=place, no=" ".join(sorted(UNSUBMITTED)))
    if shlex.quote(sys.executable) != sys.executable:
        raise mistake("path of Python", python=sys.executable)


def check_times(*folders: str) -> None:
    """Raise `EmsError` for files dated in the future, which Snakemake takes for the newest."""
    latest, newest = 0.0, ""
    for place, _, names in (entry for folder in folders for entry in os.walk(folder)):
        for path in (os.path.join(place, name) for name in names):
            with suppress(OSError):  # another process has just removed it
                latest, newest = max((latest, newest), (os.stat(path).st_mtime, path))
    ahead = latest - time.time()
    if ahead > AHEAD:
        command = BACK.format(shlex.join(folders), math.ceil(ahead))
        raise mistake("files of the future", file=newest, hours=ahead / 3600, command=command)


def check_queue() -> None:
    """Raise `EmsError` if Slurm still has jobs of this folder, or does not answer. The jobs of a
    killed Snakemake continue, and a new one would start them a second time. The comment of such a
    job names its rule; a job in which Snakemake itself runs has none.
    """
    command = ["squeue", "--me", "--noheader", "--format=%A|%k|%Z"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip()
        raise mistake("no squeue", reason=reason) from None
    rows = [line.split("|", 2) for line in listed.splitlines() if line.count("|") >= 2]
    here = {job for job, rule, folder in rows if folder == str(Path.cwd()) and rule[:5] == "rule_"}
    if here:
        raise mistake("jobs of this folder", jobs=" ".join(sorted(here, key=int)))


def plan(
    overrides: Json | None = None, root: Path = Path(), elsewhere: bool = False, jobs: bool = False
) -> Plan:
    """Read and check config.yaml in `root`, with `overrides`, and the experiment that it names.

    Raises `EmsError` for a bad setting, an unknown corpus, a missing evaluation set, or a missing
    program: a segmenter, TensorBoard. With `elsewhere` (no text is segmented here) missing
    segmenters are listed in `missing` instead. Files missing from local sources are listed in
    `sources`, since not every job needs them; with `jobs` (jobs are about to start) an error about
    evaluation sets lists them too.
    """
    site = load_site(root / "config.yaml", overrides)
    experiment = load_experiment(site.experiment, site, root / "configs")
    check_corpora(experiment)
    outputs_of(experiment)  # raises for a study with the name of another table or figure
    _check_text(experiment, elsewhere)
    _check_models(experiment)
    check_programs(experiment, site)
    sources = missing_sources(experiment, Path(site.data))
    if lines := missing_evalsets(experiment):
        raise EmsError("\n".join([*lines, *(sources.lines if jobs else [])]))
    if not elsewhere and any(s.train.tensorboard for s in experiment.systems.values()):
        check_tensorboard()
    warn_of_marks(experiment.segmenters, experiment.languages)
    missing = []
    for name in sorted(set(experiment.segmenters.values())):
        try:
            check_available(name)
        except EmsError as error:
            if not elsewhere:
                raise
            missing.append(str(error))
    return Plan(site, experiment, sources, tuple(missing))


def _check_text(experiment: Experiment, elsewhere: bool) -> None:
    """Raise `EmsError` for files, filters and (not `elsewhere`) packages that cleaning lacks."""
    corpora = [corpus for _, corpus in experiment.all_corpora()]
    for files in [own_files(corpus, pair) for corpus in corpora for pair in corpus.paths]:
        if all(path.exists() for path in files):
            check_needs(files)
    filter_contents(experiment.clean)  # `check_programs` reads them
    if not elsewhere and any(corpus.dumped for corpus in corpora):
        from ems.text import wikipedia

        wikipedia.check_needs()


def _check_models(experiment: Experiment) -> None:
    """Raise `EmsError` for a folder without a model, unless this experiment writes it."""
    for name, system in experiment.systems.items():
        folder = Path(system.place)
        if folder.is_relative_to(Path("results", experiment.name)):
            continue
        if system.kind == "folder":
            model_files(f"systems.{name}", system.place)
        local = folder.is_dir() or system.place.startswith((".", "/", "~"))
        files = [folder / each for each in ("modules.json", "config.json")]
        if system.kind == "sentence-transformers" and local and not any(map(exists, files)):
            raise mistake("no sentence-transformers model", name=name, folder=folder)


def has_job(experiment: Experiment, job: tuple[str, ...]) -> bool:
    """Return True if the experiment can have the job with these costs, like ("train", "ems")."""
    corpora = [corpus for _, corpus in experiment.all_corpora()]
    match job:
        case ("train" | "mine" | "fit", system):
            return system in experiment.systems
        case ("bench", system, name):
            return system in experiment.systems and name in experiment.benchmarks
        case ("data", "fetch", name):
            releases = [f"{corpus.name}-{corpus.version}-" for corpus in corpora]
            sets = experiment.evalsets.items()
            releases += [f"{benchmark(each).corpus}-{evalset.version}-" for each, evalset in sets]
            rests = [name.removeprefix(each) for each in releases if name.startswith(each)]
            return any(each.startswith(OF_RELEASE) or each.endswith("-dump") for each in rests)
        case ("data", "wikipedia", name):
            dumped = [corpus for corpus in corpora if corpus.dumped]
            return name in [f"{each.version}-{file}" for each in dumped for file in each.all_files]
        case ("data", "fetch-evalset", name):
            return name.partition("-")[0] in experiment.evalsets
        case ("text", "sample" | "vocabulary", vocabulary):
            return vocabulary in experiment.vocabularies
        case ("text", "shards", vocabulary, name):
            joined = name == MULTIWAY and bool(experiment.multiway.through)
            known = joined or bool(experiment.part_named(name))
            return known and vocabulary in experiment.vocabularies
        case ("text", "multiway"):
            return bool(experiment.multiway.through)
        case ("text", stage, name):
            return stage == "prepare" and bool(experiment.part_named(name))
    return True
