"""Probe a file of text before it is believed: an even sample, judged row by row.

A file lies about itself in its head (NLLB is sorted), so the sample is taken over all of it: every
k-th row, where k doubles whenever twice SAMPLE rows are held. Both sides of a zip, which are read
one after the other, so keep the same rows. Repetitions are counted by hash among the first HASHED
rows: in a longer file the share is a lower bound.

A row counts for the first reason that fits, in the order of probe.tsv, which has the wording and
the least share that is reported. Languages are identified on at least LETTERS characters:
neighbouring rows of the sample are joined until both sides have them.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, TypeVar

import numpy as np

from ems.base.errors import mistake
from ems.base.files import read_table
from ems.base.progress import log
from ems.base.records import Bounds, Count, Record
from ems.base.texts import BLOCK
from ems.config.languages import language_names
from ems.corpora.identifier import NO_LANGUAGE, alike, identifier, letters_of, unknown

SAMPLE = 2000  # rows that are judged
HASHED = 1 << 17  # rows among which repetitions are counted
CUT, LONGEST = 1000, 1 << 20  # characters of a row that are judged, bytes that are hashed
LETTERS = 30  # characters of a text whose language is identified
SURE = 0.7  # probability of a language that is believed
SERIES = 3  # rows that differ in numbers only
NAMED = 3  # languages in a message
FEWEST = 50  # rows with text that an error needs
HALF = 0.5  # share of wrong rows that is an error
BAD_ROW = "\0"  # stands for a row that cannot be read, which cleaning counts
SHOWN = 60  # characters of a side in a message
# bytes of UTF-8 that were read as Latin-1 or CP1252: a lead byte and what may follow it
_NEXT = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
MOJIBAKE = re.compile(f"[Â-ß]{_NEXT}|[à-ï]{_NEXT}{{2}}|ð{_NEXT}{{3}}|\ufffd")
LETTER, NOT_ASCII, DIGITS = re.compile(r"[^\W\d_]"), re.compile(r"[^\x00-\x7f]"), re.compile(r"\d+")
_PHRASES = Path(__file__).with_name("boilerplate.txt").read_text("utf-8").splitlines()
BOILERPLATE = re.compile("|".join(_PHRASES), re.IGNORECASE)
Share = Annotated[float, Bounds(ge=0, le=1), "a share"]
Row = TypeVar("Row", bound=Sequence[str])
Texts = tuple[str, ...]  # of a row, a text for each side


class Probe(Record):
    """Result for a file: number of rows judged, share of them that is `wrong`, share by reason and
    side ("swapped", "empty de"), a sentence on each that is reported, languages not known.
    """

    rows: Count
    wrong: Share
    shares: dict[str, Share]
    findings: dict[str, str]
    unknown: list[str]

    @property
    def text(self) -> str:
        parts = list(self.findings.values()) or ["nothing found"]
        parts += [f"not judged by language: {', '.join(self.unknown)}"] if self.unknown else []
        return f"{self.rows:,} rows sampled: {'; '.join(parts)}"


def check_probe(place: str, probe: Probe | None, accept: str = "") -> None:
    """Raise `EmsError` for a file that is more than half wrong, unless the user accepts it."""
    if probe and probe.wrong > HALF and not accept:
        raise mistake("wrong file", place=place, wrong=f"{100 * probe.wrong:.0f}", found=probe.text)


def tell(place: str, probe: Probe) -> None:
    """Log the findings, if there are any, and languages that were not judged."""
    if probe.findings:
        log.warning("%s: %s", place, probe.text)
    elif probe.unknown:
        log.info("%s: %s", place, probe.text)


class Side:
    """An even sample of the lines of one side, as bytes or text, and hashes of the first lines."""

    def __init__(self) -> None:
        self.lines, self.step, self.kept, self.hashes = 0, 1, list[bytes | str](), array("q")

    def add(self, lines: Sequence[bytes | str]) -> None:
        self.kept += [line[:CUT] for line in lines[-self.lines % self.step :: self.step]]
        self.hashes.extend(map(hash, lines[: max(HASHED - self.lines, 0)]))
        self.lines += len(lines)
        self.thin()

    def thin(self) -> None:
        while len(self.kept) >= 2 * SAMPLE:
            self.kept, self.step = self.kept[::2], 2 * self.step

    def count(self, stream: BinaryIO) -> int:
        """Add all lines of a stream, of which only some are cut out; return their number."""
        rest = b""
        while block := stream.read(BLOCK):
            block = rest + block
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            start = ends[-1] + 1 if len(ends) else 0
            if self.lines < HASHED:
                self.add(block[:start].split(b"\n")[:-1])
            else:
                wanted = range(-self.lines % self.step, len(ends), self.step)
                starts = [ends[at - 1] + 1 if at else 0 for at in wanted]
                self.kept += [block[first : first + CUT].partition(b"\n")[0] for first in starts]
                self.lines += len(ends)
                self.thin()
            rest = block[start:][:LONGEST]
        if rest:
            self.add([rest])
        return self.lines


class Sample:
    """A sample of the rows of a file; `codes` are the languages of their sides."""

    def __init__(self, codes: Sequence[str]) -> None:
        self.codes, self.sides = codes, [Side() for _ in codes]

    def over(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Add rows while they are read on."""
        rows = iter(rows)
        while batch := list(islice(rows, SAMPLE)):
            for at, side in enumerate(self.sides):
                side.add([row[at] for row in batch])
            yield from batch

    def probe(self) -> Probe:
        kept = [side.kept for side in self.sides]
        count = min(len(kept[0]), SAMPLE)
        chosen = [at * len(kept[0]) // count for at in range(count)]
        lines = [at * self.sides[0].step + 1 for at in chosen]
        rows = [tuple(_text(side[at]) for side in kept) for at in chosen]
        hashes = [np.array(side.hashes, np.int64) for side in self.sides]
        mixed = sum(each * (2 * at + 1) for at, each in enumerate(hashes))
        mixed = mixed[hashes[0] != hash(BAD_ROW)]
        repeated = 1 - len(np.unique(mixed)) / len(mixed) if len(mixed) else 0.0
        return judge(self.codes, rows, lines, repeated)


def _text(line: bytes | str) -> str:
    if isinstance(line, str):
        return line
    text = line.decode(errors="replace")
    return (text.rstrip("\ufffd") if len(line) == CUT else text).rstrip("\r\n")


# --- the judgement

Reason = tuple[str, str]  # of probe.tsv, and the code of a side, or "" for both
REPEATED: Reason = ("repeated", "")


def judge(codes: Sequence[str], rows: list[Texts], lines: list[int], repeated: float) -> Probe:
    """Judge rows of texts in the languages `codes`; `repeated` is the share of repeated rows."""
    wrong: dict[Reason, dict[int, str]] = {}  # -> row: the language found there
    readable = [at for at, row in enumerate(rows) if BAD_ROW not in row]
    first = {rows[at]: at for at in reversed(readable)}
    numberless = Counter(map(_numberless, first))
    rest = []
    for at in readable:
        if reason := _reason(codes, rows[at], numberless):
            wrong.setdefault(reason, {})[at] = ""
        else:
            rest.append(at)
    for group in _joined(rows, rest):
        texts = [" ".join(rows[at][side] for at in group) for side in range(len(codes))]
        for reason, language in _languages(codes, texts):
            wrong.setdefault(reason, {}).update(dict.fromkeys(group, language))
    total = max(len(readable), 1)
    bad = len(set().union(*wrong.values())) / total
    shares = {reason: len(members) / total for reason, members in wrong.items()}
    if repeated and readable:
        again = next((at for at in readable if first[rows[at]] != at), readable[0])
        wrong[REPEATED], shares[REPEATED] = {again: ""}, repeated
    findings: dict[str, str] = {}
    sentences = {row["reason"]: row for row in read_table(Path(__file__).with_suffix(".tsv"))}
    for reason, share in sorted(shares.items(), key=lambda each: -each[1]):
        sentence = sentences[reason[0]]
        if share >= float(sentence["least"]):
            at, languages = min(wrong[reason]), Counter(filter(None, wrong[reason].values()))
            top = [each for each in languages.most_common(NAMED) if 200 * each[1] >= total]
            found = [f"{_name(x)} {100 * n / total:.0f} %" for x, n in top]
            words = sentence["sentence"].format(side=_name(reason[1]), found=", ".join(found))
            shown = " | ".join(text[:SHOWN] for text in rows[at])
            example = f"line {lines[at]:,}: {shown!r}"
            findings[" ".join(reason).strip()] = f"{100 * share:.0f} % {words}, like {example}"
    enough = sum(any(rows[at]) for at in readable) >= FEWEST
    return Probe(
        rows=len(readable),
        wrong=round(max(bad, repeated), 4) if enough else 0.0,
        shares={" ".join(reason).strip(): round(share, 4) for reason, share in shares.items()},
        findings=findings,
        unknown=unknown(codes),
    )


def _name(code: str) -> str:
    return language_names().get(code, code)


def _reason(codes: Sequence[str], row: Texts, numberless: Counter[Texts]) -> Reason | None:
    for code, text in zip(codes, row, strict=True):
        if not text.strip():
            return "empty", code
        broken = sum(map(len, MOJIBAKE.findall(text)))
        if broken and 2 * broken > len(NOT_ASCII.findall(text)):
            return "mojibake", code
        if not LETTER.search(text):
            return "numbers", code
    if len(row) == 2 and row[0].strip().casefold() == row[1].strip().casefold():
        return "identical", ""
    if numberless[_numberless(row)] >= SERIES or any(map(BOILERPLATE.search, row)):
        return "boilerplate", ""
    return None


def _numberless(row: Texts) -> Texts:
    return tuple(DIGITS.sub("0", text) for text in row)


def _joined(rows: list[Texts], members: Iterable[int]) -> Iterator[list[int]]:
    """Yield groups of neighbouring rows with LETTERS characters on each side; the rest is left."""
    group, lengths = list[int](), [0, 0]
    for at in members:
        group.append(at)
        lengths = [length + len(text) for length, text in zip(lengths, rows[at], strict=False)]
        if min(lengths) >= LETTERS:
            yield group
            group, lengths = [], [0, 0]


def _languages(codes: Sequence[str], texts: Sequence[str]) -> list[tuple[Reason, str]]:
    """Return (reason, language found) for texts in wrong languages or scripts."""
    classified = map(identifier().classify, texts)
    sure = [language if p >= SURE and language != NO_LANGUAGE else "" for language, p in classified]
    own = {code: alike(code) for code in codes}
    sides = [(code, found) for code, found in zip(codes, sure, strict=True) if found and own[code]]
    wrong = [(code, found) for code, found in sides if found not in own[code]]
    pair = len(codes) == 2 and all(sure) and bool(wrong)
    if pair and len(wrong) == 2 and sure[0] in own[codes[1]] and sure[1] in own[codes[0]]:
        return [(("swapped", ""), "")]
    if pair and alike(sure[0]) == alike(sure[1]):
        return [(("same language", ""), sure[0])]
    if wrong:
        return [(("wrong language", code), found) for code, found in wrong]
    scripts = zip(codes, texts, strict=True)
    return [(("other script", code), "") for code, text in scripts if _in_other_script(code, text)]


def _in_other_script(code: str, text: str) -> bool:
    """Return whether less than a third of the letters are in the script of a language."""
    own = letters_of(code)
    return bool(own) and 3 * len(own.findall(text)) < len(LETTER.findall(text))
