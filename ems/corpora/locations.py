"""Where a source, a directory or a web address, keeps the files of a corpus."""

from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import url2pathname

from ems.base.errors import EmsError
from ems.config.experiment import Corpus
from ems.config.file import OPUSTOOLS


def is_remote(source: str) -> bool:
    """True if `source` is a web address rather than a directory."""
    return source.startswith(("https://", "http://"))


def opus_location(source: str, corpus: str, version: str, pair: str) -> str:
    """Return where a source keeps the Moses zip of a pair."""
    if source == OPUSTOOLS:
        return f"{OPUSTOOLS}:{corpus}/{version}/moses/{pair}.txt.zip"
    return f"{corpus_location(source, corpus, version)}/moses/{pair}.txt.zip"


def corpus_location(source: str, corpus: str, version: str) -> str:
    """Return where a source keeps a corpus; OPUS hosts prefix its name with `OPUS-`."""
    prefix = "OPUS-" if is_remote(source) else ""
    return f"{source.rstrip('/')}/{prefix}{corpus}/{version}"


def mined_location(source: str, pair: str) -> str:
    """Return where a source keeps a mined pair, whose codes are sorted."""
    return f"{source.rstrip('/')}/WikiMatrix/v1/WikiMatrix.{pair}.tsv.gz"


def text_location(corpus: Corpus, file: str, data: Path) -> str:
    """Return where the documents of one language are fetched from.

    A directory has FILE.txt.gz or FILE.txt, an address FILE.txt.gz. What is in `data` already says
    which of the two it was. A `path` may have OPUS's raw FILE.zip instead.
    """
    folder = corpus.path or f"{corpus.source.rstrip('/')}/{corpus.name}/{corpus.version}"
    packed = f"{folder}/{file}.txt.gz"
    if is_remote(corpus.source):
        return packed
    if corpus.path and local_path(f"{folder}/{file}.zip").is_file():
        return f"{folder}/{file}.zip"
    kept = _kept_text(corpus, data)
    plain = (kept / f"{file}.txt").is_file()
    is_packed = (kept / f"{file}.txt.gz").is_file() or local_path(packed).is_file()
    return packed if is_packed and not plain else packed.removesuffix(".gz")


def text_file(corpus: Corpus, file: str, data: Path) -> Path:
    """Return where the documents of one language lie once they are fetched, or in place."""
    if corpus.dumped:
        return data / "wikipedia" / corpus.version / f"{file}.txt.gz"
    location = text_location(corpus, file, data)
    return local_path(location) if corpus.path else _kept_text(corpus, data) / Path(location).name


def _kept_text(corpus: Corpus, data: Path) -> Path:
    return data / "documents" / corpus.name / corpus.version


def dump_file(corpus: Corpus, file: str, data: Path) -> Path:
    """Return where the dump of a Wikipedia lies once it is fetched."""
    return data / "dumps" / corpus.name / corpus.version / f"{file}.xml.bz2"


def dump_location(source: str, code: str, date: str) -> str:
    """Return where a source keeps the dump of a Wikipedia: its articles, packed in many streams."""
    wiki = f"{code}wiki"
    name = f"{wiki}-{date}-pages-articles-multistream.xml.bz2"
    return f"{source.rstrip('/')}/{wiki}/{date}/{name}"


def local_path(location: str) -> Path:
    """Return the path of a `file://` address or of a plain path."""
    if location.startswith("file://"):
        return Path(url2pathname(address(location).path))
    return Path(location)


def address(url: str) -> SplitResult:
    """Split an address into its parts. Raises `EmsError` if it cannot be read."""
    try:
        return urlsplit(url)
    except ValueError as error:
        raise EmsError(
            f"{url}: expected an address, found none ({error}); check `sources`"
        ) from None
