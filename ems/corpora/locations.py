"""Where a source, a directory or a web address, keeps the files of a corpus."""

from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import url2pathname

from ems.errors import EmsError


def is_remote(source: str) -> bool:
    """Whether `source` is a web address rather than a directory."""
    return source.startswith(("https://", "http://"))


def opus_location(source: str, corpus: str, version: str, pair: str) -> str:
    """Where a source keeps a pair."""
    return f"{corpus_location(source, corpus, version)}/moses/{pair}.txt.zip"


def corpus_location(source: str, corpus: str, version: str) -> str:
    """Where a source keeps a corpus: OPUS hosts prefix its name with `OPUS-`, folders do not."""
    prefix = "OPUS-" if is_remote(source) else ""
    return f"{source.rstrip('/')}/{prefix}{corpus}/{version}"


def mined_location(source: str, pair: str) -> str:
    """Where a source keeps a pair, whose codes stand in the order of their letters."""
    return f"{source.rstrip('/')}/WikiMatrix/v1/WikiMatrix.{pair}.tsv.gz"


def local_path(location: str) -> Path:
    """The path of a `file://` address or of a plain path."""
    if location.startswith("file://"):
        return Path(url2pathname(address(location).path))
    return Path(location)


def address(url: str) -> SplitResult:
    """The parts of an address. Raises `EmsError` when it cannot be read."""
    try:
        return urlsplit(url)
    except ValueError as error:
        raise EmsError(
            f"{url}: expected an address, found none ({error}); check `sources`"
        ) from None
