"""Where a source, a directory or a web address, keeps the files of a corpus."""

from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import url2pathname

from ems.config import OPUSTOOLS
from ems.errors import EmsError


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
