"""The settings of an entry of `corpora`, of `splits`, and of the downloads."""

from typing import Annotated, Literal

from pydantic import Field

from ems.base.errors import EmsError
from ems.base.schema import (
    UNIQUE,
    Code,
    CodeOrNone,
    Name,
    PartName,
    Settings,
    ShortName,
    SourceName,
    by_type,
    listing,
    number,
    whole,
)

LineCount = whole(ge=1, le=1_000_000_000)  # no file of OPUS has half as many
TwoFiles = Annotated[list[SourceName], Field(min_length=2, max_length=2), *UNIQUE]


class CorpusEntry(Settings):
    """A corpus: its language pairs, or its documents of single languages."""

    name: Name
    """The name of the corpus."""
    version: ShortName | None = None
    """Its version (default: own, of a corpus of `files` alone)."""
    kind: Literal["pairs", "documents"] = "pairs"
    """Language pairs, or documents of single languages: text files with one sentence a line and a
    blank line after each document."""
    files: Annotated[dict[str, by_type(SourceName, TwoFiles)], Field(min_length=1)] | None = None
    """Your own text, read where it lies: `{de-en: data/mine.de-en.tsv.gz}`. A .tsv file has two
    columns in the order of the languages of its key, a .jsonl file the keys `de` and `en` (or these
    in `translation`), a folder the parquet files of a Hugging Face dataset; `[a.de, a.en]` are two
    files with as many lines. Each may be packed: .gz, .bz2, .xz or .zst."""
    pairs: by_type(Literal["all"], listing(str, least=1)) | None = None
    """The language pairs that are used, `[de-fr, pl-uk]`; all: every pair of its languages
    (default: the pairs with English, or all in an experiment without English)."""
    source: SourceName | None = None
    """A directory, for a corpus of your own: in OPUS layout, or for documents with
    NAME/VERSION/LANGUAGE.txt or .txt.gz."""
    path: SourceName | None = None
    """A folder with LANGUAGE.txt or .txt.gz, or with OPUS's raw LANGUAGE.zip, used in place (of
    `kind: documents`)."""
    languages: listing(str, least=1) | None = None
    """Languages whose pairs are used (see `pairs`), or whose documents are (default: all of the
    experiment; of a release of OPUS those that it has)."""
    without: list[str] = Field([])
    """Languages that are left out."""
    vocabularies: listing(str) = Field([])
    """The `vocabularies` that it is for, where it takes the place of the other corpora of its
    languages (default: all of them)."""
    part: str = ""
    """The part of the corpus, as `splits` divides it."""
    codes: by_type(Literal["paper"], dict[str, listing(Code, least=1)]) = Field({})
    """The codes of a language in this corpus, `{zh: [zh_cn, zh_tw]}` (default: those of
    ems/config/languages/opus_codes.tsv); paper: only the codes that EMS used. With `files`: the one
    code of a language in JSON or parquet, `{en: [eng_Latn]}`."""
    max_pairs: by_type(LineCount, dict[str, LineCount]) | None = None
    """The most pairs of each file of a language pair; `{default: N, ru: M}` sets it for some
    languages, `{de-fr: N}` for a pair."""
    max_documents: by_type(LineCount, dict[str, LineCount]) | None = None
    """The most documents of a language, drawn at random; `{default: N, zh: M}` sets it for some
    languages."""
    format: Literal["moses", "mined"] = "moses"
    """OPUS's Moses zips, or LASER's mined files with scores (WikiMatrix)."""
    threshold: number(ge=0, le=10) | None = None  # cosine by mean cosine: WikiMatrix 1.02 to 1.3
    """The least score of a mined pair."""
    fallback: bool = False
    """Uses only the language pairs that no other corpus has (the paper's rule for Tatoeba,
    IV-A)."""


class MultiwaySettings(Settings):
    """Further pairs of multi-parallel text: sentences that have a translation in common."""

    through: CodeOrNone = ""
    """The language of the translation in common, like en: of the pairs of corpora with it (default:
    none, and no further pairs are made)."""
    most: whole(ge=1, le=1000) = 4
    """The most further pairs of one sentence of `through`; language pairs that have few so far come
    first."""


class Split(Settings):
    """A corpus that is divided: by document (then a part can be a benchmark), by the sentence of a
    language, or by position.
    """

    first: Annotated[dict[PartName, LineCount], Field(min_length=1)] | None = None
    """The parts that are so many lines at the start of each file: `{validation: 1000}`. A file that
    is no longer has nothing left for `rest`."""
    rest: PartName | None = None
    """The part of all other lines."""
    documents: ShortName | None = None
    """A file beside moses/ with the document of each line; a corpus of `kind: documents` has
    none."""
    sentences: Code | None = None
    """The language whose sentence decides the part of a pair, without case and punctuation: all
    translations of a sentence are in one part, in every language pair and experiment."""
    parts: Annotated[dict[PartName, number(gt=0, lt=1)], Field(min_length=2)] | None = None
    """The share of each part; a document, or a sentence, goes to one part, the same in all
    languages."""

    @property
    def names(self) -> list[str]:
        """The names of the parts."""
        return [*self.first, self.rest] if self.first else list(self.parts)

    def check(self, key: str, documents: bool = False) -> None:
        """Raise `EmsError` unless a corpus is divided in one of the three ways, as a whole."""
        present = self.model_fields_set
        for name in sorted(present - {"parts"}) if documents else ():
            raise EmsError(f"{key}.{name}: a corpus of `kind: documents` is divided by parts alone")
        by_position = bool({"first", "rest"} & present)
        own = "sentences" if "sentences" in present else "documents"
        parts = ("parts",) if documents else (own, "parts")
        for name in ("first", "rest") if by_position else parts:
            if name not in present:
                raise EmsError(f"{key}.{name}: this key is missing")
        others = {"documents", "sentences", "parts"} if by_position else {"documents"} - {own}
        if not documents and others & present:
            raise EmsError(
                f"{key}: by document (documents, parts), by sentence (sentences, parts) or by "
                "position (first, rest)?"
            )
        if by_position and self.rest in self.first:
            raise EmsError(f"{key}.rest: {self.rest} is one of the first parts already")
        total = 1 if by_position else sum(self.parts.values())
        if abs(total - 1) > 1e-9:
            raise EmsError(f"{key}.parts: the shares add up to {total:g}; they must add up to 1")


class DownloadSettings(Settings):
    """How files are downloaded."""

    per_host: whole(ge=1, le=64) = 4  # a browser has 6; hosts refuse more than 64
    """Connections to one host at once, of all jobs together."""
    retries: whole(ge=0, le=100) = 5  # with pauses of up to a minute, two hours
    """Attempts after one that the network failed."""
