"""Align pairs of documents and write them: as TSV, JSON lines, TMX, Moses files, or a page.

Many documents are aligned in pieces of DOCUMENTS pairs by several processes. Finished pieces are
kept next to the output file, so that a killed run resumes and writes the same bytes.
"""

import base64
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from ems.base.errors import EmsError, mistake, needs_extra
from ems.base.files import parse_json
from ems.base.outputs import FlagPath, check_outputs
from ems.base.progress import Progress, log
from ems.base.provenance import source_hash
from ems.base.texts import STREAM, is_visible, one_field
from ems.text.pieces import Advance, Piece, cut, done_pieces
from ems.use.align import align
from ems.use.encoder import Encoder
from ems.use.stream import BadLine, TextInput, plain, scratch, text_of, write

DOCUMENTS = 64  # pairs of documents in a piece
WEAK = 0.35  # a lower mean score is a warning: translations have 0.6, other texts 0.1
# Scripts whose sentences are joined without a space: kana, Han, full-width forms
DENSE = "\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
JOINT = re.compile(f"(?<=[{DENSE}])\n(?=[{DENSE}])")
Languages = tuple[str | None, str | None]
Text = list[str]  # of a document: its lines


class Row(NamedTuple):
    """One alignment with its sentences; lines are numbered from 1."""

    source: list[str]
    target: list[str]
    score: float
    source_lines: list[int]
    target_lines: list[int]
    documents: list[str]  # names of both; [] if there is one pair of documents only


@dataclass(frozen=True)
class AlignJob:
    """Documents to align: the model, and how to read them."""

    model: str | None
    languages: Languages = (None, None)
    largest: int = 8
    split: bool = False  # lines into sentences, which are then numbered instead
    skip: bool = False  # bad lines, and bad pairs of documents
    device: str = "auto"
    precision: str = "float32"

    @property
    @cache  # noqa: B019  in a worker process, for all its pieces
    def encoder(self) -> Encoder:
        return Encoder(self.model, self.device, self.precision)

    def read(self, path: Path, side: int) -> Text:
        """Read the lines of a document; a skipped bad line is empty."""
        texts = TextInput(path, (self.languages[side],), self.skip).texts()
        return [texts.get(number, "") for number in range(1, max(texts, default=0) + 1)]

    def rows(self, texts: list[Text], names: list[str], what: str = "") -> list[Row]:
        """Align two documents; log progress as `what`."""
        if self.split:
            both = zip(texts, self.languages, strict=True)
            texts = [
                [part for line in text for part in sentences(line, code)] for text, code in both
            ]
        source, target = texts
        progress = Progress(what, sum(map(is_visible, source)), "sentences")
        found = align(self.encoder, source, target, *self.languages, self.largest, progress)
        progress.close()
        rows = []
        for one, other, score in found:
            sides = source[one.start : one.stop], target[other.start : other.stop]
            lines = [line + 1 for line in one], [line + 1 for line in other]
            rows.append(Row(*sides, round(score, 4), *lines, names))
        return rows

    def write_piece(self, piece: Piece, out: Path, advance: Advance) -> None:
        """Write the alignments of a piece of a list of pairs of documents, as JSON lines."""
        with open(piece.source, "rb") as reader, open(out, "w", encoding="utf-8") as writer:
            reader.seek(piece.start)
            for number in range(piece.first, piece.first + piece.lines):
                try:
                    texts, names = self._documents(reader.readline())
                except (BadLine, EmsError) as error:
                    problem = f"documents, line {number:,}: {error}"
                    if not self.skip:
                        raise mistake("bad documents", problem=problem) from None
                    log.warning("%s; skipped", problem)
                    continue
                rows = self.rows(texts, names)
                writer.writelines(as_json(row._asdict()) for row in rows)
                advance(1)

    def _documents(self, line: bytes) -> tuple[list[Text], list[str]]:
        """Read the two documents that a row of a list names or holds. Raises `BadLine`."""
        columns = line.rstrip(b"\r\n").split(b"\t")
        if len(columns) >= 4:  # of Bitextor: both addresses, both texts in base64
            return [*map(_decoded, columns[2:4])], [*map(text_of, columns[:2])]
        paths = [*map(text_of, columns[-2:])]  # after a score, perhaps
        if len(paths) < 2:
            raise BadLine("expected two paths, or two addresses and two texts in base64")
        return [self.read(Path(path), side) for side, path in enumerate(paths)], paths


def _decoded(column: bytes) -> Text:
    try:
        text = base64.b64decode(column, validate=True)
    except ValueError as error:
        raise BadLine(f"not base64 ({error})") from None
    return [text_of(line).rstrip("\r") for line in text.split(b"\n")]


def sentences(text: str, language: str | None) -> list[str]:
    """Split a line into sentences by the rules of a language; an empty line stays."""
    with needs_extra("--split", "split"):
        from sentencex import segment
    return [part.strip() for part in segment(language or "en", text) if part.strip()] or [""]


def listed(folder: Path, languages: Languages) -> list[bytes]:
    """Return the pairs of documents of a folder, NAME.<source language> and NAME.<target language>,
    as rows of a list with the times of their last change. Raises `EmsError` if there are none.
    """
    if None in languages:
        raise mistake("no languages of a folder", folder=folder)
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    own, other = (f".{language}" for language in languages)
    stems = sorted(name.removesuffix(own) for name in files if name.endswith(own))
    pairs = [(files[stem + own], files[stem + other]) for stem in stems if stem + other in files]
    if not pairs:
        raise EmsError(f"{folder}: expected files NAME{own} and NAME{other}, found no such pair")
    if alone := len([name for name in files if name.endswith((own, other))]) - 2 * len(pairs):
        log.warning("%s: %s files have no partner and are left out", folder, f"{alone:,}")
    rows = ([[path.stat().st_mtime_ns for path in pair], *pair] for pair in pairs)
    return [f"{times}\t{one}\t{two}\n".encode(errors="surrogateescape") for times, one, two in rows]


# --- forms


def joined(lines: list[str]) -> str:
    """Join sentences into one text: by spaces, or by nothing in Chinese and Japanese."""
    return JOINT.sub("", "\n".join(one_field(line).strip() for line in lines)).replace("\n", " ")


def as_tsv(row: Row) -> str:
    """Return source, target, score, the lines of both (3-4), and the names of both documents."""
    numbers = ["-".join(map(str, sorted({*own[:1], *own[-1:]}))) for own in row[3:5]]
    fields = [joined(row.source), joined(row.target), f"{row.score:.4f}", *numbers, *row.documents]
    return "\t".join(fields) + "\n"


def as_jsonl(row: Row, languages: Sequence[str]) -> str:
    """Return an object with the text of each language, the score, the lines, and the documents."""
    texts = dict(zip(languages, map(joined, row[:2]), strict=True))
    about = {"score": row.score, "lines": [row.source_lines, row.target_lines]}
    return as_json({**texts, **about, "documents": row.documents})


def as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def as_vecalign(row: Row) -> str:
    """Return the line numbers from 0, and 1 - score, as vecalign and Bleualign write them."""
    one, other = ([line - 1 for line in own] for own in row[3:5])
    return f"{one}:{other}:{1 - row.score if one and other else 0:.6f}\n"


def as_tmx(row: Row, languages: Sequence[str]) -> str:
    """Return a translation unit of TMX 1.4 (https://www.gala-global.org/tmx-14b)."""
    sides = "".join(
        f'<tuv xml:lang="{language}"><seg>{html.escape(joined(side), False)}</seg></tuv>'
        for language, side in zip(languages, row[:2], strict=True)
    )
    return f'<tu><prop type="score">{row.score:.4f}</prop>{sides}</tu>\n'


def as_html(row: Row) -> str:
    """Return a row of the page: the weaker an alignment, the stronger its shade."""
    one, other = ("<br>".join(map(html.escape, side)) for side in row[:2])
    numbers = as_tsv(row).rstrip("\n").split("\t")[3:5]
    shade, score = ' class="alone"', "no partner"
    if one and other:
        shade = f' style="--weak:{min(max(0, 1.25 - row.score / WEAK), 1):.2f}"'
        score = f"{row.score:.2f}"
    sides = [f'<td>{n}<td dir="auto">{text}' for n, text in zip(numbers, (one, other), strict=True)]
    return f"<tr{shade}>{''.join(sides)}<td>{score}</tr>\n"


@dataclass(frozen=True)
class Output:
    """Where alignments go, in which form, and the least score of a pair that is kept."""

    path: Path
    form: str
    languages: Languages
    threshold: float | None = None  # None: all, and lone sentences where the form has a place

    @property
    def files(self) -> list[Path]:
        """The files that are written; of Moses, one per side."""
        if self.form != "moses":
            return [self.path]
        return [self.path.with_name(f"{self.path.name}.{name}") for name in self.endings]

    @property
    def endings(self) -> list[str]:
        """The languages; "source" and "target" if one is unknown or both are the same."""
        own = [language for language in self.languages if language]
        return own if len(set(own)) == 2 else ["source", "target"]

    def check(self, inputs: Iterable[Path]) -> None:
        """Raise `EmsError` if a file of Moses cannot be written, or is an input."""
        if self.form == "moses":
            if self.path == STREAM:
                raise EmsError("--format moses writes two files: expected --out with their name")
            flags = [FlagPath("--out", path) for path in self.files]
            check_outputs(flags, [FlagPath("an input", path) for path in inputs if path != STREAM])

    def write(self, rows: Callable[[], Iterable[Row]], title: str) -> None:
        """Write rows, which are read twice, and log their number and mean score."""
        score, alone, shapes = 0.0, 0, Counter[str]()
        for row in rows():
            if row.source and row.target:
                shapes[f"{len(row.source)}:{len(row.target)}"] += 1
                score += row.score
            else:
                alone += 1
        mean = score / max(1, shapes.total())
        common = ", ".join(f"{count:,} {shape}" for shape, count in shapes.most_common(5))
        counts = f"{shapes.total():,} alignments ({common}), {alone:,} without a partner"
        log.info("%s: %s, mean score %.2f", title, counts, mean)
        if mean < WEAK:
            log.warning("%s: a mean score below %s: hardly translations of each other", title, WEAK)
        kept = partial(filter, self._keeps)
        if self.form == "moses":
            for side, path in enumerate(self.files):
                write(path, (f"{joined(row[side])}\n".encode() for row in kept(rows())))
        else:
            write(self.path, self._parts(kept(rows()), title))

    def _keeps(self, row: Row) -> bool:
        if not (row.source and row.target):
            return self.threshold is None and self.form not in ("moses", "tmx")
        return self.threshold is None or row.score >= self.threshold

    def _parts(self, rows: Iterable[Row], title: str) -> Iterator[bytes]:
        page = Path(__file__).with_name(f"aligned.{self.form}")
        codes = [language or "und" for language in self.languages]
        head = tail = ""
        if page.exists():
            page = Template(page.read_text("utf-8"))
            text = page.substitute(title=html.escape(title), source=codes[0], target=codes[1])
            head, tail = text.split("<!-- rows -->\n")
        forms = {"vecalign": as_vecalign, "html": as_html, "tmx": partial(as_tmx, languages=codes)}
        forms |= {"jsonl": partial(as_jsonl, languages=self.endings)}
        yield head.encode()
        yield from (forms.get(self.form, as_tsv)(row).encode() for row in rows)
        yield tail.encode()


# --- commands


def align_files(job: AlignJob, source: Path, target: Path, output: Output) -> None:
    """Align one pair of documents. Raises `EmsError` for one without lines."""
    output.check((source, target))
    for path in (source, target):
        TextInput(path).check()
    texts = [job.read(path, side) for side, path in enumerate((source, target))]
    rows = job.rows(texts, [], "align")
    output.write(lambda: rows, f"{source.name} and {target.name}")


def align_documents(job: AlignJob, documents: Path, output: Output, threads: int) -> None:
    """Align the pairs of documents of a folder or a list with several processes."""
    if output.form in ("html", "vecalign"):
        raise EmsError(f"--format {output.form} is for one pair of documents; choose tsv or jsonl")
    with scratch(output.path) as state, ExitStack() as stack:
        if documents.is_dir():
            source = state / "documents"
            write(source, listed(documents, job.languages))
        else:
            source = stack.enter_context(plain(documents, state / "documents"))
        output.check([documents])
        pieces, sha256 = cut(source, DOCUMENTS)
        key = [job.encoder.identity, repr(job), sha256, source_hash(__name__)]
        work, place = job.write_piece, state / "pieces"
        made = done_pieces("align", work, pieces, place, key, threads, "documents")
        files = stack.enter_context(made)
        output.write(lambda: chain.from_iterable(map(_rows_of, files)), str(documents))


def _rows_of(path: Path) -> Iterator[Row]:
    with open(path, encoding="utf-8") as reader:
        for line in reader:
            yield Row(**parse_json(line))
