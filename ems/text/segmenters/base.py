"""The record of a segmenter, and its function from tidy lines to as many lines of spaced words.

A segmenter that cannot run is an error that names the missing package; there is no fallback.
"""

import importlib.util
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pkgutil import iter_modules
from typing import Any

from ems.base.errors import EmsError, mistake
from ems.base.progress import log
from ems.base.texts import is_plain
from ems.text.normalise import is_spaced

Segment = Callable[[list[str]], list[str]]
DEFAULT = "moses"  # for languages that no segmenter claims
RULE = "nmt_nfkc"  # SentencePiece's normalisation of the segmented text
SPACE = "\u2581"  # SentencePiece's sign for a space
_BREAKERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# beginnings of the names and codes of scripts with viramas or tone marks
MARKED = ("Ben", "Deva", "Guj", "Gur", "Kannada", "Khm", "Knda", "Lao", "Malayalam", "Mlym")
MARKED += ("Myan", "Mymr", "Odia", "Orya", "Sinh", "Tam", "Tel", "Thai", "Tib")
_FULL_WIDTH = re.compile("[０-９Ａ-Ｚａ-ｚ．％＋－＃＆＿]*[０-９Ａ-Ｚａ-ｚ][．％＋－＃＆＿]*")
_HALF_WIDTH_KANA = re.compile("[\uff65-\uff9f]+")
LONGEST_RUN, MOST_ENDS = 500, 250  # characters
_ENDS = ".,;:!?…。、，．；：！？"
_RUN = re.compile(f"([^\\s{_ENDS}]{{{LONGEST_RUN}}}|[{_ENDS}]{{{MOST_ENDS}}})(?=\\S)")


@dataclass(frozen=True)
class Need:
    present: Callable[[], bool]
    install: str


@dataclass(frozen=True)
class Segmenter:
    """One segmenter: `make(language)` returns a function from lines to as many lines of words, or
    `command(language)` is a program that does the same from stdin to stdout.

    `prepare` is applied to each line first. Lines of over `limit` bytes (0: no limit) are cut for a
    tool that would drop them, split them or crash. It is the default of the languages `default_of`.
    With `by_language=False`, it treats all languages alike, and with `by_word` each word of a line
    alone. `cuts_marks`: some signs in the words of MARKED scripts become words.
    """

    make: Callable[[str], Segment] | None = None
    command: Callable[[str], list[str]] | None = None
    needs: tuple[Need, ...] = ()
    prepare: Callable[[str], str] | None = None
    limit: int = 0
    default_of: tuple[str, ...] = ()
    by_language: bool = True
    by_word: bool = False
    cuts_marks: bool = False


def package(module: str, name: str = "") -> Need:
    install = f"needs the Python package `{name or module}`"
    return Need(lambda: importlib.util.find_spec(module) is not None, install)


def program(name: str, install: str) -> Need:
    return Need(lambda: shutil.which(name) is not None, install)


def records() -> dict[str, tuple[str, Any]]:
    """Return {name: (module, SEGMENTER)}, including the project's own extensions."""
    result = {}
    package = importlib.import_module(__package__)
    for file in sorted({module.name for module in iter_modules(package.__path__)} - {"base"}):
        module = importlib.import_module(f"{__package__}.{file}")
        own = getattr(module, "SEGMENTER", None)
        own = own if isinstance(own, dict) else {file.replace("_", "-"): own}
        result.update({name: (module.__name__, record) for name, record in own.items()})
    return dict(sorted(result.items()))


def names() -> tuple[str, ...]:
    return tuple(records())


def _record(name: str) -> tuple[str, Any]:
    if name not in (known := records()):
        raise EmsError(f"segmenters: found {name!r}; allowed values: {', '.join(known)}")
    return known[name]


def module_name(name: str) -> str:
    """Return the name of a segmenter's module. Raises `EmsError` for an unknown segmenter."""
    return _record(name)[0]


@cache
def load(name: str) -> Segmenter:
    """Return the record of a segmenter. Raises `EmsError` if its file has none."""
    module, record = _record(name)
    if not isinstance(record, Segmenter):
        file = importlib.import_module(module).__file__
        raise EmsError(f"{file}: expected SEGMENTER, a record of {__name__}.Segmenter")
    return record


def defaults(languages: Iterable[str]) -> dict[str, str]:
    """Return the default segmenter of each language. Raises `EmsError` for two claims to one."""
    claims: dict[str, str] = {}
    for name in names():
        for language in load(name).default_of:
            if language in claims:
                both = f"{claims[language]} and {name}"
                raise mistake("two default segmenters", both=both, language=language)
            claims[language] = name
    return {language: claims.get(language, DEFAULT) for language in languages}


@cache
def check_available(name: str) -> None:
    """Raise `EmsError` that names the missing package if a segmenter cannot run here."""
    for need in load(name).needs:
        if not need.present():
            raise mistake("segmenter not installed", name=name, need=need.install, names=names())


@cache
def segmenter(name: str, language: str) -> Segment:
    """Load the segmenter `name` for `language`. The function raises `EmsError` for a line that is
    not tidy, and if the number of lines changes, because a lost line would shift the following.
    """
    check_available(name)
    record, label = load(name), f"segmenter {name} ({language})"
    if record.command:
        segment = partial(run_filter, record.command(language), name=name)
    else:
        segment = record.make(language)
    if record.limit:
        segment = partial(segment_in_pieces, segment, limit=record.limit, name=name)

    def checked(lines: list[str]) -> list[str]:
        for number, line in enumerate(lines, start=1):
            if not is_plain(line) and (breaker := _BREAKERS.search(line)):
                words = {"number": number, "code": ord(breaker[0])}
                raise mistake("line that is not tidy", label=label, **words)
        prepared = list(map(record.prepare, lines)) if record.prepare else lines
        words = segment(prepared)
        check_count(lines, words, label)
        return [line if is_spaced(line) else " ".join(line.split()) for line in words]

    return checked


def warn_of_marks(chosen: Mapping[str, str], languages: Mapping[str, Any]) -> None:
    """Warn of languages, with their `script`, whose words their segmenter cuts."""
    known = [code for code in chosen if code in languages and load(chosen[code]).cuts_marks]
    if cut := [code for code in known if languages[code].script.startswith(MARKED)]:
        tools = ", ".join(sorted({chosen[code] for code in cut}))
        whole = ", ".join(f"{code}: unicode" for code in cut)
        apart = f"viramas and tone marks are words of their own with {tools}"
        log.warning("segmenters: %s; to keep words whole, write %s", apart, whole)


def check_count(lines: list[str], words: list[str], label: str) -> None:
    if len(words) != len(lines):
        raise mistake("lines lost", label=label, lines=len(lines), left=len(words))


def segment_in_pieces(segment: Segment, lines: list[str], limit: int, name: str) -> list[str]:
    """Segment lines, long ones over `limit` bytes in pieces whose words are joined again."""
    pieces = [_pieces(line, limit) for line in lines]
    flat = [piece for line in pieces for piece in line]
    words = segment(flat)
    check_count(flat, words, f"segmenter {name}")
    parts = iter(words)
    return [" ".join([next(parts) for _ in line]) for line in pieces]


def _pieces(text: str, limit: int) -> list[str]:
    """Cut a text between characters into pieces of at most `limit` bytes of UTF-8."""
    if 4 * len(text) <= limit:
        return [text]
    pieces, rest = [], text.encode()
    while len(rest) > limit:
        pieces.append(rest[:limit].decode(errors="ignore"))  # drops an incomplete character
        rest = rest[len(pieces[-1].encode()) :]
    return [*pieces, rest.decode()]


def cut_runs(line: str) -> str:
    """Put a space into runs without one, of punctuation or of anything else: MeCab and Moses take
    time that grows with the square of a run, and one of 30,000 characters stops a server.
    """
    return _RUN.sub(r"\1 ", line) if len(line) > MOST_ENDS else line


def run_filter(command: list[str], lines: list[str], name: str) -> list[str]:
    """Run a program on lines, through files because pipes could block; return the lines it writes.
    Raises `EmsError` with the end of its stderr if it fails; the number of lines is not checked.
    """
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as result:
        source.write("".join(f"{line}\n" for line in lines).encode())
        source.seek(0)
        done = subprocess.run(command, stdin=source, stdout=result, stderr=subprocess.PIPE)
        if done.returncode:
            detail = done.stderr.decode(errors="replace").strip()[-500:]
            raise EmsError(f"segmenter {name}: exit status {done.returncode}: {detail}")
        result.seek(0)
        text = result.read().decode(errors="replace")
        return text.removesuffix("\n").split("\n") if lines else []


def half_width_ascii(line: str) -> str:
    """Make full-width letters and digits, and signs next to them, half-width: ３．５％ -> 3.5%."""
    return _FULL_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), line)


def full_width_kana(line: str) -> str:
    """Make half-width kana (with their sound marks) full-width, as in dictionaries: ﾊﾞ -> バ."""
    return _HALF_WIDTH_KANA.sub(lambda kana: unicodedata.normalize("NFKC", kana[0]), line)
