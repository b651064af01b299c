"""What config.yaml and the files in configs/ may say, with what each benchmark adds."""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, WrapValidator, create_model
from pydantic_core import PydanticCustomError

from ems.base.schema import (
    CodeOrNone,
    Name,
    OwnCode,
    Seed,
    Settings,
    SomeLanguages,
    SourceName,
    by_type,
    listing,
    text,
    text_or,
    whole,
    with_fields,
)
from ems.config.benchmarks import DocumentSettings, EvalsetEntry
from ems.config.corpus_entries import CorpusEntry, DownloadSettings, MultiwaySettings, Split
from ems.config.model import EncoderSettings, ExportSettings, NgramSettings
from ems.config.objectives import Objectives, objectives_model
from ems.config.plugins import benchmarks, segmenters, sets
from ems.config.tables import TablesSettings
from ems.config.text import (
    CleanSettings,
    DecontaminateSettings,
    VocabularyOverrides,
    VocabularySettings,
)
from ems.config.train import TrainOverrides

OPUSTOOLS = "opustools"  # the source that means: through the package of that name
AFRESH = "EMS_AFRESH"  # environment variable that `--config afresh=true` sets for jobs
Folder = text(
    r"^[^\x00-\x1f\x7f-\x9f{}-][^\x00-\x1f\x7f-\x9f{}]*$",
    "expected a folder without control characters, `{` and `}`, not starting with `-`",
)
_GENERATED = "embedded: the files that ems generates itself."
MADE = Annotated[Literal["embedded"], Field(description=_GENERATED)] | None
Corpora = Annotated[list[CorpusEntry], Field(min_length=1)]


class LanguageEntry(Settings):
    """A language that ems/config/languages/languages.tsv does not have."""

    code: OwnCode
    """Its code."""
    tatoeba_v1: CodeOrNone = ""
    """Its code in LASER's Tatoeba v1."""
    flores200: CodeOrNone = ""
    """Its code in FLORES-200 and SIB-200."""
    script: str = ""
    """The name of its script."""


class Overrides(Settings):
    """What a system changes of the base."""

    model: EncoderSettings = Field(default_factory=EncoderSettings)
    objectives: Objectives = Field(default_factory=Objectives)
    train: TrainOverrides = Field(default_factory=TrainOverrides)


def _each(overrides: type[Overrides]) -> Any:
    return by_type(listing(str, least=1), Annotated[dict[str, overrides], Field(min_length=1)])


Kind = Literal["encoder", "char-ngram", "fused", "folder", "sentence-transformers", "command"]


class SystemEntry(Overrides):
    """One trained model or one baseline: the base plus overrides."""

    kind: Kind = "encoder"
    """encoder is trained here; the others are not: folder (`model`: a model folder of ours, or an
    exported one), sentence-transformers (`model`: a folder, or a name of the Hugging Face hub),
    command (`command`), char-ngram (n-grams of letters, `ngrams`), fused (the embedding of a system
    that is trained here, `of`, and n-grams beside it)."""
    of: Name | None = None
    """Of kind fused: the system that is trained here, whose languages it has."""
    ngrams: NgramSettings = Field(default_factory=NgramSettings)
    """Of kinds char-ngram and fused: the n-grams of letters."""
    command: str | None = None
    """A program and its arguments, {lines} among them (the file that it reads), {out} (the .npy
    that it writes: float32, a row a line) and {language} if it needs it; no shell runs it."""
    vocabulary: str | None = None
    """One of `vocabularies` (default: `vocabulary`)."""
    languages: SomeLanguages | None = None
    """The languages of its vocabulary that it is trained and scored on, in its order (default:
    all)."""
    each: _each(Overrides) | None = None
    """Makes one system, NAME-VOCABULARY, for each of these `vocabularies`: a list, or a mapping
    with more overrides, like `{fr: {}, it: {train: {steps: 100}}}`."""
    iterations: whole(ge=1, le=100) | None = None
    """Makes a chain of as many systems, NAME-1, NAME-2, ..., each of which starts from the one
    before, the first from `train.start_from`. With the objective `coherence` each learns from what
    the one before has mined (CCL 2019, section 3.2)."""
    model: text_or(SourceName, EncoderSettings) = Field(default_factory=EncoderSettings)
    """The sizes, or where to find a model that is not trained here."""


class SweepEntry(Settings):
    """A search around a system, one setting at a time (EMS v2 Table II); not a part of `all`."""

    base: str
    """The system around which one setting at a time is changed."""
    axes: Annotated[dict[str, listing(Any, least=1)], Field(min_length=1)]
    """Maps a setting to its values, that of the base among them: `{model.layers: [2, 4, 6,
    12]}`."""
    train: TrainOverrides = Field(default_factory=TrainOverrides)
    """Laid over the base for all points, to make them shorter: `{steps: 20000}`."""


class Sources(Settings):
    """Where data come from."""

    opus: SourceName | None = None
    """'embedded', a directory in OPUS layout, or an https host."""
    wikimatrix: SourceName | None = None
    """A directory or a URL with WikiMatrix/v1/WikiMatrix.de-en.tsv.gz."""
    documents: SourceName | None = None
    """Corpora of documents: 'embedded', a directory with NAME/VERSION/LANGUAGE.txt or .txt.gz, or
    an https host with the latter."""
    wikipedia: SourceName | None = None
    """Wikipedia's dumps, enwiki/20260101/enwiki-20260101-pages-articles-multistream.xml.bz2: a
    directory or an https host."""


class ExperimentFile(Settings):
    """An experiment. It is complete: nothing of another one leaks into it."""

    description: str
    """What the experiment is for."""
    seed: Seed
    """The seed of all that is random."""
    languages: Annotated[list[by_type(str, LanguageEntry)], Field(min_length=2)]
    """Codes of ems/config/languages/languages.tsv, or languages of your own."""
    sources: Sources
    """Where this experiment's data lie, if not where config.yaml says."""
    splits: dict[Name, Split]
    """Corpora that are divided: by document (then a part can be a benchmark), by the sentence of a
    language, or by position."""
    corpora: Corpora
    """The corpora to train on."""
    multiway: MultiwaySettings = Field(default_factory=MultiwaySettings)
    validation: by_type(CorpusEntry, Corpora, None)
    """Pairs or documents for the validation loss, pairs for P@1 and as translations that mining is
    to find, or a list of such corpora; none of them is trained on. P@1 is the mean of the corpora.
    Of each corpus and language pair 1,000 pairs count at most."""
    evalsets: dict[str, EvalsetEntry]
    """Benchmarks, and sets that only decontamination looks at. `languages: all` makes the set the
    same whatever the experiment trains on; of tatoeba the other languages are then scored as unseen
    (EMS v2 Table VI), as are those that a list of tatoeba's names beside the experiment's."""
    decontaminate: DecontaminateSettings
    clean: CleanSettings = Field(default_factory=CleanSettings)
    segmenters: dict[str, str]
    """The word segmenter of each language, a file of ems/text/segmenters or extensions/segmenters;
    `default` is for those not named (default: the paper's). moses is the Perl script without -a and
    without escapes (the papers), and moses-fast has its words without Perl; the other three have
    those flags."""
    vocabulary: VocabularySettings
    vocabularies: dict[Name, VocabularyOverrides] = Field({})
    """Vocabularies for some of the languages: `vocabulary` plus overrides, like `{fr: {languages:
    [en, fr]}}`."""
    model: EncoderSettings
    objectives: Objectives
    train: TrainOverrides
    systems: Annotated[dict[Name, SystemEntry], Field(min_length=1)]
    """The systems: one trained model or one baseline each."""
    sweep: SweepEntry | None = None
    """A search around a system. `snakemake results/tables/sweep.tex` trains it and compares the
    validation losses."""
    benchmarks: list[str]
    """The benchmarks to score."""
    documents: DocumentSettings = Field(default_factory=DocumentSettings)
    probes: Settings = Field(default_factory=Settings)
    """The classifiers on frozen embeddings, of each benchmark that has them."""
    tables: TablesSettings
    export: ExportSettings = Field(default_factory=ExportSettings)


def _in_order(value: Any, check: Any) -> dict[str, EvalsetEntry]:
    """Return the entries of `evalsets` in the order of the file; there must be one."""
    entries = check(value)
    if not value:
        raise PydanticCustomError("shape", "should be non-empty")
    return {name: getattr(entries, name) for name in value}


@cache
def overrides_model() -> type[Overrides]:
    """Return the model of what a system changes, with the objectives of the project."""
    return with_fields(Overrides, "Overrides", objectives=objectives_model())


@cache
def experiment_model() -> type[ExperimentFile]:
    """Return the model of a file in configs/, with what each benchmark adds."""
    data = {name: benchmarks()[name] for name in sets()}
    held_out = tuple(name for name, record in data.items() if not record.drawn)
    entries = dict.fromkeys(data, EvalsetEntry | None)
    for name, record in data.items():
        if record.protocol:
            own = with_fields(EvalsetEntry, f"Evalset_{name}", protocol=record.protocol)
            entries[name] = own | None
    sources = {
        name: Annotated[SourceName, Field(description=record.source)] | None
        if record.source
        else MADE
        for name, record in data.items()
    }
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
        evalsets=Annotated[
            evalsets, WrapValidator(_in_order), Field(json_schema_extra={"minProperties": 1})
        ],
        decontaminate=with_fields(
            DecontaminateSettings, "Decontaminate", against=listing(Literal[held_out])
        ),
        segmenters=dict[str, Literal[segmenters().names()]],
        benchmarks=listing(Literal[tuple(benchmarks())], least=1),
        probes=with_fields(Settings, "Probes", **probes),
    )


# --- config.yaml


class SiteSources(Sources):
    """Where data come from, for the experiments that do not say it themselves."""

    opus: SourceName = "https://object.pouta.csc.fi"
    """An OPUS host, a directory in OPUS layout, or opustools (through the package of that name)."""
    wikimatrix: SourceName = "https://dl.fbaipublicfiles.com/laser"
    """Where LASER's mined files lie, WikiMatrix/v1/WikiMatrix.de-en.tsv.gz: a URL or a
    directory."""
    wikipedia: SourceName = "https://dumps.wikimedia.org"
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
        name: (SourceName | None, Field(record.published or None, description=record.source))
        for name, record in benchmarks().items()
        if record.source
    }
    sources = create_model("Sources", __base__=SiteSources, __doc__=SiteSources.__doc__, **places)
    return with_fields(Site, "Site", sources=sources)
