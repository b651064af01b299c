"""Word segmentation, line by line aligned: Moses, jieba, Juman++ (EMS v2 section IV-B) and others.

Every segmenter is a function from lines to as many lines, each line its words joined by single
spaces. The count is asserted after each call: an external tool that drops a line is an error, not a
shift.

Notable choices:
- `moses` streams the Perl script that the mosestokenizer package carries, without -a and without
  escaping: the vocabulary of the authors' released model shows that they did so too;
- its other flags are names of their own, so that whatever tokenised a text travels as one word:
  `moses-aggressive` (-a, `@-@`), `moses-escaped` (`&apos;`), `moses-aggressive-escaped` (both, what
  the mosestokenizer package does by default);
- `sacremoses` is the same tokenizer in Python: no Perl, slower, other output for Indic scripts;
- `rjieba` is jieba's algorithm in Rust, some twenty times faster; it differs in a few lines with
  Latin letters or digits, so an experiment has to ask for it;
- what could break a line in two or end it early never reaches a tool: `tidy` takes it out, and a
  line that holds it all the same is an error;
- nothing ever switches segmenter silently: what is missing is an error that names the package. The
  two ways to Juman++ (jumanpp.py) are one segmenter: they give the same words.
"""

import importlib.util
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

from ems.errors import EmsError
from ems.text import jumanpp
from ems.text.external import Segment, check_count, full_width_kana, on_pieces, run_on_file

_BREAKERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MECAB_BYTES = 1_000_000  # of a line; the size of its buffer is 1,048,576
JIEBA_BYTES = 3000  # its time grows with the square of a run of unknown words
FUGASHI_BYTES = 100_000  # of a line; a few times more and it dies by a segmentation fault
JUMANDIC = Path("/var/lib/mecab/dic/juman-utf8")  # where Debian's mecab-jumandic-utf8 puts it


def segmenter(name: str, language: str) -> Segment:
    """The segmenter `name` for `language`: from a list of tidy lines to as many lines of spaced
    words.

    Raises `EmsError` when the tool is not installed, naming the package that brings it. What it
    returns raises `EmsError` for a line that is not tidy and for another number of lines.
    """
    check_available(name)
    segment = _MAKERS[name](language)

    def checked(lines: list[str]) -> list[str]:
        _check_tidy(lines, f"segmenter {name} ({language})")
        words = segment(lines)
        check_count(lines, words, f"segmenter {name} ({language})")
        return [line if _is_spaced(line) else " ".join(line.split()) for line in words]

    return checked


def _check_tidy(lines: list[str], what: str) -> None:
    for number, line in enumerate(lines, start=1):
        if not line.isprintable() and (found := _BREAKERS.search(line)):
            raise EmsError(
                f"{what}: line {number:,} of those given to it holds U+{ord(found[0]):04X}, which "
                "can shift or cut lines; clean the text first (ems.text.normalise.tidy)"
            )


def _is_spaced(line: str) -> bool:
    """Whether the words of a line are joined by single spaces already."""
    return (
        line.isprintable() and "  " not in line and line[:1] != " " and line[-1:] != " "
    )  # a space is the only white space that can be printed


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


def _moses(language: str, flags: tuple[str, ...] = ("-no-escape",)) -> Segment:
    script = files("mosestokenizer").joinpath("tokenizer-v1.1.perl")
    command = ["perl", str(script), "-q", *flags, "-l", language]
    return lambda lines: run_on_file(command, lines, "moses")


def _sacremoses(language: str) -> Segment:
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(language)
    return lambda lines: [" ".join(tokenizer.tokenize(line, escape=False)) for line in lines]


def _jieba(language: str) -> Segment:
    with warnings.catch_warnings():  # jieba 0.42 still imports pkg_resources
        warnings.simplefilter("ignore")
        import jieba

    jieba.setLogLevel("WARNING")

    def cut(lines: list[str]) -> list[str]:
        return [" ".join(jieba.cut(line)) for line in lines]

    return lambda lines: on_pieces(cut, lines, JIEBA_BYTES, "jieba")


def _rjieba(language: str) -> Segment:
    import rjieba

    return lambda lines: [" ".join(rjieba.cut(line)) for line in lines]


def _fugashi(language: str) -> Segment:
    from fugashi import Tagger

    tagger = Tagger("-Owakati")

    def parse(lines: list[str]) -> list[str]:
        return [tagger.parse(line) for line in lines]

    return lambda lines: on_pieces(parse, lines, FUGASHI_BYTES, "fugashi")


def _mecab_jumandic(language: str) -> Segment:
    command = ["mecab", "-Owakati", "-d", str(JUMANDIC), "-b", "1048576"]
    run = partial(run_on_file, command, name="mecab")
    return lambda lines: on_pieces(run, map(full_width_kana, lines), MECAB_BYTES, "mecab")


def _jumanpp(language: str) -> Segment:
    return jumanpp.segment


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
_MOSES = [
    (_full_perl, "needs the full Perl; install Debian's package `perl`"),
    (_module("mosestokenizer"), "needs the Python package `mosestokenizer`"),
]
_NEEDS: dict[str, list[tuple[Callable[[], bool], str]]] = {
    "none": [],
    "moses": _MOSES,
    "moses-aggressive": _MOSES,
    "moses-escaped": _MOSES,
    "moses-aggressive-escaped": _MOSES,
    "sacremoses": [(_module("sacremoses"), "needs the Python package `sacremoses`")],
    "jieba": [(_module("jieba"), "needs the Python package `jieba`")],
    "rjieba": [(_module("rjieba"), "needs the Python package `rjieba`")],
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
    "moses-aggressive": partial(_moses, flags=("-a", "-no-escape")),
    "moses-escaped": partial(_moses, flags=()),
    "moses-aggressive-escaped": partial(_moses, flags=("-a",)),
    "sacremoses": _sacremoses,
    "jieba": _jieba,
    "rjieba": _rjieba,
    "jumanpp": _jumanpp,
    "mecab-jumandic": _mecab_jumandic,
    "fugashi": _fugashi,
    "none": _none,
}
SEGMENTERS = tuple(_MAKERS)
