"""`ems export --plain`: a table of one vector per entry, which needs no code of ours to load.

The entries are a BPE of the training text: its frequent words, and parts of the others. END closes
each word, so that no word is taken for the beginning of another one. The table is trained so that
the mean of a line's entries has the direction of the exact vector.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ems.base.errors import mistake
from ems.base.files import ENCODER, VOCABULARY, write_json, write_text
from ems.base.progress import Progress, log
from ems.base.texts import batched, read_lines
from ems.bench.retrieval import precision_at_1
from ems.config.languages import UNSEEN
from ems.export import PLAIN
from ems.export.folder import Exported, write_modules, write_tensors
from ems.export.tokenizer import make_tokenizer, pre_tokenizer
from ems.export.verify import packed
from ems.model.lines import unit_rows
from ems.model.static import StaticEncoder
from ems.text.segmenters.base import SPACE

END = "\u0003"  # closes a word; a tidy text has no control characters
ENDS = r"(?<=[^\s\p{P}\p{S}])(?=[\s\p{P}\p{S}]|\z)"
MEGABYTES, FILED = 115, 52  # of the folder, about; bytes of an entry without its int8 vector
TEXT_MB = 200  # of text to learn from, at most: about two million lines
HELD_BACK, MEASURED = 50, 2_000  # one pair in so many is not learnt; most pairs that are measured
LETTERS, LONGEST = 12_000, 20  # different characters, and characters of an entry, at most
BATCH, EPOCHS = 2048, 2
RATE = 0.05  # largest change of a number in a step, about, in units of the root mean square
MEAN, SQUARE = 0.9, 0.99  # decay of Adam's moments
AT_ONCE = 20_000  # lines or entries


@dataclass(frozen=True)
class Plain:
    """A plain table: its tokenizer, int8[entries, d] with a scale per entry, and what it loses."""

    tokenizer: Any
    rows: Tensor
    scales: Tensor
    loss: dict[str, float]  # measured on text that was held back

    @property
    def megabytes(self) -> float:
        return 1e-6 * (self.rows.nbytes + self.scales.nbytes)

    def encode(self, lines: Sequence[str]) -> np.ndarray:
        """Return the mean of each line's entries, float32[N, d]; zeros for a line without any."""
        ids, counts = tokenised(self.tokenizer, lines)
        starts, unique, places = np.cumsum(counts) - counts, *np.unique(ids, return_inverse=True)
        own = self.rows[unique] * self.scales[unique, None]
        bags = torch.from_numpy(places), own, torch.from_numpy(starts)
        return functional.embedding_bag(*bags, mode="mean").numpy()

    def write(self, exported: Exported, folder: Path, lines: Sequence[str]) -> bytes:
        """Write all files except the card; return what `verify_folder` expects of the lines."""
        limit = exported.settings.max_tokens
        self.tokenizer.enable_truncation(limit)
        write_tensors({"embeddings": self.rows, "weights": self.scales}, folder / ENCODER)
        write_text(folder / "tokenizer.json", self.tokenizer.to_str())
        of_model2vec = {"model_type": "model2vec", "normalize": True, "max_length": limit}
        write_json(folder / "config.json", of_model2vec)
        write_modules(exported, folder)
        about = {"exported_from": exported.description.sha256, "entries": len(self.rows)}
        write_json(folder / PLAIN, {**about, "loss": self.loss})
        tokens = [encoded.ids for encoded in self.tokenizer.encode_batch_fast(list(lines))]
        kept = [row for row, ids in enumerate(tokens) if ids]
        lines = [lines[row] for row in kept]
        return packed(lines, [np.array(tokens[row]) for row in kept], self.encode(lines))


def make_plain(exported: Exported, given: Sequence[Path]) -> Plain:
    """Train a plain table on text. Raises `EmsError` for a model with layers, and without text."""
    if exported.encoder.table is None or exported.graph:
        found = "--onnx or --int8" if exported.graph else f"layers: {exported.settings.layers}"
        raise mistake("not plain", found=found, exported=exported)
    width, ours = exported.dimensions, StaticEncoder(exported.model)
    ours.segmenters = dict.fromkeys(ours.segmenters, exported.segmenter)
    lines, held = read_text(exported.model, given)
    tokenizer = make_entries(exported, lines, int(MEGABYTES * 1e6) // (width + FILED))
    exact = _exact(ours, width, lines, "exact vectors")
    table = first_vectors(ours, width, tokenizer)
    table = trained(table, *tokenised(tokenizer, lines, "cut into entries"), exact)
    scales = table.abs().amax(1).clamp(min=1e-12) / 127
    rows = (table / scales[:, None]).round().to(torch.int8)
    plain = Plain(tokenizer, rows, scales, {})
    plain.loss.update(_loss(plain, partial(_exact, ours, width), held))
    return plain


def _exact(ours: StaticEncoder, width: int, lines: list[str], what: str = "") -> np.ndarray:
    """Return the vectors of the model, float16[N, d] of length 1."""
    vectors = np.empty((len(lines), width), np.float16)
    progress = Progress(what, len(lines), "lines")
    for start in range(0, len(lines), AT_ONCE):
        part = ours.encode(lines[start : start + AT_ONCE], UNSEEN, "", progress)
        vectors[start : start + AT_ONCE] = unit_rows(part[:, :width])
    progress.close()
    return vectors


def _loss(
    plain: Plain, exact: Callable[[list[str]], np.ndarray], held: list[tuple[str, str]]
) -> dict[str, float]:
    """Compare P@1 of pairs, the mean of both directions, and vectors with the exact ones."""
    loss, lines = {"pairs": len(held)}, [side for pair in held for side in pair]
    vectors = [unit_rows(encode(lines).astype(float)) for encode in (exact, plain.encode)]
    for name, rows in zip(("exact", "plain"), vectors, strict=True):
        source, target = rows[0::2], rows[1::2]
        loss[name] = (precision_at_1(source, target) + precision_at_1(target, source)) / 2
    return {**loss, "cosine": float((vectors[0] * vectors[1]).sum(1).mean())}


def read_text(model: Path, given: Sequence[Path]) -> tuple[list[str], list[tuple[str, str]]]:
    """Read files, by default the experiment's own text. Return distinct lines to learn from, and
    pairs that are held back, whose lines are not among them: by a hash of their first column.
    """
    own = model.resolve().parent.parent / "text/segmented"
    paths = list(given) or sorted(own.rglob("*.tsv"))
    if not paths:
        raise mistake("no text of the languages", own=own)
    share = TEXT_MB * 1e6 / max(1, sum(path.stat().st_size for path in paths))
    seen: dict[str, None] = {}
    held: dict[tuple[str, str], None] = {}
    for path in Progress("read text", len(paths), "files").over(paths):
        for line in read_lines(path):
            sides = line.split("\t")[:2]
            key = zlib.crc32(sides[0].encode())
            if key >= share * 2**32:
                continue
            if len(sides) == 2 and not key % HELD_BACK:
                held[sides[0], sides[1]] = None
            else:
                seen |= dict.fromkeys(side for side in sides if side.strip())
    for side in (side for pair in held for side in pair):
        seen.pop(side, None)
    if not seen or not held:
        words = {"lines": len(seen), "pairs": len(held), "files": len(paths)}
        raise mistake("little text", least=HELD_BACK, **words)
    return list(seen), list(held)[:: -(-len(held) // MEASURED)]


def make_entries(exported: Exported, lines: Sequence[str], most: int) -> Any:
    """Return a `tokenizers.Tokenizer` with at most so many entries, by frequency in the lines."""
    from tokenizers import Regex, models, normalizers, trainers

    vocabulary, format_ = exported.model / VOCABULARY, exported.description.format_characters
    tokenizer = make_tokenizer(vocabulary, exported.segmenter, format_, 1)
    tokenizer.no_truncation()
    ends = normalizers.Replace(Regex(ENDS), END)
    tokenizer.normalizer = normalizers.Sequence([tokenizer.normalizer, ends])
    tokenizer.pre_tokenizer = pre_tokenizer("unicode")
    tokenizer.model = models.BPE()
    limits = {"limit_alphabet": LETTERS, "max_token_length": LONGEST, "min_frequency": 2}
    trainer = trainers.BpeTrainer(vocab_size=most, show_progress=False, **limits)
    progress = Progress("count words", len(lines), "lines")
    tokenizer.train_from_iterator(progress.over(lines), trainer)  # the merges take a minute or two
    log.info("entries: %s", f"{tokenizer.get_vocab_size():,}")
    return tokenizer


def tokenised(
    tokenizer: Any, lines: Sequence[str], what: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of all lines, int64[T], and the count per line, int64[N]."""
    rows: list[np.ndarray] = []
    progress = Progress(what, len(lines), "lines")
    for batch in progress.over(batched(lines, len, AT_ONCE), len):
        rows += [np.array(line.ids, np.int32) for line in tokenizer.encode_batch_fast(batch)]
    return np.concatenate(rows).astype(np.int64), np.array([len(row) for row in rows])


def first_vectors(ours: StaticEncoder, width: int, tokenizer: Any) -> Tensor:
    """Return the closed form, float32[entries, d]: a line's exact vector, if all lines had the same
    ratio of pieces to n-grams, and no n-gram crossed entries.
    """
    entries = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    texts = [text.replace(SPACE, " ").replace(END, "").strip() for text, _ in entries]
    encoded = ours.encoded(texts, UNSEEN)
    return torch.from_numpy(encoded.vectors[:, :width] * encoded.tokens[:, None]).float()


def trained(table: Tensor, ids: np.ndarray, counts: np.ndarray, exact: np.ndarray) -> Tensor:
    """Return the table after EPOCHS over the lines, which maximise the mean cosine: Adam in the
    rows of a batch, with one second moment per row; the rate falls to 0.
    """
    starts, unit = np.cumsum(counts) - counts, RATE * table.square().mean().sqrt()
    mean, square = torch.zeros_like(table), torch.zeros(len(table), 1)
    draw, rows = np.random.default_rng(0), np.flatnonzero(counts)
    orders, parts = [draw.permutation(rows) for _ in range(EPOCHS)], -(-len(rows) // BATCH)
    batches = [np.sort(part) for order in orders for part in np.array_split(order, parts)]
    progress, total = Progress("train plain table", len(rows) * EPOCHS, "lines"), 0.0
    for step, lines in enumerate(batches, start=1):
        own = counts[lines]
        first = np.cumsum(own) - own
        places = np.repeat(starts[lines] - first, own) + np.arange(own.sum())
        unique, inverse = map(torch.from_numpy, np.unique(ids[places], return_inverse=True))
        vectors = table[unique].requires_grad_()
        means = functional.embedding_bag(inverse, vectors, torch.from_numpy(first), mode="mean")
        target = torch.from_numpy(exact[lines]).float()
        cosine = functional.cosine_similarity(means, target)
        (slope,) = torch.autograd.grad(-cosine.sum(), vectors)
        mean[unique] = moved = mean[unique].lerp(slope, 1 - MEAN)
        size = slope.square().mean(1, keepdim=True)
        square[unique] = size = square[unique].lerp(size, 1 - SQUARE)
        size = (size / (1 - SQUARE**step)).sqrt() + 1e-8
        rate = unit * (1 - step / len(batches)) / (1 - MEAN**step)
        table[unique] = vectors.detach() - rate * moved / size
        total = float(cosine.detach().mean())
        progress.add(len(lines), f"cosine {total:.3f}")
    progress.close(f"cosine {total:.3f}")
    return table
