"""Word segmentation, line by line aligned: Moses, jieba, Juman++ (EMS v2 section IV-B) and others.

Every segmenter is a function from lines to as many lines, each line its words joined by single
spaces. The count is asserted after each call: an external tool that drops a line is an error, not a
shift.

Notable choices:
- `moses` streams the Perl script that the mosestokenizer package carries, without -a and without
  escaping: the vocabulary of the authors' released model shows that they did so too;
- `sacremoses` is the same tokenizer in Python: no Perl, slower, other output for Indic scripts;
- Juman++ drops lines that begin with `# ` and lines over 4,096 bytes, so both are kept from it;
- nothing ever switches segmenter silently: what is missing is an error that names the package.
"""

import importlib.util
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from ems.errors import EmsError

Segment = Callable[[list[str]], list[str]]
JUMANPP_BYTES = 4000  # Juman++ 2 silently drops longer lines (its limit is 4,096)
JUMANDIC = Path("/var/lib/mecab/dic/juman-utf8")  # where Debian's mecab-jumandic-utf8 puts it


def segmenter(name: str, language: str) -> Segment:
    """The segmenter `name` for `language`: from a list of lines to as many lines of spaced words.

    Raises `EmsError` when the tool is not installed, naming the package that brings it.
    """
    check_available(name)
    segment = _MAKERS[name](language)

    def checked(lines: list[str]) -> list[str]:
        words = segment(lines)
        if len(words) != len(lines):
            raise EmsError(
                f"segmenter {name} ({language}): {len(lines):,} lines went in and {len(words):,} "
                "came out; its output cannot be aligned. Choose another segmenter and report "
                "the input"
            )
        return [" ".join(line.split()) for line in words]

    return checked


@cache
def check_available(name: str) -> None:
    """Raise `EmsError` that names the missing package when the segmenter `name` cannot run here."""
    if name not in _MAKERS:
        raise EmsError(f"segmenters: found {name!r}; allowed values: {', '.join(_MAKERS)}")
    for present, package in _NEEDS[name]:
        if not present():
            raise EmsError(
                f"segmenter {name}: {package}; or choose another one under `segmenters` in the "
                f"experiment ({', '.join(_MAKERS)})"
            )


def _none(language: str) -> Segment:
    return lambda lines: lines


def _moses(language: str) -> Segment:
    script = files("mosestokenizer").joinpath("tokenizer-v1.1.perl")
    command = ["perl", str(script), "-q", "-no-escape", "-l", language]
    return lambda lines: _run_on_file(command, lines, "moses")


def _sacremoses(language: str) -> Segment:
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(language)
    return lambda lines: [" ".join(tokenizer.tokenize(line, escape=False)) for line in lines]


def _jieba(language: str) -> Segment:
    with warnings.catch_warnings():  # jieba 0.42 still imports pkg_resources
        warnings.simplefilter("ignore")
        import jieba

    jieba.setLogLevel("WARNING")
    return lambda lines: [" ".join(jieba.cut(line)) for line in lines]


def _fugashi(language: str) -> Segment:
    from fugashi import Tagger

    tagger = Tagger("-Owakati")
    return lambda lines: [tagger.parse(line) for line in lines]


def _mecab_jumandic(language: str) -> Segment:
    # -b: the input buffer in bytes; MeCab splits longer lines, which would shift the alignment
    command = ["mecab", "-Owakati", "-d", str(JUMANDIC), "-b", "1048576"]
    return lambda lines: _run_on_file(command, lines, "mecab")


def _jumanpp(language: str) -> Segment:
    def segment(lines: list[str]) -> list[str]:
        pieces = [_jumanpp_pieces(line) for line in lines]
        flat = [piece for line in pieces for piece in line]
        words = _run_on_file(["jumanpp", "--segment"], flat, "jumanpp")
        if len(words) != len(flat):
            return words  # the caller's count finds it
        parts = iter(words)
        return [" ".join(next(parts) for _ in line) for line in pieces]

    return segment


def _jumanpp_pieces(line: str) -> list[str]:
    """A line as Juman++ can take it: no comment sign, no half-width space, pieces under its
    limit.
    """
    text = line.replace("# ", "#").replace(" ", "\u3000")
    pieces, piece, size = [], [], 0
    for character in text:
        size += len(character.encode())
        if size > JUMANPP_BYTES:
            pieces.append("".join(piece))
            piece, size = [], len(character.encode())
        piece.append(character)
    return [*pieces, "".join(piece)]


def _run_on_file(command: list[str], lines: Iterable[str], name: str) -> list[str]:
    """Run a filter on lines through temporary files, so that no pipe can block either side."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as result:
        source.write("".join(f"{line}\n" for line in lines).encode())
        source.seek(0)
        done = subprocess.run(command, stdin=source, stdout=result, stderr=subprocess.PIPE)
        if done.returncode:
            detail = done.stderr.decode(errors="replace").strip()[-500:]
            raise EmsError(f"segmenter {name}: exit status {done.returncode}: {detail}")
        result.seek(0)
        return result.read().decode().removesuffix("\n").split("\n") if lines else []


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _module(name: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(name) is not None


def _full_perl() -> bool:
    command = ["perl", "-MFindBin", "-MThread", "-MTime::HiRes", "-e1"]
    return _program("perl")() and subprocess.run(command, capture_output=True).returncode == 0


_JUMANPP = (
    "the program `jumanpp` is not on PATH: install Juman++ 2 from its release tarball "
    "(github.com/ku-nlp/jumanpp), which holds the model"
)
_NEEDS: dict[str, list[tuple[Callable[[], bool], str]]] = {
    "none": [],
    "moses": [
        (_full_perl, "needs the full Perl; install Debian's package `perl`"),
        (_module("mosestokenizer"), "needs the Python package `mosestokenizer`"),
    ],
    "sacremoses": [(_module("sacremoses"), "needs the Python package `sacremoses`")],
    "jieba": [(_module("jieba"), "needs the Python package `jieba`")],
    "fugashi": [
        (_module("fugashi"), "needs the Python package `fugashi`"),
        (_module("unidic_lite"), "needs the Python package `unidic-lite`"),
    ],
    "mecab-jumandic": [
        (_program("mecab"), "needs Debian's packages `mecab` and `mecab-jumandic-utf8`"),
        (JUMANDIC.is_dir, "needs Debian's package `mecab-jumandic-utf8`"),
    ],
    "jumanpp": [(_program("jumanpp"), _JUMANPP)],
}
_MAKERS: dict[str, Callable[[str], Segment]] = {
    "moses": _moses,
    "sacremoses": _sacremoses,
    "jieba": _jieba,
    "jumanpp": _jumanpp,
    "mecab-jumandic": _mecab_jumandic,
    "fugashi": _fugashi,
    "none": _none,
}
