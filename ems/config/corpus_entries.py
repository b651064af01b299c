"""The settings of an entry of `corpora`, of `splits`, and of the downloads."""

from typing import Annotated, Literal

from pydantic import Field

from ems.base import schema
from ems.base.errors import check, mistake
from ems.base.records import number, whole
from ems.base.schema import Name, Settings, ShortName, SourceName, by_type, listing

LineCount = whole(ge=1, le=1_000_000_000)  # no file of OPUS has half as many
TwoFiles = Annotated[list[SourceName], Field(min_length=2, max_length=2), *schema.UNIQUE]


class TranslatedDocuments(Settings):
    """Documents and their translations, to be aligned sentence by sentence."""

    folder: SourceName
    """Folder with NAME.de and NAME.fr for each document, with a sentence per line."""
    threshold: number(ge=-1, le=1) = 0.5
    """Minimum score of an alignment, the cosine of both sides."""
    split: bool = False
    """Splits the lines of the documents into sentences."""
    model: SourceName | None = None
    """Model folder or exported folder whose vectors align them (default: the encoder in EMS)."""


class CorpusEntry(Settings):
    """A corpus: sentence pairs, or documents in single languages."""

    name: Name
    """Name of the corpus."""
    version: ShortName | None = None
    """Version of the corpus (default: `own`, only for `files` and `documents`)."""
    kind: Literal["pairs", "documents"] = "pairs"
    """`pairs`: sentence pairs; `documents`: texts in single languages, with one sentence per line
    and a blank line after each document."""
    files: Annotated[dict[str, by_type(SourceName, TwoFiles)], Field(min_length=1)] | None = None
    """Your own files, read in place: `{de-en: data/mine.de-en.tsv.gz}`. A .tsv file has two columns
    in the order of the languages in its key. A .jsonl file has the keys `de` and `en`, at the top
    level or in `translation`. A folder has the parquet files of a Hugging Face dataset. `[a.de,
    a.en]` are two files with the same number of lines. Files may be compressed: .gz, .bz2, .xz or
    .zst."""
    documents: by_type(SourceName, TranslatedDocuments) | None = None
    """Your own documents and translations, which `ems align` aligns: their folder or settings."""
    pairs: by_type(Literal["all"], listing(str, least=1)) | None = None
    """Language pairs to use: a list like `[de-fr, pl-uk]`, or `all` for every pair of the corpus's
    languages (default: the pairs with English; all pairs if the experiment has no English)."""
    source: SourceName | None = None
    """Directory of a corpus of your own: in OPUS layout, or for documents with
    NAME/VERSION/LANGUAGE.txt or .txt.gz."""
    path: SourceName | None = None
    """Folder with LANGUAGE.txt or .txt.gz, or with OPUS's raw LANGUAGE.zip, read in place (only
    with `kind: documents`)."""
    languages: listing(str, least=1) | None = None
    """Languages whose pairs (see `pairs`) or documents to use (default: all languages of the
    experiment; for a release of OPUS, the languages that it has)."""
    without: list[str] = Field([])
    """Languages to leave out."""
    vocabularies: listing(str) = Field([])
    """Names of the `vocabularies` that the corpus is reserved for, where it replaces the other
    corpora of its languages (default: all vocabularies)."""
    part: str = ""
    """Part of the corpus to use, as `splits` divides it."""
    codes: by_type(Literal["paper"], dict[str, listing(schema.Code, least=1)]) = Field({})
    """Codes of a language in this corpus, like `{zh: [zh_cn, zh_tw]}` (default: the codes in
    ems/config/languages/opus_codes.tsv); `paper`: only the codes that EMS used. With `files`: the
    one code of a language in JSON or parquet, `{en: [eng_Latn]}`."""
    max_pairs: by_type(LineCount, dict[str, LineCount]) | None = None
    """Maximum number of sentence pairs from each file of a language pair: one number, or `{default:
    N, ru: M}` by language and `{de-fr: N}` by language pair."""
    max_documents: by_type(LineCount, dict[str, LineCount]) | None = None
    """Maximum number of documents per language, sampled at random: one number, or `{default: N, zh:
    M}` by language."""
    format: Literal["moses", "mined"] = "moses"
    """`moses`: OPUS's Moses zips; `mined`: LASER's mined files with scores (WikiMatrix)."""
    threshold: number(ge=0, le=10) | None = None  # cosine by mean cosine: WikiMatrix 1.02 to 1.3
    """Minimum score of a mined sentence pair."""
    accept: str = ""
    """Why to use a release of OPUS with a known defect (`ems/corpora/known_defects.tsv`), or a file
    of which more than half is wrong (default: both are refused)."""
    fallback: bool = False
    """Uses only the language pairs that no other training corpus has (for Tatoeba, EMS v2 IV-A)."""


class MultiwaySettings(Settings):
    """Further sentence pairs from multi-parallel text: sentences that share a translation."""

    through: schema.CodeOrNone = ""
    """Language of the shared translation, like `en`: its corpora with other languages are joined
    (default: none, no further pairs are made)."""
    most: whole(ge=1, le=1000) = 4
    """Maximum number of further pairs per sentence of `through`; rare language pairs come first."""


class Split(Settings):
    """A corpus divided into parts: by document (then a part can be a benchmark), by the sentence in
    one language, or by position.
    """

    first: Annotated[dict[schema.PartName, LineCount], Field(min_length=1)] | None = None
    """Parts at the start of each file, in lines: `{validation: 1000}`. A file with no more lines
    than that leaves nothing for `rest`."""
    rest: schema.PartName | None = None
    """Name of the part with all other lines."""
    documents: ShortName | None = None
    """Name of the file next to moses/ with each line's document (not with `kind: documents`)."""
    sentences: schema.Code | None = None
    """Language whose sentence decides the part of a pair, compared without case and punctuation.
    All translations of a sentence are in the same part, in every language pair and experiment."""
    parts: Annotated[dict[schema.PartName, number(gt=0, lt=1)], Field(min_length=2)] | None = None
    """Share of each part. A document or sentence goes to one part, the same in all languages."""

    @property
    def names(self) -> list[str]:
        return [*self.first, self.rest] if self.first else list(self.parts)

    def check(self, key: str, documents: bool = False) -> None:
        """Raise `EmsError` unless a corpus is divided in one of the three ways, as a whole."""
        present = self.model_fields_set
        for name in sorted(present - {"parts"}) if documents else ():
            raise mistake("documents by parts alone", key=key, name=name)
        by_position = bool({"first", "rest"} & present)
        own = "sentences" if "sentences" in present else "documents"
        parts = ("parts",) if documents else (own, "parts")
        for name in ("first", "rest") if by_position else parts:
            if name not in present:
                raise mistake("missing key", key=key, name=name)
        others = {"documents", "sentences", "parts"} if by_position else {"documents"} - {own}
        total = 1 if by_position else sum(self.parts.values())
        mistakes = {
            "divided twice": not documents and others & present,
            "rest among the first": by_position and self.rest in self.first,
            "shares": abs(total - 1) > 1e-9,
        }
        check(mistakes, key=key, rest=self.rest, total=total)


class DownloadSettings(Settings):
    """Limits of downloads."""

    per_host: whole(ge=1, le=64) = 4  # a browser has 6; hosts refuse more than 64
    """Maximum number of connections to one host, over all jobs."""
    retries: whole(ge=0, le=100) = 5  # with pauses of up to a minute, two hours
    """Number of further attempts after a network failure."""
    largest_gb: number(gt=0, le=1_000_000) = 200  # a petabyte
    """Maximum size of a file in GB; a larger download ends, and its part is deleted."""
