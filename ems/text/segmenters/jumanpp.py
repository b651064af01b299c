"""Juman++ 2, for Japanese: one call for many lines, pyknp for a sentence or two.

Juman++ drops lines that begin with `# ` and lines of over 4,096 bytes, so neither reaches it. Its
dictionary has full-width kana only, and it treats half-width spaces as words, so both become
full-width (SentencePiece's NFKC would do so anyway). `jumanpp --segment` is three times as fast for
many lines. pyknp, if installed, keeps a Juman++ running, which saves 0.07 s for a sentence. Both
give the same words: lines that pyknp cannot segment go to `--segment`.
"""

import importlib.util
import os
import signal
import subprocess
import threading
import warnings
from functools import cache, partial
from typing import TYPE_CHECKING

from ems.text.segmenters.base import (
    Segmenter,
    full_width_kana,
    program,
    run_filter,
    segment_in_pieces,
)

if TYPE_CHECKING:
    from pyknp import Juman

BYTES = 4000  # Juman++ 2 silently drops longer lines (its limit is 4,096)
FEW = 16  # lines that pyknp segments in less time than Juman++ takes to start
PATIENCE = 10  # seconds to wait for a line, which takes some milliseconds


def prepare(line: str) -> str:
    """Remove the comment sign of a line; make half-width spaces and kana full-width."""
    text = line.strip()
    text = text[0] + text[2:] if text.startswith("# ") else text
    return full_width_kana(text.replace(" ", "\u3000"))


def segment(prepared: list[str]) -> list[str]:
    """Segment prepared lines into words, separated by spaces of either width."""
    if len(prepared) > FEW or not _pyknp_works():
        return segment_many(prepared)
    answers = [ask(text) for text in prepared]
    rest = [text for text, words in zip(prepared, answers, strict=True) if words is None]
    others = iter(segment_many(rest) if rest else ())
    return [next(others) if words is None else words for words in answers]


def segment_many(prepared: list[str]) -> list[str]:
    run = partial(run_filter, ["jumanpp", "--segment"], name="jumanpp")
    return segment_in_pieces(run, prepared, BYTES, "jumanpp")


def ask(text: str) -> str | None:
    """Segment a prepared line with pyknp; return None if it fails, as for `#` or a kaomoji."""
    if not text:
        return ""
    if len(text.encode()) > BYTES:
        return None
    before = signal.getsignal(signal.SIGALRM)
    try:
        words = [morpheme.midasi for morpheme in _juman(os.getpid()).analysis(text)]
    except (ValueError, LookupError, AttributeError, OSError, subprocess.SubprocessError):
        _juman.cache_clear()  # an answer may still arrive: the next line needs a new process
        return None
    finally:
        signal.signal(signal.SIGALRM, before)
    return " ".join(words) if "".join(words) == text else None


def _pyknp_works() -> bool:
    """Return whether pyknp is installed and can use SIGALRM: main thread, no other alarm set."""
    return (
        importlib.util.find_spec("pyknp") is not None
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )


@cache
def _juman(process: int) -> "Juman":
    """Start a Juman++ for this process: shared after a fork, it would mix up the answers."""
    with warnings.catch_warnings():  # pyknp 0.6 still imports distutils
        warnings.simplefilter("ignore")
        from pyknp import Juman

        return Juman(jumanpp=True, timeout=PATIENCE)


SEGMENTER = Segmenter(
    lambda language: segment,
    needs=(
        program(
            "jumanpp",
            "the program `jumanpp` is not on PATH: install Juman++ 2 from its release tarball "
            "(github.com/ku-nlp/jumanpp), which holds the model",
        ),
    ),
    prepare=prepare,
    default_of=("ja",),
)
