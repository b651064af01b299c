"""Juman++ 2 (EMS v2 section IV-B): one call for many lines, pyknp for a sentence or two.

Notable choices:
- Juman++ drops lines that begin with `# ` and lines over 4,096 bytes, so both are kept from it;
  half-width kana become full-width ones first, since its dictionary has no others (SentencePiece's
  NFKC would make them so anyway), and half-width spaces full-width ones: of the others it makes
  words;
- many lines go through `jumanpp --segment`, three times as fast as pyknp, which waits for an answer
  to each line;
- a few lines go through pyknp, where it is installed, to a Juman++ that stays: each call is 0.07 s
  shorter, which somebody at a keyboard feels. Each process makes its own when it first needs one:
  shared after a fork, it answers with the lines of another process, without an error;
- both ask the same analyser about the same prepared text, so whether pyknp is there changes no
  result. What it cannot say goes the other way: no words for `#`, ValueError for a kaomoji, no
  answer in time, words that do not add up to the line;
- pyknp keeps time by SIGALRM, so it is used in the main thread alone and not while another alarm
  runs, and the handler that was there comes back.
"""

import contextlib
import importlib.util
import os
import signal
import subprocess
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from ems.text.external import fits, full_width_kana, on_pieces, run_on_file

BYTES = 4000  # Juman++ 2 silently drops longer lines (its limit is 4,096)
FEW = 16  # lines that pyknp does sooner than Juman++ starts and reads its model
PATIENCE = 10  # seconds for the answer to a line, of which it takes some milliseconds


def segment(lines: list[str]) -> list[str]:
    """The words of each tidy line, between spaces (of either width)."""
    prepared = list(map(prepare, lines))
    if len(prepared) > FEW or not _can_ask():
        return segment_many(prepared)
    answers = [ask(text) for text in prepared]
    rest = [text for text, words in zip(prepared, answers, strict=True) if words is None]
    others = iter(segment_many(rest) if rest else ())
    return [next(others) if words is None else words for words in answers]


def prepare(line: str) -> str:
    """A line as Juman++ can take it: no comment sign, no half-width space, no half-width kana."""
    text = line.strip()
    text = text[0] + text[2:] if text.startswith("# ") else text
    return full_width_kana(text.replace(" ", "\u3000"))


def segment_many(prepared: list[str]) -> list[str]:
    """The words of prepared lines, by one run of Juman++."""
    command = ["jumanpp", "--segment"]
    return on_pieces(
        lambda lines: run_on_file(command, lines, "jumanpp"), prepared, BYTES, "jumanpp"
    )


def ask(text: str) -> str | None:
    """The words of a prepared line by pyknp; None where they cannot be had from it."""
    if not text:
        return ""
    if not fits(text, BYTES):
        return None
    try:
        with _handler_kept():
            words = [morpheme.midasi for morpheme in _juman(os.getpid()).analysis(text)]
    except (ValueError, LookupError, AttributeError, OSError, subprocess.SubprocessError):
        _juman.cache_clear()  # an answer may still be on its way: the next line needs another one
        return None
    return " ".join(words) if "".join(words) == text else None


def _can_ask() -> bool:
    """Whether pyknp is here, and can keep time."""
    return (
        importlib.util.find_spec("pyknp") is not None
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )


@cache
def _juman(process: int) -> Any:
    """The Juman++ of this process."""
    with warnings.catch_warnings():  # pyknp 0.6 still imports distutils
        warnings.simplefilter("ignore")
        from pyknp import Juman

        return Juman(jumanpp=True, timeout=PATIENCE)


@contextlib.contextmanager
def _handler_kept() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
