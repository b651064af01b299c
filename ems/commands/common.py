"""Types of flags and settings that commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ems.base.errors import mistake
from ems.base.outputs import Writes
from ems.base.progress import log
from ems.commands.flags import Bounds, Mark

if TYPE_CHECKING:
    from ems.config.experiment import Experiment
    from ems.config.file import Site
    from ems.corpora.download import Downloads

SHOWN = 20  # names in an error

ExperimentName = Annotated[str, "name of the experiment", Mark.NAME]
OtherExperiment = Annotated[str | None, "experiment (default: that of config.yaml)", Mark.NAME]
Expected = Annotated[str, "hash of the settings of the plan; stop if they have changed"]
CorpusName = Annotated[str, "name of the corpus", Mark.NAME]
Version = Annotated[str, "release of the corpus", Mark.NAME]
SystemName = Annotated[str, "name of the system", Mark.NAME]
Folders = Annotated[dict[str, Path], "folders of evaluation data"]
VocabularyPath = Annotated[Path, "SentencePiece model"]
ModelFolder = Annotated[Path, "model folder"]
PREFIX = "numbers of a vector to keep, from the first (default: all)"
Dimensions = Annotated[int, PREFIX, Bounds(0, 65536)]  # the widest encoder of `ems.config.model`
State = Annotated[Path | None, "folder for the progress of an interrupted run", Writes("state")]
Workers = Annotated[int, "number of processes that share a large file", Bounds(1, 256)]
PieceLines = Annotated[int | None, Bounds(1, 1_000_000_000), Mark.HIDDEN]  # for tests

OutFile = Annotated[Path, "file to write", Writes()]
OutFolder = Annotated[Path, "folder to write into", Writes("folder")]
RECEIPT = "list of all outputs with checksums to write; outputs that are current stay"
Receipt = Annotated[Path | None, RECEIPT, Writes()]
STAGES = {"train": "trained", "mine": "trained", "fit": "fitted"}  # of such systems alone


def site_settings() -> "Site":
    from ems.config.load import load_site

    return load_site(Path("config.yaml"))


def experiment_of(name: str | None) -> "Experiment":
    """Load an experiment, by default the one that config.yaml names."""
    from ems.config.load import load_experiment

    site = site_settings()
    return load_experiment(name or site.experiment, site)


def planned(name: str | None, expected: str, stage: str, **wildcards: str) -> "Experiment":
    """Load an experiment for a stage that was planned with the hash `expected` ("": any). Raises
    `EmsError` for other settings, and for wildcards that the experiment does not have.
    """
    from ems.config.stages import stage_hash

    experiment = experiment_of(name)
    kind = STAGES.get(stage)
    known = {
        "system": [n for n, each in experiment.systems.items() if not kind or getattr(each, kind)],
        "benchmark": experiment.benchmarks,
        "vocabulary": experiment.vocabularies,
    }
    for kind, value in wildcards.items():
        if value not in (names := known.get(kind, [value])):
            words = {"kind": kind, "value": value, "experiment": experiment.name, "stage": stage}
            shown = [*names][:SHOWN] or "none, since it has none of this kind"
            raise mistake("wildcard of no stage", names=shown, **words)
    current = stage_hash(experiment, stage, **wildcards)
    log.info("experiment %s, settings of stage %s %s", experiment.name, stage, current)
    if expected and expected != current:
        words = {"experiment": experiment.name, "stage": stage}
        raise mistake("settings changed", expected=expected, current=current, **words)
    if stage in ("bench", "prepare"):  # the stages that start programs
        from ems.workflow.trust import check_programs

        check_programs(experiment, site_settings())
    return experiment


def downloads() -> "Downloads":
    """Return the settings in config.yaml, or defaults: flags would make Snakemake fetch again."""
    from ems.corpora.download import Downloads

    if not (Path("config.yaml").exists() and Path("schemas").exists()):
        return Downloads()
    site = site_settings()
    return Downloads(**dict(site.downloads), slots=Path(site.data) / ".downloads")


def write_receipt(path: Path | None, made: object) -> None:
    """Write what a job has made: it depends on contents only, so equal results change nothing."""
    from ems.base.files import write_json

    if path:
        write_json(path, made)
