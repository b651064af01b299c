"""The experiment `tiny` with other settings, text to clean and segment, a stand-in for Juman++."""

import html
import os
import sys
import unicodedata
from collections import deque
from dataclasses import replace
from functools import partial
from pathlib import Path

import regex
from conftest import needs, write_program
from made.experiments import shipped

from ems.base.errors import EmsError
from ems.base.files import atomic_path, state_of
from ems.config.text import CleanSettings
from ems.text.bulk import LINES, Segmenting
from ems.text.clean import CleanSource, clean_corpus, eval_keys, through_filters
from ems.text.filters import CleanReport, in_batches, row_filters
from ems.text.segmenters.base import check_available, load, segmenter


def tiny(corpus=None, **changes):
    """The experiment, of one corpus if that is given; of some groups only the given keys change."""
    if corpus:
        changes |= {"corpora": (corpus,), "validation": ()}
    for key in {"clean", "decontaminate", "vocabulary"} & changes.keys():
        settings = getattr(shipped("tiny"), key)
        given = {name: value for name, value in settings if value is not None}
        changes[key] = type(settings)(**given | changes[key])
    return replace(shipped("tiny"), **changes)


def of_languages(*codes, **changes):
    return tiny(languages={code: shipped("tiny").languages[code] for code in codes}, **changes)


def cleaned(experiment, archives, keys, pair="de-en", name="out.tsv"):
    """(the columns of each line that stays, the report) of the corpus of an experiment."""
    corpus, out = experiment.corpora[0], keys.with_name(name)
    source = CleanSource(corpus.label, corpus.version, pair, tuple(archives))
    entry = clean_alone(experiment, source, keys, out)
    return [line.split("\t") for line in out.read_bytes().decode().split("\n")[:-1]], entry


def clean_alone(experiment, source, keys, out):
    """Clean one pair as `ems prepare` does, but segment nothing; return the report."""
    known = eval_keys(experiment, source, keys)
    return clean_corpus(experiment, source, known, out, partial(deque, maxlen=0))


def segment_alone(source, out, languages, names, workers=1, lines=LINES, state=None):
    """Segment a clean file as `ems prepare` does while it cleans."""
    segmenting = Segmenting(languages, names, state or state_of(out), workers, lines)
    with atomic_path(out) as temporary:
        segmenting.write(temporary, [source.read_text(encoding="utf-8")])
    segmenting.finish()


def law(text):
    """The folded key, the plain way: NFKC, lower case, letters, digits and marks."""
    return regex.sub(r"[^\p{L}\p{N}\p{M}]+", "", unicodedata.normalize("NFKC", text).lower())


def passed(rows, report, sides=("de", "en"), known=None, key="folded", settings=None):
    """Yield the rows that stay. `report` counts the others."""
    settings = settings or CleanSettings()
    filters = row_filters(settings, sides, known or {}, key)
    folder = Path("scratch")
    batches = through_filters(in_batches(rows), filters, settings, report, folder)
    for batch in batches:
        report.kept += len(batch)
        yield from batch


def filtered(pairs, sides=("de", "en"), known=None, key="folded", **settings):
    """((first, second) that stay, report) of pairs that may hold None."""
    report = CleanReport(read=len(pairs))
    numbered = [(first, second, at) for at, (first, second) in enumerate(pairs, start=1)]
    rows = passed(numbered, report, sides, known, key, CleanSettings(**settings))
    kept = [row[:2] for row in rows]
    assert report.read == report.kept + report.removed.total()
    assert report.kept == len(kept)
    return kept, report


# --- segmenters that can run here, and lines that have broken them


def usable(name, language):
    needs(runs(name), f"the segmenter {name} cannot run here")
    load.cache_clear()  # the test may have changed it
    return segmenter.__wrapped__(name, language)


def runs(name):
    try:
        check_available(name)
    except EmsError:
        return False
    return True


NASTY = ["", " ", "   ", "\u3000", "# x", "#", "# ", "#  x", "## # x", "EOS", "EOS EOS", "*"]
NASTY += ["\"double\" 'single' «guillemets» “curly”", "<tag>", "\\ \\n \\t %s $x `y`", "_ a__b"]
NASTY += ["[b] {c} (d) <e> & | ; &amp; &#91; &apos;", "state-of-the-art it's l'eau @-@"]
NASTY += ["Mr. Smith of the U.S.A. paid 3.14 or 1,000... no..", "emoji 😀👩‍👩‍👧 x"]
NASTY += ["mixed日本語のテキスト и русский 한국어 हिन्दी ไทย العربية", "cafe\u0301 café"]
NASTY += ["zero\u200bwidth\u200cjoiner\ufeff", "全角　スペース、ＡＢＣ１２３"]
NASTY += ["http://a.example/b?c=d&e=f#g h@i.example"]
NASTY += ["x" * 10_000, "some words " * 10_000]  # 110 kB
NASTY += ["これは長い行です。" * 4_000, "# " + "長い " * 10_000, "last"]  # 108 kB


def characters(line):
    return "".join(line.split())


def assert_nothing_is_lost(segment, name):
    words = segment(NASTY)
    assert len(words) == len(NASTY)
    for line, segmented in zip(NASTY, words, strict=True):
        plain = html.unescape(segmented) if "escaped" in name else segmented
        assert comparable(plain, name) == comparable(line, name)
        assert segmented == " ".join(segmented.split())


def comparable(line, name):
    text = characters(line)
    if "aggressive" in name:
        text = text.replace("@-@", "-")
    if name in ("jumanpp", "mecab-jumandic", "unicode", "jieba", "rjieba"):  # other widths
        text = unicodedata.normalize("NFKC", text)
    if name == "unicode":  # it normalises as SentencePiece does
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return text


# A stand-in for Juman++ 2, which cannot be installed everywhere, with the failures of a real build.
# `jumanpp --segment` silently drops a line that begins with `# ` or is longer than 4,096 bytes and
# exits with 0; a half-width space becomes a token, each half-width kana is one token. Empty lines,
# `#` alone, `EOS`, tabs, control characters and emoji come through.
PROGRAM = """#!{python}
import re, sys

def segmented(line):
    words = re.findall(r"[ァ-ヴー]+|\\(\\^ ?\\^\\)|.", line.decode(), re.DOTALL)
    return ["\\\\\u2423" if word == " " else word for word in words]

def say(text):
    sys.stdout.buffer.write((text + "\\n").encode())
    sys.stdout.buffer.flush()

assert sys.argv[1:] == ["--segment"], sys.argv
for number, line in enumerate(sys.stdin.buffer):
    line = line.removesuffix(b"\\n")
    if line.startswith(b"# ") or {drop}:
        continue  # without a word
    if len(line) > 4096:
        print("too long", file=sys.stderr)
        continue  # and the exit status is 0
    say(" ".join(segmented(line)))
{end}
"""


def put_jumanpp(folder: Path, monkeypatch, **flags: str) -> Path:
    """Put a `jumanpp` on PATH; `drop`: which other lines it drops, `end`: how it ends."""
    program = folder / "bin" / "jumanpp"
    plain = {"drop": "False", "end": "", "python": sys.executable}
    write_program(program, PROGRAM.format(**plain | flags))
    path = os.environ["PATH"]
    if str(program.parent) not in path.split(os.pathsep):
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{path}")
    return program
