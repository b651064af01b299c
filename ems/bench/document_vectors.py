"""One embedding for each document, whatever its length.

EMS v2 sections V-E and V-F embed documents with an encoder of at most 120 tokens and do not say
how. Here a document of more tokens than `documents.split` is cut into sentences, and the mean of
their embeddings is the document's; a shorter one is one line.

Notable choices:
- tokens are counted by the encoder itself (its `token_counts`). One without token ids is counted by
  words: runs of letters and digits, each character of a script without spaces, and each mark;
- embeddings stay as they come, as in LASER's tasks/mldoc: nothing is normalised.
"""

import re
from itertools import accumulate

import numpy as np

from ems.bench.task import LineEncoder, Task
from ems.evalsets.documents import sentences

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")


def token_counts(encoder: LineEncoder, lines: list[str], language: str) -> list[int]:
    """Tokens of each line: the encoder's own, or an estimate by words where it has none."""
    count = getattr(encoder, "token_counts", None)
    return count(lines, language) if count else [len(WORD.findall(line)) for line in lines]


def embed_documents(task: Task, texts: list[str], language: str, where: str) -> np.ndarray:
    """Embeddings float32[N, d] of N texts, whose line ends end sentences too.

    Raises `EmsError` for an embedding that is not finite; `where` says of which part it is.
    """
    pieces = split_long(task.encoder, texts, language, task.experiment.documents.split)
    lines = [line for document in pieces for line in document]
    vectors = task.features(lines, language, where)
    counts = [len(document) for document in pieces]
    if len(lines) == len(texts):
        return vectors
    starts = [0, *accumulate(counts)][:-1]
    sums = np.add.reduceat(vectors, starts, axis=0)  # [lines, d] -> [N, d]
    return sums / np.array(counts, np.float32)[:, None]


def split_long(
    encoder: LineEncoder, texts: list[str], language: str, limit: int
) -> list[list[str]]:
    """The lines that each text is embedded by: itself, or its sentences if it has more tokens than
    `limit` (0: never).
    """
    whole = [" ".join(text.split()) for text in texts]
    counts = token_counts(encoder, whole, language) if limit else [0] * len(whole)
    return [
        ([" ".join(part.split()) for part in sentences(text)] if count > limit else []) or [line]
        for text, line, count in zip(texts, whole, counts, strict=True)
    ]
