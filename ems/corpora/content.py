"""Whether a file begins as its name promises: a page that says "sorry" never becomes data."""

from pathlib import Path

from ems.errors import EmsError

START = 512  # bytes of a file that are looked at
MAGIC = {  # suffix -> (where, what stands there, what that is)
    ".zip": (0, (b"PK\x03\x04", b"PK\x05\x06"), "a zip archive"),
    ".gz": (0, (b"\x1f\x8b",), "a gzip file"),
    ".tgz": (0, (b"\x1f\x8b",), "a gzip file"),
    ".bz2": (0, (b"BZh",), "a bzip2 file"),
    ".tbz2": (0, (b"BZh",), "a bzip2 file"),
    ".tar": (257, (b"ustar",), "a tar archive"),
}
MARKUP = {".html": "html", ".htm": "html", ".xml": "xml", ".tmx": "xml"}
PAGES = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<body", b"<error")
WAY_OUT = "look at the address in a browser, or set `sources` to a mirror directory"


def check_start(start: bytes, name: str, where: str) -> None:
    """Raise `EmsError` that names `where` unless a file `name` may begin with these bytes.

    Archives by the magic bytes of their suffix; everything else must not be an HTML or XML page
    (whether it may be empty is its reader's question).
    """
    suffix = Path(name).suffix.lower()
    place, allowed, what = MAGIC.get(suffix, (0, (b"",), "a file"))
    if not start and suffix in MAGIC:
        found = "nothing (it is empty)"
    elif _is_page(start) and suffix not in MARKUP:
        found = f"a web page ({start[:40]!r}…)"
    elif not start[place:].startswith(allowed):
        found = f"{start[:16]!r}"
    else:
        return
    expected = f"not {what}" if suffix in MAGIC else f"expected {what}"
    raise EmsError(f"{where}: {expected}, found {found}; {WAY_OUT}")


def check_type(kind: str, name: str, where: str) -> None:
    """Raise `EmsError` when a server calls a file that is no page one (its `Content-Type`)."""
    page = next((word for word in ("html", "xml") if word in kind.lower()), None)
    if page and MARKUP.get(Path(name).suffix.lower()) != page:
        raise EmsError(f"{where}: expected a file, found a web page ({short(kind)}); {WAY_OUT}")


def short(text: str, limit: int = 100) -> str:
    """A server's words for a message: one line of at most `limit` characters."""
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[:limit]}…"


def _is_page(start: bytes) -> bool:
    letters = start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")  # UTF-16, BOMs
    return letters.lower().startswith(PAGES)
