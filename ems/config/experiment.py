"""The types of a resolved experiment; `file.py` has the keys that its file may contain."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

from ems.base.errors import EmsError
from ems.base.schema import Settings
from ems.config.benchmarks import DocumentSettings, ProbeSettings
from ems.config.corpus_entries import MultiwaySettings, Split, TranslatedDocuments
from ems.config.languages import UNSEEN, Language
from ems.config.model import ExportSettings
from ems.config.sweep import SweepPoint
from ems.config.systems import SHARED, SystemSettings, Vocabulary
from ems.config.tables import TablesSettings, study_rows
from ems.config.text import CleanSettings, DecontaminateSettings, OfCorpora, VocabularySettings

WIKIPEDIA = "Wikipedia"  # the corpus of documents made from dumps
VALIDATION = "validation"  # the sentences of `validation`, as a name of an evaluation set
MULTIWAY = "Multiway"  # the corpus of further pairs; its version is the language they share
EMBEDDED = "embedded"  # the source of the demo data that ems generates


def other_language(pair: str) -> str:
    """Return the non-English side of a pair, or the pair itself if neither side is English."""
    others = [code for code in pair.split("-") if code != "en"]
    return others[0] if len(others) == 1 else pair


@dataclass(frozen=True)
class Corpus:
    """A corpus of an experiment. `pairs` are language pairs, sides sorted as strings, or languages
    of documents. `variants` are the names of a pair's files if the corpus has other codes or
    several: "en-zh" -> ("en-zh_cn", "en-zh_tw"). `turned` are files with the second side first.
    """

    name: str
    version: str
    source: str
    custom: bool  # has its own source, so the catalogue need not list it
    pairs: tuple[str, ...]
    # maximum per file of a pair, or per language; a number of documents in a corpus of documents
    max_pairs: int | dict[str, int] | None
    part: str = ""  # of a corpus that `splits` divides; '': all of it
    variants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    turned: frozenset[str] = frozenset()
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    aligned: TranslatedDocuments | None = None  # what the files in `paths` are made from
    threshold: float | None = None  # the minimum score of a mined pair; None: OPUS's Moses zips
    kind: Literal["pairs", "documents"] = "pairs"
    accept: str = ""  # why a known defect, or a file that looks wrong, is accepted
    path: str = ""  # the user's folder with the documents, used in place
    vocabularies: tuple[str, ...] = ()  # vocabularies it is reserved for; (): all of them

    def files(self, pair: str) -> tuple[str, ...]:
        return self.variants.get(pair, (pair,))

    def cap(self, pair: str) -> int | None:
        """Return the maximum number of sentence pairs per file of a pair; None: no limit."""
        if not isinstance(self.max_pairs, dict):
            return self.max_pairs
        other = other_language(pair)
        if other in self.max_pairs:
            return self.max_pairs[other]
        sides = [self.max_pairs[code] for code in other.split("-") if code in self.max_pairs]
        return min(sides, default=self.max_pairs.get("default"))

    @property
    def documents(self) -> bool:
        """True if the corpus holds documents in single languages."""
        return self.kind == "documents"

    @property
    def dumped(self) -> bool:
        """True if the documents are made from Wikipedia's dumps."""
        return self.documents and self.name == WIKIPEDIA and not self.custom

    @property
    def mined(self) -> bool:
        """True if the files are LASER's mined ones, with scores, instead of Moses zips."""
        return self.threshold is not None

    @property
    def label(self) -> str:
        """The name in the experiment: "Tatoeba", or "NTREX+train" for a part."""
        return f"{self.name}+{self.part}" if self.part else self.name

    @property
    def all_files(self) -> list[str]:
        return [file for pair in self.pairs for file in self.files(pair)]


def name_of_part(pairs: Sequence[str]) -> str:
    """Return the name of neighbouring pairs of a corpus that share a job: `af-en..de-en`."""
    return pairs[0] if len(pairs) == 1 else f"{pairs[0]}..{pairs[-1]}"


def pairs_of_part(corpus: Corpus, part: str) -> list[str]:
    """Return the pairs of a corpus in a part, in order. Raises `EmsError` for an unknown pair."""
    first, _, last = part.partition("..")
    pairs, last = list(corpus.pairs), last or first
    found = pairs[pairs.index(first) : pairs.index(last) + 1] if {first, last} <= {*pairs} else []
    if not found:
        known = f"{len(pairs)} pairs from {pairs[0]} to {pairs[-1]}"
        raise EmsError(f"{corpus.label}/{corpus.version}: {part}: it has {known}; name one of them")
    return found


@dataclass(frozen=True)
class EvalSet:
    """An evaluation set as an experiment uses it. `languages` maps the set's own codes to languages
    of the table or of the experiment, or to UNSEEN if neither has one. It does not depend on what
    the experiment trains on. `path` is the user's own copy ('': none), `dev` adds FLORES-200's dev
    part, and `embedded` is true for data that ems generates for the demo, used in place.
    """

    version: str
    languages: dict[str, str]
    part: str = ""
    path: str = ""
    dev: bool = False
    protocol: Settings | None = None
    embedded: bool = False

    @property
    def documents(self) -> list[str]:
        """The names of the documents to read, of a set whose protocol chooses them."""
        return getattr(self.protocol, "documents", [])


@dataclass(frozen=True)
class Experiment:
    """All settings of an experiment. `vocabularies` has the one of all languages, SHARED (settings:
    `vocabulary`), and smaller ones. `families` maps an entry with `each` to its systems.
    """

    name: str
    seed: int
    languages: dict[str, Language]
    sources: dict[str, str]
    splits: dict[str, Split]
    corpora: tuple[Corpus, ...]
    validation: tuple[Corpus, ...]
    evalsets: dict[str, EvalSet]
    decontaminate: DecontaminateSettings
    clean: CleanSettings
    segmenters: dict[str, str]
    vocabulary: VocabularySettings
    vocabularies: dict[str, Vocabulary]
    systems: dict[str, SystemSettings]
    families: dict[str, tuple[str, ...]]
    benchmarks: tuple[str, ...]
    tables: TablesSettings
    export: ExportSettings
    probes: dict[str, ProbeSettings]
    documents: DocumentSettings
    sweep: tuple[SweepPoint, ...] = ()
    multiway: MultiwaySettings = field(default_factory=MultiwaySettings)

    def all_corpora(self) -> list[tuple[str, Corpus]]:
        """Return (role, corpus) for the training corpora, then for the validation corpora."""
        roles = (("train", self.corpora), ("validation", self.validation))
        return [(role, corpus) for role, corpora in roles for corpus in corpora]

    def corpus(self, label: str, version: str) -> tuple[str, Corpus]:
        for role, corpus in self.all_corpora():
            if (corpus.label, corpus.version) == (label, version):
                return role, corpus
        raise EmsError(f"experiment {self.name} has no corpus {label}/{version}")

    def part_named(self, name: str) -> tuple[Corpus, list[str]] | None:
        """Return the corpus and the language pairs of a part from its name in logs and costs."""
        for _, corpus in self.all_corpora():
            start = f"{corpus.label}-{corpus.version}-"
            with suppress(EmsError):
                if name.startswith(start):
                    return corpus, pairs_of_part(corpus, name.removeprefix(start))
        return None

    def document_names(self, corpus: Corpus) -> str:
        """Return the file with each line's document; "" if not divided by document."""
        divided = corpus.part and not corpus.documents
        return (self.splits[corpus.name].documents or "") if divided else ""

    def cleaning(self, corpus: Corpus) -> CleanSettings:
        """Return the filters that apply to a corpus; documents have no filters of pairs."""

        def own(part: OfCorpora | None) -> OfCorpora | None:
            if part is None or corpus.name not in (part.corpora or [corpus.name]):
                return None
            return part.model_copy(update={"corpora": []})

        update = {"language": own(self.clean.language), "similarity": None, "commands": []}
        if corpus.documents:
            update["filters"] = "none"
        else:
            update["similarity"] = own(self.clean.similarity)
            update["commands"] = [each for each in map(own, self.clean.commands) if each]
        return self.clean.model_copy(update=update)

    def before(self, label: str, version: str, pair: str) -> list[Corpus]:
        """Return the corpora whose pairs this one must not repeat (`clean.duplicates: across`)."""
        role, own = self.corpus(label, version)
        if self.clean.duplicates != "across" or role != "train" or own.documents:
            return []
        others = [c for c in self.corpora[: self.corpora.index(own)] if not c.documents]
        return [c for c in others if pair in c.pairs and c.vocabularies == own.vocabularies]

    def pairs_of(self, role: str, vocabulary: str = SHARED) -> list[tuple[Corpus, str]]:
        """Return (corpus, pair) of a role ("train", "validation") in the languages of a vocabulary.
        A corpus reserved for the vocabulary replaces the other corpora of its languages.
        """
        known = set(self.vocabularies[vocabulary].languages)
        corpora = self.corpora if role == "train" else self.validation
        own = [each for each in corpora if vocabulary in (each.vocabularies or [vocabulary])]
        every = [(each, pair) for each in own for pair in each.pairs if known >= {*pair.split("-")}]
        taken = {code for each, pair in every if each.vocabularies for code in pair.split("-")}
        return [
            (corpus, pair)
            for corpus, pair in every
            if corpus.vocabularies or not taken.issuperset(pair.split("-"))
        ]

    def joined(self) -> list[tuple[Corpus, str]]:
        """Return (corpus, pair) of the training pairs that `multiway` joins, sorted."""
        pairs = [
            (corpus, pair)
            for corpus, pair in self.pairs_of("train")
            if self.multiway.through in pair.split("-") and not corpus.documents
        ]
        return sorted(pairs, key=lambda item: (item[1], item[0].label, item[0].version))

    def multiway_pairs(self, vocabulary: str = SHARED) -> list[str]:
        """Return the language pairs that `multiway` may make, in the languages of a vocabulary."""
        known = {*self.vocabularies[vocabulary].languages} - {self.multiway.through}
        codes = {code for _, pair in self.joined() for code in pair.split("-")} & known
        return ["-".join(pair) for pair in combinations(sorted(codes), 2)]

    def fitted_on(self, role: str, name: str) -> list[tuple[Corpus, str]]:
        """Return (corpus, pair) of the clean text that a system is fitted on: "train" to count
        n-grams, if they have weights; "validation" to choose their weight in a fused system.
        """
        system = self.systems[name]
        if role == "train":
            return self.pairs_of(role, system.vocabulary) if system.ngrams.idf else []
        if not (system.base_system and system.ngrams.searched):
            return []
        return [
            (corpus, pair)
            for corpus, pair in self.pairs_of(role, system.vocabulary)
            if not corpus.documents and set(pair.split("-")) <= set(system.languages)
        ]

    def of_vocabulary(self, name: str) -> "Experiment":
        own = self.vocabularies[name]
        return replace(self._narrowed(own.languages), vocabulary=own.settings)

    def of_system(self, name: str) -> "Experiment":
        """Return the experiment limited to the languages of one system."""
        return self._narrowed(self.systems[name].languages)

    def _narrowed(self, codes: Sequence[str]) -> "Experiment":
        # no language is unseen here: languages outside the system are not scored
        if list(codes) == list(self.languages):
            return self
        evalsets = {
            name: replace(item, languages={c: n for c, n in item.languages.items() if n in codes})
            for name, item in self.evalsets.items()
        }
        languages = {code: self.languages[code] for code in codes}
        segmenters = {code: self.segmenters[code] for code in (UNSEEN, *codes)}
        return replace(self, languages=languages, evalsets=evalsets, segmenters=segmenters)

    def spoken(self, evalset: str) -> dict[str, str]:
        """Map an evaluation set's codes to languages, or to UNSEEN if not trained on."""
        codes = self.evalsets[evalset].languages
        return {c: name if name in self.languages else UNSEEN for c, name in codes.items()}

    def scores_unseen(self, evalset: str, system: str) -> bool:
        return UNSEEN in self.of_system(system).spoken(evalset).values()

    def held_against(self, pair: str) -> list[str] | None:
        """Return `<evalset>/<code>` of all sentences that a pair must not contain (None: all)."""
        if self.decontaminate.scope == "any":
            return None
        own = [
            f"{name}/{code}"
            for name in self.decontaminate.against
            for code, language in self.evalsets[name].languages.items()
            if language in pair.split("-")
        ]
        held_out = pair.split("-") if self.decontaminate.validation else []
        return own + [f"{VALIDATION}/{code}" for code in held_out]

    @property
    def listed(self) -> list[str]:
        """The systems of the file, without systems that only the sweep has."""
        swept = {point.system for point in self.sweep if point.added}
        return [name for name in self.systems if name not in swept]

    @property
    def shown(self) -> list[str]:
        """The systems of the tables; others are trained only when requested by name."""
        return [own for name in self.tables.systems or self.listed for own in self.members(name)]

    @property
    def ablated(self) -> list[str]:
        """The systems of the ablation table; the first is the one that others are compared with."""
        named = self.tables.ablation
        return [own for name in named for own in self.members(name)] if named else self.shown

    @property
    def tabled(self) -> list[str]:
        """The systems of all tables: shown, in the ablation, or in a study."""
        studies = (self.tables.studies or {}).values()
        rows = [row for study in studies for row in study_rows(self, study)]
        studied = [name for row in rows for names in row.systems.values() for name in names]
        every = [*self.shown, *self.ablated, *studied, *(row.model for row in rows)]
        return list(dict.fromkeys(every))

    def members(self, name: str) -> tuple[str, ...]:
        return self.families.get(name, (name,))

    def scored(self, benchmark: str) -> str:
        """Return the benchmark that a study shows for `benchmark`: itself, its stand-in, or ""."""
        names = benchmark, (self.tables.stand_ins or {}).get(benchmark, "")
        return next((name for name in names if name in self.benchmarks), "")

    def learning(self, names: Iterable[str]) -> list[str]:
        """Return the systems among `names`, each once, that train for at least one step."""
        trained = {n for n, system in self.systems.items() if system.trained and system.train.steps}
        return [name for name in dict.fromkeys(names) if name in trained]
