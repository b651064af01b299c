"""Pair the documents of two folders that are probably translations of each other.

The vector of a document is the concatenation of WINDOWS vectors of length 1. Each is a sum of its
sentence vectors, weighted by their distance from the middle of the window, log(1 + characters), and
log((1 + documents) / documents with this sentence), which is small for menus and footers. Source:
Thompson and Koehn (EMNLP 2020, doi 10.18653/v1/2020.emnlp-main.483), who have 16 windows, the
inverse number of documents, a PCA of the sentence vectors and no normalisation of windows.
docs/align.md compares. `ems.bench.margin` then pairs the exact neighbours, one to one.
"""

import re
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ems.base.errors import EmsError
from ems.base.files import atomic_path, visible_files
from ems.base.progress import Progress, log
from ems.base.texts import batched, is_visible
from ems.bench.margin import pairs_of
from ems.bench.nearest import Distinct, nearest
from ems.model.lines import unit_rows
from ems.text.keys import hashes_of
from ems.use.arguments import limit
from ems.use.encoder import Encoder
from ems.use.stream import TextInput

WINDOWS, SPREAD = 6, 0.16  # number, and standard deviation as a share of the document
CENTRES = (np.arange(WINDOWS) + 0.5) / WINDOWS
NEIGHBOURS = 4  # of the margin


class DocumentFolder(TextInput):
    """A folder of texts with a sentence per line; `skip` skips bad lines and files of no text."""

    def files(self) -> list[Path]:
        """Return the visible files, sorted. Raises `EmsError` if none, or a name is not for TSV."""
        if not self.path.is_dir():
            raise EmsError(f"{self.path}: expected a folder of documents, found no folder")
        if not (files := visible_files(self.path)):
            raise EmsError(f"{self.path}: expected documents, found no file in this folder")
        for path in files:
            if re.search("[\t\n\r\ud800-\udfff]", str(path)):
                raise EmsError(f"{path}: a tab, a line end or no UTF-8 in the name; rename it")
        return files

    def lines_of(self, path: Path, report: bool = False) -> list[str]:
        """Return the lines of a document that have text. Raises `EmsError` for a bad document."""
        try:
            lines = TextInput(path, skip=self.skip).texts(report).values()
        except EmsError as error:
            if not self.skip:
                raise
            if report:
                log.warning("%s; skipped", error)
            return []
        return [line.strip() for line in lines if is_visible(line)]

    def encoded(self, encoder: Encoder, name: str) -> tuple[list[Path], Distinct]:
        """Return the documents with text and their vectors, float16[N, WINDOWS * d]. Documents are
        read twice, with 8 bytes a sentence kept. Raises `EmsError` if all are empty.
        """
        paths, files, hashes = self.files(), [], []
        for path in Progress(f"read {name}", len(paths), "documents").over(paths):
            if lines := self.lines_of(path, report=True):
                files.append(path)
                hashes.append(hashes_of(lines))
        if not files:
            raise EmsError(f"{self.path}: expected documents with text, found only empty ones")
        if empty := len(paths) - len(files):
            log.warning("%s: documents without text, in no pair: %s", self.path, f"{empty:,}")
        sentences, counts = np.unique(np.concatenate([*map(np.unique, hashes)]), return_counts=True)
        progress = Progress(f"encode {name}", len(files), "documents")
        vectors = np.empty((len(files), WINDOWS * encoder.width(*self.languages)), np.float16)
        texts = batched(map(self.lines_of, files), lambda lines: sum(map(len, lines)))
        for batch in progress.over(texts, len):
            flat = [line for lines in batch for line in lines]
            found = np.searchsorted(sentences, hashes_of(flat)).clip(max=len(sentences) - 1)
            weights = np.log1p([*map(len, flat)]) * np.log((1 + len(files)) / counts[found])
            ends = np.cumsum([*map(len, batch)])[:-1]
            rows = encoder.vectors(flat, *self.languages, normalise=True)
            parts = zip(np.split(rows, ends), np.split(weights, ends), strict=True)
            for number, part in enumerate(parts, start=progress.done):
                vectors[number] = document_vector(*part)
        encoder.warn_of_unknown(self.path)
        copies = (blake2b(own.tobytes()).hexdigest() for own in hashes)
        return files, Distinct(vectors, copies)


def document_vector(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the vector, float16[WINDOWS * d], of sentences[n, d] with weights[n]."""
    places = (np.arange(len(vectors)) + 0.5) / len(vectors)
    near = np.exp(-0.5 * ((places - CENTRES[:, None]) / SPREAD) ** 2)  # [WINDOWS, n]
    windows = unit_rows((near * weights).astype(np.float32) @ vectors)  # [WINDOWS, d]
    return unit_rows(windows.reshape(1, -1))[0].astype(np.float16)


def align_documents(
    encoder: Encoder,
    folders: tuple[DocumentFolder, DocumentFolder],
    out: Path,
    threshold: float | None = None,
    device: str = "auto",
) -> None:
    """Write the pairs that reach `threshold`, the best first: score<TAB>source path<TAB>target
    path. The score is the ratio margin. A document is in one pair at most.
    """
    for folder in folders:  # before long work on the first
        folder.files()
        encoder.width(*folder.languages)
    sources, first = folders[0].encoded(encoder, "source")
    targets, second = folders[1].encoded(encoder, "target")
    neighbours = nearest(first, second, NEIGHBOURS, device, "compare documents")
    pairs = pairs_of(neighbours, (first, second), "ratio", least=limit(threshold))
    rows = zip(pairs.score.tolist(), pairs.first.tolist(), pairs.second.tolist(), strict=True)
    with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as writer:
        writer.writelines(f"{score!r}\t{sources[i]}\t{targets[k]}\n" for score, i, k in rows)
    counts = len(pairs.score), len(sources), len(targets)
    log.info("%s: %s pairs of %s and %s documents", out, *(f"{count:,}" for count in counts))
