"""A system: an encoder with the heads of its objectives, and the losses of a batch.

All objectives share one encoded batch; if one of them masks tokens, all see them masked
(Lightweight 3.3). Each loss is a sum over pairs, divided by the B pairs of the step (EMS v2 Eq.
12), even if the batch is one process's share of them. Losses are logged unweighted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ems.base.errors import EmsError
from ems.config.model import EncoderSettings
from ems.config.objectives import Objectives
from ems.config.train import TrainSettings
from ems.model import objectives  # puts all objectives into the source hash of training
from ems.model.devices import onto
from ems.model.encoder import Encoder, start_values
from ems.model.objectives.masking import HIDES, Masker, Pieces, sentence_keys
from ems.model.packing import Packing, pack
from ems.shards.reader import Batch
from ems.text.subwords import MASK


class Parts(Protocol):
    model: EncoderSettings
    objectives: Objectives
    train: TrainSettings


@dataclass(kw_only=True)
class DeviceBatch(Batch[Tensor]):
    """A `Batch` on a device: pairs from number `first` on, of the `total` pairs of the step."""

    sizes: Tensor  # lengths on the host, to pack without waiting for a GPU
    total: int
    first: int

    @classmethod
    def copy(
        cls, batch: Batch, device: torch.device, first: int = 0, total: int | None = None
    ) -> "DeviceBatch":
        """Copy a batch to a device; `total` defaults to the pairs of the batch."""
        fields = {name: value for name, value in vars(batch).items() if value is not None}
        step, sizes = fields.pop("step"), torch.from_numpy(batch.lengths)
        tensors = {name: onto(device, torch.from_numpy(value)) for name, value in fields.items()}
        tensors.setdefault("inputs", tensors["tokens"])
        return cls(**tensors, sizes=sizes, total=total or batch.pairs, first=first, step=step)

    @cached_property
    def packing(self) -> Packing:
        packing, device = pack(self.sizes), self.tokens.device
        return packing if device.type == "cpu" else packing.to(device)

    @cached_property
    def row(self) -> Tensor:
        """The row of each token's sentence, int64[T]."""
        return torch.repeat_interleave(self.rows, self.lengths, output_size=len(self.tokens))

    @cached_property
    def other(self) -> Tensor:
        """The row of each row's translation, int64[2B]."""
        return torch.arange(2 * self.pairs, device=self.rows.device).roll(self.pairs)

    def labels(self, masked: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return (row[T], token[T], lengths[2B]) of each row's translation, masked or not."""
        lengths = torch.empty_like(self.lengths).index_copy(0, self.rows, self.lengths)
        return self.other[self.row], self.inputs if masked else self.tokens, lengths[self.other]


@dataclass
class Encoded:
    """A batch with the states[T, d] of its tokens and the embeddings sentences[2B, d] by row."""

    batch: DeviceBatch
    states: Tensor | None  # None: encoded in parts (GradCache), or without layers
    sentences: Tensor

    @property
    def sides(self) -> tuple[Tensor, ...]:
        """The embeddings [B, d] of the first sides and of the second sides."""
        return self.sentences.split(self.batch.pairs)

    @property
    def masked(self) -> tuple[Tensor, Tensor]:
        """(row[M], token[M]): the sentences of the masked tokens, and these tokens."""
        return self.batch.row[self.batch.places], self.batch.tokens[self.batch.places]


@dataclass(frozen=True)
class Objective:
    """An objective: its `loss(system, encoded)`, summed over the pairs of a batch, and its needs.
    `add_head(heads, settings, languages, pieces)` adds to a system's heads. `flops(system,
    lengths[2B])` counts the operations of a forward pass, without the encoder.
    """

    loss: Callable[["System", Encoded], Tensor]
    add_head: Callable[[nn.ModuleDict, "Parts", int, int], None] = lambda *_: None
    hide: str = ""  # tokens to hide from the encoder (`Masker.hide`)
    states: bool = False  # True if the loss needs the states of tokens
    accuracy: Callable[["System", Encoded], Tensor] | None = None  # %, summed over pairs; logged
    flops: Callable[["System", np.ndarray], int] = lambda *_: 0
    order: int = 100  # position in sums and among heads: fixed, so that bits are reproducible


def linear_objective(name: str, loss: Callable[..., Tensor], **options: Any) -> Objective:
    """Create an objective whose head maps an embedding linearly to one number."""

    def add_head(heads: nn.ModuleDict, settings: Parts, languages: int, pieces: int) -> None:
        heads[name] = nn.Linear(settings.model.pooled_width, 1)
        start_values(heads[name], settings.model.start)

    def flops(system: System, lengths: np.ndarray) -> int:
        return 2 * linear_weights(system.heads[name]) * len(lengths)

    return Objective(loss, add_head, flops=flops, **options)


def load_objectives(settings: Objectives) -> dict[str, Objective]:
    """Import objectives with a weight, by `Objective.order`. Raises `EmsError` without a file."""
    loaded = {}
    for name in sorted(settings.active):
        module = f"{objectives.__name__}.{name}"
        if find_spec(module) is None:
            folder = objectives.__path__[0]
            raise EmsError(f"objectives.{name}: expected a file {name}.py in {folder}, found none")
        loaded[name] = import_module(module).OBJECTIVE
    return dict(sorted(loaded.items(), key=lambda item: item[1].order))


class System(nn.Module):
    """An encoder and heads for `languages` and `pieces`, whose `classes` guide masking."""

    def __init__(
        self,
        settings: Parts,
        languages: int,
        pieces: int,
        precision: str = "float32",
        classes: Pieces | None = None,
    ) -> None:
        super().__init__()
        model, self.settings = settings.model, settings.objectives
        self.objectives = load_objectives(self.settings)
        rated = [name for name, objective in self.objectives.items() if objective.accuracy]
        self.parts = [*self.objectives, *(f"{name}_accuracy" for name in rated), "total"]
        self.contrast = self.settings.contrastive
        pairs = self.contrast.negatives  # in a group of negatives; None: all of a step
        self.negatives = None if pairs == "batch" else pairs
        self.masked_labels = settings.train.input_mask == "one"
        needed = {settings.train.input_mask, *(one.hide for one in self.objectives.values())}
        hide = next((hide for hide in HIDES if hide in needed), None)
        words = np.arange(pieces) > MASK + languages  # after <pad>, <unk>, <mask>, language tokens
        classes = classes or Pieces(words, words)
        self.masker = Masker(hide, classes, model.max_tokens) if hide else None
        self.half = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)
        self.encoder = Encoder(model, pieces)
        self.heads = nn.ModuleDict()
        for objective in self.objectives.values():
            objective.add_head(self.heads, settings, languages, pieces)

    def prepared(
        self, batch: Batch, seed: int, step: int, first: int = 0, total: int | None = None
    ) -> Batch:
        """Add masks, keys and step to a batch: pairs from `first` on, of `total` in the step."""
        if self.masker:
            batch = self.masker(batch, seed, step, first, total)
        keys = sentence_keys(batch) if self.contrast.mask_duplicates else None
        return replace(batch, keys=keys, step=step)

    def forward(self, batch: DeviceBatch) -> dict[str, Tensor]:
        """Compute the losses and accuracies of a batch by name, and the weighted `total`."""
        packing = batch.packing if self.encoder.settings.attends else None
        return self.losses(batch, *self.encode(batch.inputs, batch.lengths, packing))

    def encode(
        self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None
    ) -> tuple[Tensor | None, Tensor]:
        """Encode packed tokens[T] of N sentences to states[T, d] and embeddings[N, d]. In half
        precision the residual stream is float32; float16 is only for training, as the authors do.
        """
        on = self.half == torch.bfloat16 or (self.half is not None and self.training)
        with torch.autocast(tokens.device.type, self.half, enabled=on):
            return self.encoder.both(tokens, lengths, packing)

    def losses(
        self, batch: DeviceBatch, states: Tensor | None, vectors: Tensor
    ) -> dict[str, Tensor]:
        """Compute the result of `forward` from states[T, d] and embeddings[2B, d] as encoded."""
        sentences = torch.empty_like(vectors).index_copy(0, batch.rows, vectors)  # (2B, d), by row
        encoded = Encoded(batch, states, sentences)
        named = self.objectives.items()
        parts = {name: each.loss(self, encoded) / batch.total for name, each in named}
        total = sum(getattr(self.settings, name).weight * part for name, part in parts.items())
        rated = [(name, each.accuracy(self, encoded)) for name, each in named if each.accuracy]
        rates = {f"{name}_accuracy": percent / batch.total for name, percent in rated}
        return {**parts, **rates, "total": total}


def similarity_flops(system: System, lengths: np.ndarray, width: int | None = None) -> int:
    """Count the operations that compare vectors[2B, width] (default: embeddings) in groups."""
    pairs = len(lengths) // 2
    group = min(system.negatives or pairs, pairs)
    return 4 * (width or system.encoder.settings.pooled_width) * pairs * group


def linear_weights(module: nn.Module) -> int:
    """Count the weights of a module's linear layers: half the operations of one row."""
    return sum(m.weight.numel() for m in module.modules() if isinstance(m, nn.Linear))
