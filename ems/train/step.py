"""One batch -> the losses of a system, for training and for validation alike.

Notable choices:
- an objective is one function of `OBJECTIVES` and its settings; one of weight 0 has no head and is
  never called;
- all of them see the same encoded batch, one forward pass: where tokens are masked, all see them
  masked (Lightweight 3.3: "the masked token is omitted in the following equations");
- each part is a sum over pairs, divided by the B pairs of the step (EMS v2 Eq. 12), also where the
  batch is one process's share of them; parts are logged unweighted;
- what looks at several pairs at once (contrastive, align, similarity) does so within each group of
  negatives.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ems.model.device import onto
from ems.model.encoder import Encoder, EncoderSettings
from ems.model.heads import ContrastiveHead, GenerativeHead, HeadSettings
from ems.model.packing import Packing, pack
from ems.objectives.align import align_loss
from ems.objectives.contrastive import in_batch_loss, margin_at
from ems.objectives.fused import Target, fused_cross_entropy, kl_loss
from ems.objectives.matryoshka import matryoshka_loss
from ems.objectives.mlm import mlm_target
from ems.objectives.negatives import Groups
from ems.objectives.sampled import sampled_cross_entropy
from ems.objectives.similarity import similarity_loss
from ems.objectives.smlm import smlm_target
from ems.objectives.ugt import ugt_target
from ems.objectives.xtr import xtr_target
from ems.shards.reader import Batch
from ems.train.masking import Pieces, masker_of, sentence_keys

GENERATIVE = ("xtr", "ugt", "smlm", "mlm")  # they share one head


class System(nn.Module):
    """An encoder with the heads that its objectives need."""

    def __init__(
        self,
        settings: dict[str, Any],
        languages: int,
        pieces: int,
        precision: str = "float32",
        kinds: Pieces | None = None,
    ) -> None:
        super().__init__()
        model, objectives = EncoderSettings(**settings["model"]), settings["objectives"]
        self.objectives = {name: objectives[name] for name in OBJECTIVES if _on(objectives, name)}
        self.contrast: dict[str, Any] = objectives["contrastive"]
        self.masked_labels = settings["train"]["input_mask"] == "one"
        self.masker = masker_of(settings, kinds or Pieces.assumed(pieces, languages))
        self.half = precision == "bfloat16"
        self.encoder = Encoder(model, pieces)
        self.heads = nn.ModuleDict()
        if any(name in self.objectives for name in GENERATIVE):
            head = HeadSettings(**objectives["head"])
            self.heads["generative"] = GenerativeHead(model, head, languages, pieces)
        if "contrastive" in self.objectives and self.contrast["width"]:
            self.heads["contrastive"] = ContrastiveHead(model, self.contrast["width"])

    def prepared(
        self, batch: Batch, seed: int, step: int, first: int = 0, total: int | None = None
    ) -> Batch:
        """The batch of a step with what the objectives need of it: masks, keys, its number.

        A pure function; `first` and `total` as in `Masker`. In validation seed and step are
        constants, so that it is a function of the model only.
        """
        if self.masker:
            batch = self.masker(batch, seed, step, first, total)
        keys = sentence_keys(batch) if self.contrast["mask_duplicates"] else None
        return replace(batch, keys=keys, step=step)

    def forward(self, batch: "DeviceBatch") -> dict[str, Tensor]:
        """The loss parts of a batch by name, and their weighted `total`."""
        return self.losses(batch, *self.encode(batch.inputs, batch.lengths, batch.packing))

    def encode(
        self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None
    ) -> tuple[Tensor, Tensor]:
        """Packed tokens[T] of N sentences -> states[T, d] of the tokens, and embeddings[N, d]."""
        with self._mixed(tokens):
            return self.encoder.both(tokens, lengths, packing)

    def losses(
        self, batch: "DeviceBatch", states: Tensor | None, vectors: Tensor
    ) -> dict[str, Tensor]:
        """What `forward` gives, of a batch that is encoded; only `mlm` needs the states."""
        sentences = torch.empty_like(vectors).index_copy(0, batch.rows, vectors)  # (2B, d), by row
        encoded = Encoded(batch, states, sentences)
        parts = {name: OBJECTIVES[name](self, encoded) / batch.total for name in self.objectives}
        total = sum(self.objectives[name]["weight"] * part for name, part in parts.items())
        return {**parts, "total": total}

    def _mixed(self, tokens: Tensor) -> torch.autocast:
        """Matrix products of the encoder in half precision; its residual stream stays float32."""
        return torch.autocast(tokens.device.type, torch.bfloat16, enabled=self.half)

    def generate(
        self, loss: Callable[..., Tensor], states: Tensor, languages: Tensor, target: Target
    ) -> Tensor:
        """`loss` of the generative head at states[N, d], told languages[N], against a target."""
        head = self.heads["generative"]
        output = self.encoder.tokens if head.output is None else head.output
        dtype = torch.bfloat16 if self.half else None
        return loss(head(states, languages), output.weight, target, head.bias, dtype)

    def contrasted(self, vectors: Tensor, batch: "DeviceBatch") -> Tensor:
        """The contrastive loss of vectors[2B, k]; in validation with the whole margin."""
        own = self.contrast
        warmup = own["margin_warmup_steps"] if self.training else 0
        margin = margin_at(own["margin"], warmup, batch.step)
        how = (own["temperature"], margin, own["both_sides"], batch.keys)
        return in_batch_loss(vectors, *how, self.groups(batch))

    @property
    def negatives(self) -> int | None:
        """Pairs of a group; None for all of a step."""
        return None if self.contrast["negatives"] == "batch" else self.contrast["negatives"]

    def groups(self, batch: "DeviceBatch") -> Groups:
        """Which pairs are negatives of which; a batch smaller than a group (validation) is one."""
        size = min(self.negatives or batch.total, batch.total)
        return Groups(size, batch.pairs, batch.first, batch.total)


def _on(objectives: dict[str, Any], name: str) -> bool:
    return objectives[name]["weight"] > 0


@dataclass
class DeviceBatch:
    """A `Batch` as tensors on a device; the fields are those of `Batch`.

    Its pairs are those from `first` on of the `total` of the step.
    """

    tokens: Tensor
    lengths: Tensor
    rows: Tensor
    languages: Tensor
    pairs: int
    inputs: Tensor
    sizes: Tensor  # the lengths on the host, where the packing is made: no GPU is waited for
    places: Tensor | None = None
    keys: Tensor | None = None
    step: int = 0
    first: int = 0
    total: int = 0

    @classmethod
    def of(
        cls, batch: Batch, device: torch.device, first: int = 0, total: int | None = None
    ) -> "DeviceBatch":
        def moved(array: np.ndarray | None) -> Tensor | None:
            return None if array is None else onto(device, torch.from_numpy(array))

        tokens, lengths, rows, languages = map(
            moved, (batch.tokens, batch.lengths, batch.rows, batch.languages)
        )
        return cls(
            tokens,
            lengths,
            rows,
            languages,
            batch.pairs,
            tokens if batch.inputs is None else moved(batch.inputs),
            torch.from_numpy(batch.lengths),
            moved(batch.places),
            moved(batch.keys),
            batch.step,
            first,
            total or batch.pairs,
        )

    @cached_property
    def packing(self) -> Packing:
        """Where its tokens belong; not made for a batch that is encoded in parts."""
        packing, device = pack(self.sizes), self.tokens.device
        return packing if device.type == "cpu" else packing.to(device)

    @cached_property
    def row(self) -> Tensor:
        """int64[T]: the row of the sentence of each token."""
        return torch.repeat_interleave(self.rows, self.lengths, output_size=len(self.tokens))

    @cached_property
    def other(self) -> Tensor:
        """int64[2B]: the row of the translation of each row."""
        return torch.arange(2 * self.pairs, device=self.rows.device).roll(self.pairs)

    def labels(self, masked: bool) -> tuple[Tensor, Tensor, Tensor]:
        """(row[T], token[T], lengths[2B]): the tokens of the translation of each row."""
        lengths = torch.empty_like(self.lengths).index_copy(0, self.rows, self.lengths)
        return self.other[self.row], self.inputs if masked else self.tokens, lengths[self.other]


@dataclass
class Encoded:
    """A batch and its states[T, d] of tokens, in the batch's order, and sentences[2B, d] by row.

    There are no states where the batch is encoded in parts (ems.train.memory).
    """

    batch: DeviceBatch
    states: Tensor | None
    sentences: Tensor


# --- the objectives: each a sum over the pairs of a batch


def _xtr(system: System, encoded: Encoded) -> Tensor:
    """Each sentence predicts the tokens of the other side, told that side's language; in validation
    against the whole vocabulary, whatever training does.
    """
    batch, sentences, own = encoded.batch, encoded.sentences, system.objectives["xtr"]
    labels = batch.labels(system.masked_labels)
    target = xtr_target(*labels, sentences.dtype, own["target"])
    sampled = own["sampled"] if system.training else 0
    cross_entropy = (
        partial(sampled_cross_entropy, count=sampled) if sampled else fused_cross_entropy
    )
    loss = partial(kl_loss, cross_entropy=cross_entropy)
    return system.generate(loss, sentences, batch.languages[batch.other], target)


def _ugt(system: System, encoded: Encoded) -> Tensor:
    """As XTR, and half of the label of a sentence with a masked token is that token."""
    batch, sentences = encoded.batch, encoded.sentences
    kind = system.objectives["ugt"]["target"]
    hidden = batch.row[batch.places], batch.tokens[batch.places]  # (B,) each
    target = ugt_target(batch.labels(kind == "distinct"), *hidden, sentences.dtype, kind)
    return system.generate(kl_loss, sentences, batch.languages[batch.other], target)


def _smlm(system: System, encoded: Encoded) -> Tensor:
    """Both sides predict the masked token, told its language."""
    batch, sentences = encoded.batch, encoded.sentences
    masked, hidden = batch.row[batch.places], batch.tokens[batch.places]  # (B,) each
    told = batch.languages.index_copy(0, batch.other[masked], batch.languages[masked])  # (2B,)
    target = smlm_target(masked, batch.other[masked], hidden, sentences.dtype)
    return system.generate(fused_cross_entropy, sentences, told, target)


def _mlm(system: System, encoded: Encoded) -> Tensor:
    """The states of masked tokens predict them, told their language."""
    batch = encoded.batch
    states = encoded.states[batch.places].to(encoded.sentences.dtype)  # (M, d)
    row = batch.row[batch.places]  # (M,)
    target = mlm_target(row, batch.tokens[batch.places], states.dtype)
    return system.generate(fused_cross_entropy, states, batch.languages[row], target)


def _contrastive(system: System, encoded: Encoded) -> Tensor:
    """Eq. 8 of the MLP's output, or of the embeddings where there is no MLP."""
    vectors = encoded.sentences
    if "contrastive" in system.heads:
        vectors = system.heads["contrastive"](vectors)  # (2B, d_cntrs)
    return system.contrasted(vectors, encoded.batch)


def _align(system: System, encoded: Encoded) -> Tensor:
    sides = encoded.sentences.split(encoded.batch.pairs)
    return align_loss(*sides, system.groups(encoded.batch))


def _similarity(system: System, encoded: Encoded) -> Tensor:
    sides = encoded.sentences.split(encoded.batch.pairs)
    return similarity_loss(*sides, system.groups(encoded.batch))


def _matryoshka(system: System, encoded: Encoded) -> Tensor:
    dimensions = system.objectives["matryoshka"]["dimensions"]
    return matryoshka_loss(
        encoded.sentences, dimensions, lambda part: system.contrasted(part, encoded.batch)
    )


OBJECTIVES: dict[str, Callable[[System, Encoded], Tensor]] = {
    "xtr": _xtr,
    "ugt": _ugt,
    "smlm": _smlm,
    "mlm": _mlm,
    "contrastive": _contrastive,
    "align": _align,
    "similarity": _similarity,
    "matryoshka": _matryoshka,
}
