"""What config.yaml may say: which experiment, and the settings of this site."""

from functools import cache

from pydantic import Field, create_model

from ems.base.schema import Name, Place, Settings, text, with_fields
from ems.config.corpus_entries import DownloadSettings
from ems.config.file import Sources
from ems.config.plugins import benchmarks

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

    opus: Place = Field(
        OPUS,
        description="An OPUS host, a directory in OPUS layout, or opustools (through the package "
        "of that name).",
    )
    wikimatrix: Place = Field(
        WIKIMATRIX,
        description="Where LASER's mined files lie, WikiMatrix/v1/WikiMatrix.de-en.tsv.gz: a URL "
        "or a directory.",
    )
    wikipedia: Place = Field(
        DUMPS,
        description="Where Wikipedia's dumps lie, as dumps.wikimedia.org has them: a URL or a "
        "directory.",
    )


class Site(Settings):
    """The settings of this site: where data lie and what the machine offers."""

    experiment: Name = Field(description="The name of a file in configs/, without .yaml.")
    data: Folder = Field(description="The folder of the downloads, shared by all experiments.")
    sources: SiteSources = Field(
        description="Where data come from, for the experiments that do not say it themselves."
    )
    downloads: DownloadSettings = Field(default_factory=DownloadSettings)
    afresh: bool = Field(
        False,
        description="Deletes the checkpoints of an unfinished training of other settings, where a "
        "training otherwise stops and lists what differs. For one run: "
        "`snakemake --config afresh=true -- all`.",
    )
    embeddings_mb: int = Field(  # at most a petabyte
        4000,
        ge=0,
        le=1_000_000_000,
        description="The most MB of embeddings that benchmarks keep in "
        "results/<experiment>/embeddings for other benchmarks of the same sentences; 0: none. "
        "Delete the folder to clear it.",
    )
    gpus: int = Field(  # one machine has at most 16
        1,
        ge=0,
        le=32,
        description="The GPUs of a training on each of its `nodes`, and so the processes that "
        "share each of its steps; a training job asks a cluster for as many. train.batch_pairs "
        "must be a multiple of their number. It changes the model only by rounding and by the "
        "masks of dropout.",
    )
    nodes: int = Field(
        1,
        ge=1,
        le=1024,
        description="The machines of a cluster that share a training, each with `gpus` GPUs (or "
        "with one process, if that is 0). More than one needs `--profile slurm`.",
    )


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
