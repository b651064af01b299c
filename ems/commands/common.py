"""What commands share: types of flags, and the settings that they read."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ems.base.errors import EmsError
from ems.base.outputs import Writes
from ems.commands.flags import Bounds, Mark

if TYPE_CHECKING:
    from ems.config.experiment import Experiment
    from ems.config.file import Site
    from ems.corpora.download import Downloads

log = logging.getLogger("ems")

ExperimentName = Annotated[str, "name of the experiment", Mark.NAME]
OtherExperiment = Annotated[str | None, "experiment (default: that of config.yaml)", Mark.NAME]
Expected = Annotated[str, "hash of the settings that were planned with; stop if it differs now"]
CorpusName = Annotated[str, "name of the corpus", Mark.NAME]
Version = Annotated[str, "release of the corpus", Mark.NAME]
PairName = Annotated[str, "language pair, like de-en", Mark.NAME]
SystemName = Annotated[str, "name of the system", Mark.NAME]
Folders = Annotated[dict[str, Path], "folders of evaluation data"]
VocabularyPath = Annotated[Path, "SentencePiece model"]
ModelFolder = Annotated[Path, "model folder"]
Dimensions = Annotated[
    int, "first numbers of a vector to keep; 0: all", Bounds(0, 65536)
]  # the widest encoder of `ems.config.model`
State = Annotated[Path | None, "folder for what an interrupted run has done", Writes("state")]
Workers = Annotated[int, "number of processes that share a large file", Bounds(1, 256)]
PieceLines = Annotated[int | None, Bounds(1, 1_000_000_000), Mark.HIDDEN]  # for tests

OutFile = Annotated[Path, "file to write", Writes()]
OutFolder = Annotated[Path, "folder to write into", Writes("folder")]


def site_settings(**overrides: str) -> "Site":
    """Return the settings of config.yaml."""
    from ems.config.load import load_site

    return load_site(Path("config.yaml"), overrides)


def experiment_of(name: str | None) -> "Experiment":
    """Return an experiment by name; the one that config.yaml names for None."""
    from ems.config.load import load_experiment

    site = site_settings()
    return load_experiment(name or site.experiment, site)


def planned(name: str, expected: str, stage: str, **wildcards: str) -> "Experiment":
    """Return an experiment. Raises `EmsError` unless the settings of the stage have the expected
    hash ("": any), and for wildcards that the experiment does not have.
    """
    from ems.config.load import load_experiment
    from ems.config.stages import stage_hash

    experiment = load_experiment(name, site_settings(experiment=name))
    known = {
        "system": experiment.systems,
        "benchmark": experiment.benchmarks,
        "vocabulary": experiment.vocabularies,
        "pair": experiment.languages,
    }
    for kind, value in wildcards.items():
        names = known.get(kind, [value])
        if set(value.split("-") if kind == "pair" else [value]) - set(names):
            raise EmsError(
                f"configs/{experiment.name}.yaml: expected a {kind} of {', '.join(names)}, found "
                f"{value!r}; check the command"
            )
    current = stage_hash(experiment, stage, **wildcards)
    log.info("experiment %s, settings of stage %s %s", experiment.name, stage, current)
    if expected and expected != current:
        raise EmsError(
            f"configs/{experiment.name}.yaml: stage {stage} was planned with settings "
            f"{expected}, the file now gives {current}; it was edited since: run again"
        )
    return experiment


def downloads() -> "Downloads":
    """Return how to download, from config.yaml; the defaults where there is none.

    There are no flags for it: Snakemake would fetch everything again when one of them changes.
    """
    from ems.corpora.download import Downloads

    if not (Path("config.yaml").exists() and Path("schemas").exists()):
        return Downloads()
    site = site_settings()
    return Downloads(**dict(site.downloads), slots=Path(site.data) / ".downloads")
