"""The typed view of an experiment: configs/<name>.yaml and the site settings of config.yaml.

An experiment file is complete: nothing of another one can leak in, because each process reads just
this one file, by name (Snakemake's own config holds only `experiment` and the site's settings).
"""

import os
from functools import cache
from pathlib import Path

from pydantic import Field, create_model

from ems.base.errors import EmsError
from ems.base.schema import (
    Json,
    Name,
    Place,
    Settings,
    checked,
    merge,
    plain,
    text,
    whole,
    with_fields,
)
from ems.config.corpus_entries import DownloadSettings
from ems.config.experiment import Experiment
from ems.config.file import Sources, experiment_model
from ems.config.plugins import benchmarks
from ems.config.resolve import build
from ems.config.yaml import load_yaml

RESERVED = {"tables", "figures"}  # folders of results/ that hold the selected experiment's
OPUSTOOLS = "opustools"  # the source that means: through the package of that name


AFRESH = "EMS_AFRESH"  # environment variable that `--config afresh=true` sets for jobs
OPUS = "https://object.pouta.csc.fi"
WIKIMATRIX = "https://dl.fbaipublicfiles.com/laser"
DUMPS = "https://dumps.wikimedia.org"
Folder = text(
    r"^[^\x00-\x1f\x7f-\x9f{}-][^\x00-\x1f\x7f-\x9f{}]*$",
    "expected a folder without control characters, `{` and `}`, not starting with `-`",
)


class SiteSources(Sources):
    """Where data come from, for the experiments that do not say it themselves."""

    opus: Place = OPUS
    """An OPUS host, a directory in OPUS layout, or opustools (through the package of that name)."""
    wikimatrix: Place = WIKIMATRIX
    """Where LASER's mined files lie, WikiMatrix/v1/WikiMatrix.de-en.tsv.gz: a URL or a
    directory."""
    wikipedia: Place = DUMPS
    """Where Wikipedia's dumps lie, as dumps.wikimedia.org has them: a URL or a directory."""


class Site(Settings):
    """The settings of this site: where data lie and what the machine offers."""

    experiment: Name
    """The name of a file in configs/, without .yaml."""
    data: Folder
    """The folder of the downloads, shared by all experiments."""
    sources: SiteSources
    downloads: DownloadSettings = Field(default_factory=DownloadSettings)
    afresh: bool = False
    """Deletes the checkpoints of an unfinished training of other settings, where a training
    otherwise stops and lists what differs. For one run: `snakemake --config afresh=true -- all`."""
    embeddings_mb: whole(ge=0, le=1_000_000_000) = 4000  # at most a petabyte
    """The most MB of embeddings that benchmarks keep in results/<experiment>/embeddings for other
    benchmarks of the same sentences; 0: none. Delete the folder to clear it."""
    gpus: whole(ge=0, le=32) = 1  # one machine has at most 16
    """The GPUs of a training on each of its `nodes`, and so the processes that share each of its
    steps; a training job asks a cluster for as many. train.batch_pairs must be a multiple of their
    number. It changes the model only by rounding and by the masks of dropout."""
    nodes: whole(ge=1, le=1024) = 1
    """The machines of a cluster that share a training, each with `gpus` GPUs (or with one process,
    if that is 0). More than one needs `--profile slurm`."""


@cache
def site_model() -> type[Site]:
    """Return the model of config.yaml, with the sources of the benchmarks."""
    places = {
        name: (Place | None, Field(record.published or None, description=record.source))
        for name, record in benchmarks().items()
        if record.source
    }
    sources = create_model("Sources", __base__=SiteSources, __doc__=SiteSources.__doc__, **places)
    return with_fields(Site, "Site", sources=sources)


def load_site(path: Path, overrides: Json | None = None) -> Site:
    """config.yaml with `overrides` (from `--config`) and the defaults filled in."""
    value = merge(load_yaml(path), _with_booleans(overrides or {}))
    site = checked(site_model(), value, path)
    _check_folder(f"{path}: data", path.parent / site.data)
    return site


def _check_folder(key: str, folder: Path) -> None:
    try:
        os.scandir(folder).close()
    except OSError as error:
        if not isinstance(error, FileNotFoundError) or folder.is_symlink():
            raise EmsError(
                f"{key}: found {str(folder)!r}, expected a folder or a name that is free "
                f"({error.strerror})"
            ) from None


def _with_booleans(overrides: Json) -> Json:
    words = {"true": True, "false": False}
    return {
        key: words.get(value, value) if isinstance(value, str) else value
        for key, value in overrides.items()
    }


def load_experiment(name: str, site: Site, configs: Path = Path("configs")) -> Experiment:
    """Read and check configs/`name`.yaml. Raises `EmsError`, one line that names the key."""
    path = configs / f"{name}.yaml"
    if name in RESERVED:
        raise EmsError(f"experiment: {name} is a folder of results/; give {path} another name")
    if not path.is_file():
        known = ", ".join(sorted(item.stem for item in configs.glob("*.yaml"))) or "none"
        raise EmsError(f"experiment: {path} does not exist; the experiments here: {known}")
    value = load_yaml(path)
    file = checked(experiment_model(), value, path)
    try:
        return build(name, file, plain(site.sources), value["systems"])
    except EmsError as error:
        raise EmsError(f"{path}: {error}") from None
