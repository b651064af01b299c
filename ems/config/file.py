"""The keys of config.yaml and of the files in configs/, including keys that a benchmark adds."""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, WrapValidator, create_model

from ems.base import schema
from ems.base.records import whole
from ems.base.schema import Name, Settings, SourceName, by_type, listing, with_fields
from ems.config import text as text_settings
from ems.config.benchmarks import DocumentSettings, EvalsetEntry
from ems.config.corpus_entries import CorpusEntry, DownloadSettings, MultiwaySettings, Split
from ems.config.model import EncoderSettings, ExportSettings, NgramSettings
from ems.config.objectives import Objectives, objectives_model
from ems.config.plugins import benchmarks, segmenters, sets
from ems.config.tables import TablesSettings
from ems.config.text import CleanSettings, DecontaminateSettings, VocabularySettings
from ems.config.train import TrainOverrides

AFRESH = "EMS_AFRESH"  # environment variable that `--config afresh=true` sets for jobs
Folder = schema.text(
    r"^[^\x00-\x1f\x7f-\x9f{}-][^\x00-\x1f\x7f-\x9f{}]*$",
    "expected a folder without control characters, `{` and `}`, not starting with `-`",
)
_GENERATED = "`embedded`: data that ems generates itself."
MADE = Annotated[Literal["embedded"], Field(description=_GENERATED)] | None
Corpora = Annotated[list[CorpusEntry], Field(min_length=1)]


class LanguageEntry(Settings):
    """A language that ems/config/languages/languages.tsv does not have."""

    code: schema.OwnCode
    """Code of the language."""
    tatoeba_v1: schema.CodeOrNone = ""
    """Code in LASER's Tatoeba v1; empty: not in it."""
    flores200: schema.CodeOrNone = ""
    """Code in FLORES-200 and SIB-200; empty: not in them."""
    script: str = ""
    """Name of the script."""


class Overrides(Settings):
    """The settings that a system changes."""

    model: EncoderSettings = Field(default_factory=EncoderSettings)
    objectives: Objectives = Field(default_factory=Objectives)
    train: TrainOverrides = Field(default_factory=TrainOverrides)


def _each(overrides: type[Overrides]) -> Any:
    return by_type(listing(str, least=1), Annotated[dict[str, overrides], Field(min_length=1)])


Kind = Literal["encoder", "char-ngram", "fused", "folder", "sentence-transformers", "command"]


class SystemEntry(Overrides):
    """A system: one trained or external encoder, as overrides of the experiment's settings."""

    kind: Kind = "encoder"
    """`encoder`: trained by this experiment. `folder`: a model folder or an exported folder, in
    `model`. `sentence-transformers`: a folder or a name on the Hugging Face hub, in `model`.
    `command`: a program, in `command`. `char-ngram`: character n-grams, set by `ngrams`. `fused`:
    the embedding of the system in `of`, with character n-grams appended."""
    of: Name | None = None
    """Trained system that a `fused` system takes embeddings and languages from."""
    ngrams: NgramSettings = Field(default_factory=NgramSettings)
    """Character n-grams of a `char-ngram` or `fused` system."""
    command: str | None = None
    """Program and arguments of a `command` system, run without a shell. {lines} stands for the file
    to read, {out} for the .npy file to write (float32, one row per line), and the optional
    {language} for the language code."""
    vocabulary: str | None = None
    """Name of one of the `vocabularies` (default: `vocabulary`)."""
    languages: schema.SomeLanguages | None = None
    """Languages to train and score on, in this order (default: the languages of the vocabulary)."""
    each: _each(Overrides) | None = None
    """Names of `vocabularies`, for each of which a system NAME-VOCABULARY is made: a list, or a
    mapping with further overrides, like `{fr: {}, it: {train: {steps: 100}}}`."""
    iterations: whole(ge=1, le=100) | None = None
    """Length of a chain of systems NAME-1, NAME-2, ... Each starts from the one before, the first
    from `train.start_from`. With the objective `coherence`, each learns from the sentences that the
    one before has mined (CCL 2019, section 3.2)."""
    model: schema.text_or(SourceName, EncoderSettings) = Field(default_factory=EncoderSettings)
    """Sizes of the encoder, or the location of an external model."""


class SweepEntry(Settings):
    """A search around one system, one setting at a time (EMS v2 Table II); not a part of `all`."""

    base: str
    """System at the centre of the search."""
    axes: Annotated[dict[str, listing(Any, least=1)], Field(min_length=1)]
    """Values to try for each setting, with the value of the base: `{model.layers: [2, 6, 12]}`."""
    train: TrainOverrides = Field(default_factory=TrainOverrides)
    """Training settings for all points, to shorten their training: `{steps: 20000}`."""


class Sources(Settings):
    """Locations of the data."""

    opus: SourceName | None = None
    """`embedded`, a directory in OPUS layout, or an https host."""
    wikimatrix: SourceName | None = None
    """URL or directory that has WikiMatrix/v1/WikiMatrix.de-en.tsv.gz."""
    documents: SourceName | None = None
    """Source of document corpora: `embedded`, a directory with NAME/VERSION/LANGUAGE.txt or
    .txt.gz, or an https host with the latter."""
    wikipedia: SourceName | None = None
    """Directory or https host with Wikipedia's dumps, like
    enwiki/20260101/enwiki-20260101-pages-articles-multistream.xml.bz2."""


class ExperimentFile(Settings):
    """An experiment. The file is complete: no other experiment's settings apply to it."""

    description: str
    """Purpose of the experiment."""
    seed: schema.Seed
    """Seed of everything random."""
    languages: Annotated[list[by_type(str, LanguageEntry)], Field(min_length=2)]
    """Languages: codes in ems/config/languages/languages.tsv, or languages of your own."""
    sources: Sources
    """Locations of this experiment's data, where they differ from config.yaml."""
    splits: dict[Name, Split]
    """Corpora to divide into parts: by document (then a part can be a benchmark), by the sentence
    in one language, or by position."""
    corpora: Corpora
    """Training corpora."""
    multiway: MultiwaySettings = Field(default_factory=MultiwaySettings)
    validation: by_type(CorpusEntry, Corpora, None)
    """Validation corpora, one or a list; none of them is trained on. Sentence pairs and documents
    give the validation loss; sentence pairs also give P@1, averaged over the corpora, and the known
    translations that mining should find. At most 1,000 pairs of each corpus and language pair
    count."""
    evalsets: dict[str, EvalsetEntry]
    """Evaluation sets: the data of benchmarks, and sets that are only used for decontamination.
    With `languages: all`, a set does not depend on the experiment's languages. In tatoeba,
    languages outside the experiment, from `all` or from a list, are scored as unseen (EMS v2 Table
    VI)."""
    decontaminate: DecontaminateSettings
    clean: CleanSettings = Field(default_factory=CleanSettings)
    segmenters: dict[str, str]
    """Word segmenter of each language: a file of ems/text/segmenters or extensions/segmenters.
    `default` applies to all other languages (default: the paper's segmenters). `moses` is the Perl
    script without -a and without escapes, as in the papers. `moses-fast` gives the same words
    without Perl. Names ending in -aggressive or -escaped have these flags."""
    vocabulary: VocabularySettings
    vocabularies: dict[Name, text_settings.VocabularyOverrides] = Field({})
    """Vocabularies for some of the languages: `vocabulary` plus overrides, like `{fr: {languages:
    [en, fr]}}`."""
    model: EncoderSettings
    objectives: Objectives
    train: TrainOverrides
    systems: Annotated[dict[Name, SystemEntry], Field(min_length=1)]
    """Systems by name; each is one trained or external encoder."""
    sweep: SweepEntry | None = None
    """Search around one system, one setting at a time. `snakemake results/tables/sweep.tex` trains
    its systems and compares their validation losses."""
    benchmarks: list[str]
    """Benchmarks to score; `[]`: none, so that there are models without scores."""
    documents: DocumentSettings = Field(default_factory=DocumentSettings)
    probes: Settings = Field(default_factory=Settings)
    """Classifiers on frozen embeddings, one for each benchmark that needs one."""
    tables: TablesSettings
    export: ExportSettings = Field(default_factory=ExportSettings)


def _in_order(value: Any, check: Any) -> dict[str, EvalsetEntry]:
    """Return the entries of `evalsets` in the order of the file."""
    entries = check(value)
    return {name: getattr(entries, name) for name in value}


@cache
def overrides_model() -> type[Overrides]:
    return with_fields(Overrides, "Overrides", objectives=objectives_model())


@cache
def experiment_model() -> type[ExperimentFile]:
    data = {name: benchmarks()[name] for name in sets()}
    against = listing(Literal[tuple(name for name, record in data.items() if not record.drawn)])
    entries, sources = dict.fromkeys(data, EvalsetEntry | None), dict.fromkeys(data, MADE)
    for name, record in data.items():
        if record.protocol:
            own = with_fields(EvalsetEntry, f"Evalset_{name}", protocol=record.protocol)
            entries[name] = own | None
        if record.source:
            sources[name] = Annotated[SourceName, Field(description=record.source)] | None
    probes = {name: record.probe for name, record in benchmarks().items() if record.probe}
    objectives, each = objectives_model(), _each(overrides_model()) | None
    system = with_fields(SystemEntry, "SystemEntry", objectives=objectives, each=each)
    evalsets = with_fields(Settings, "Evalsets", **entries)
    return with_fields(
        ExperimentFile,
        "Experiment",
        objectives=objectives,
        systems=Annotated[dict[Name, system], Field(min_length=1)],
        sources=with_fields(Sources, "Sources", **sources),
        evalsets=Annotated[evalsets, WrapValidator(_in_order)],
        decontaminate=with_fields(DecontaminateSettings, "Decontaminate", against=against),
        segmenters=dict[str, Literal[segmenters().names()]],
        benchmarks=listing(Literal[tuple(benchmarks())]),
        probes=with_fields(Settings, "Probes", **probes),
    )


# --- config.yaml


class SiteSources(Sources):
    """Locations of the data, for experiments that do not name their own."""

    opus: SourceName = "https://object.pouta.csc.fi"
    """An OPUS host, or a directory in OPUS layout."""
    wikimatrix: SourceName = "https://dl.fbaipublicfiles.com/laser"
    """URL or directory of LASER's mined files, with WikiMatrix/v1/WikiMatrix.de-en.tsv.gz."""
    wikipedia: SourceName = "https://dumps.wikimedia.org"
    """URL or directory of Wikipedia's dumps, in the layout of dumps.wikimedia.org."""


class Site(Settings):
    """Settings of this machine or cluster: experiment to run, location of the data, resources."""

    experiment: Name
    """Name of a file in configs/, without .yaml."""
    data: Folder
    """Folder for downloads, shared by all experiments."""
    sources: SiteSources
    downloads: DownloadSettings = Field(default_factory=DownloadSettings)
    trusted: listing(str) = Field([])
    """Programs that experiments may start: the text of a system's `command`, or the script of a
    filter of `clean.commands`. `ems check` prints the lines for an experiment."""
    afresh: bool = False
    """Deletes the checkpoints of an unfinished training that had other settings; otherwise the
    training stops and lists the differences. For one run: `snakemake --config afresh=true --
    all`."""
    job_mb: whole(ge=0, le=1_000_000) = 50
    """Downloads (MB) that small language pairs of a corpus put together in one job of text or
    shards; a smaller experiment has more jobs, each with a tenth of its downloads; 0: one job
    per language pair. Results have the same bytes."""
    embeddings_mb: whole(ge=0, le=1_000_000_000) = 4000  # at most a petabyte
    """Maximum size in MB of the embeddings in results/<experiment>/embeddings, kept for other
    benchmarks with the same sentences; 0: none are kept. Delete the folder to clear it."""
    gpus: whole(ge=0, le=32) = 1  # one machine has at most 16
    """Number of GPUs of a training on each of its `nodes`, and so of the processes that share each
    step; a training job requests as many from a cluster. train.batch_pairs must be a multiple of
    the total. The model changes only by rounding and dropout masks."""
    nodes: whole(ge=1, le=1024) = 1
    """Number of machines of a cluster that share a training, each with `gpus` GPUs (or with one
    process, if `gpus` is 0). More than one needs `--profile slurm`."""


@cache
def site_model() -> type[Site]:
    places = {
        name: (SourceName | None, Field(record.published or None, description=record.source))
        for name, record in benchmarks().items()
        if record.source
    }
    sources = create_model("Sources", __base__=SiteSources, __doc__=SiteSources.__doc__, **places)
    return with_fields(Site, "Site", sources=sources)
