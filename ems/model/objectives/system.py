"""A system: an encoder with the heads of its objectives, and the losses of a batch.

All objectives see the same encoded batch; if one of them masks tokens, all see them masked
(Lightweight 3.3). Each part is a sum over pairs, divided by the B pairs of the step (EMS v2 Eq.
12), also where the batch is one process's share of them. Parts are logged unweighted.
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
from ems.model import objectives  # as a whole: its files are a part of the source of training
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


@dataclass
class DeviceBatch:
    """A `Batch` as tensors on a device: the pairs from `first` on of the `total` of the step."""

    tokens: Tensor
    lengths: Tensor
    rows: Tensor
    languages: Tensor
    inputs: Tensor
    sizes: Tensor  # the lengths on the host, for packing without waiting for a GPU
    total: int
    first: int = 0
    step: int = 0
    targets: Tensor | None = None
    places: Tensor | None = None
    keys: Tensor | None = None

    @classmethod
    def of(
        cls, batch: Batch, device: torch.device, first: int = 0, total: int | None = None
    ) -> "DeviceBatch":
        """Copy a batch to a device; without `total` it is all of its step."""
        fields = {name: value for name, value in vars(batch).items() if value is not None}
        step, sizes = fields.pop("step"), torch.from_numpy(batch.lengths)
        tensors = {name: onto(device, torch.from_numpy(value)) for name, value in fields.items()}
        tensors.setdefault("inputs", tensors["tokens"])
        return cls(**tensors, sizes=sizes, total=total or batch.pairs, first=first, step=step)

    @property
    def pairs(self) -> int:
        return len(self.rows) // 2

    @cached_property
    def packing(self) -> Packing:
        packing, device = pack(self.sizes), self.tokens.device
        return packing if device.type == "cpu" else packing.to(device)

    @cached_property
    def row(self) -> Tensor:
        """Return the row of each token's sentence, int64[T]."""
        return torch.repeat_interleave(self.rows, self.lengths, output_size=len(self.tokens))

    @cached_property
    def other(self) -> Tensor:
        """Return the row of the translation of each row, int64[2B]."""
        return torch.arange(2 * self.pairs, device=self.rows.device).roll(self.pairs)

    def labels(self, masked: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return (row[T], token[T], lengths[2B]): the tokens of the translation of each row."""
        lengths = torch.empty_like(self.lengths).index_copy(0, self.rows, self.lengths)
        return self.other[self.row], self.inputs if masked else self.tokens, lengths[self.other]


@dataclass
class Encoded:
    """A batch, the states[T, d] of its tokens and its sentences[2B, d] by row."""

    batch: DeviceBatch
    states: Tensor | None  # None: encoded in parts (GradCache), or by a table alone
    sentences: Tensor

    @property
    def sides(self) -> tuple[Tensor, ...]:
        """Return the embeddings [B, d] of the first and of the second sides."""
        return self.sentences.split(self.batch.pairs)

    @property
    def masked(self) -> tuple[Tensor, Tensor]:
        """Return (row[M], token[M]): the sentences of the masked tokens, and these tokens."""
        return self.batch.row[self.batch.places], self.batch.tokens[self.batch.places]


@dataclass(frozen=True)
class Objective:
    """One objective: its `loss(system, encoded)`, a sum over the pairs of a batch; what it needs.

    `add_head(heads, settings, languages, pieces)` adds to the heads of a system. `accuracy` is a
    percentage, summed over pairs; it is logged. `flops(system, lengths[2B])` are the operations of
    a forward pass, without the encoder.
    """

    loss: Callable[["System", Encoded], Tensor]
    add_head: Callable[[nn.ModuleDict, "Parts", int, int], None] = lambda *_: None
    hide: str = ""  # what the encoder must not see (`Masker.hide`)
    states: bool = False  # whether the loss needs the states of tokens
    accuracy: Callable[["System", Encoded], Tensor] | None = None
    flops: Callable[["System", np.ndarray], int] = lambda *_: 0
    order: int = 100  # in sums and among heads, so that the same settings give the same bits


def linear_objective(name: str, loss: Callable[..., Tensor], **more: Any) -> Objective:
    """Return an objective whose head is a linear map of an embedding to one number."""

    def add_head(heads: nn.ModuleDict, settings: Parts, languages: int, pieces: int) -> None:
        heads[name] = nn.Linear(settings.model.pooled_width, 1)
        start_values(heads[name], settings.model.start)

    def flops(system: System, lengths: np.ndarray) -> int:
        return 2 * linear_weights(system.heads[name]) * len(lengths)

    return Objective(loss, add_head, flops=flops, **more)


def load_objectives(settings: Objectives) -> dict[str, Objective]:
    """Return the objectives that have a weight in `objectives` of an experiment, in their order.

    Raises `EmsError` for one without a file of its name.
    """
    loaded = {}
    for name in sorted(settings.active):
        module = f"{objectives.__name__}.{name}"
        if find_spec(module) is None:
            folder = objectives.__path__[0]
            raise EmsError(f"objectives.{name}: expected a file {name}.py in {folder}, found none")
        loaded[name] = import_module(module).OBJECTIVE
    return dict(sorted(loaded.items(), key=lambda item: item[1].order))


class System(nn.Module):
    def __init__(
        self,
        settings: Parts,
        languages: int,
        pieces: int,
        precision: str = "float32",
        known: Pieces | None = None,
    ) -> None:
        super().__init__()
        model, self.settings = settings.model, settings.objectives
        self.objectives = load_objectives(self.settings)
        self.contrast = self.settings.contrastive
        self.masked_labels = settings.train.input_mask == "one"
        needed = {settings.train.input_mask, *(each.hide for each in self.objectives.values())}
        hide = next((hide for hide in HIDES if hide in needed), None)
        words = np.arange(pieces) > MASK + languages  # after <pad>, <unk>, <mask>, language tokens
        known = known or Pieces(words, words)
        self.masker = Masker(hide, known, model.max_tokens) if hide else None
        self.half = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)
        self.encoder = Encoder(model, pieces)
        self.heads = nn.ModuleDict()
        for objective in self.objectives.values():
            objective.add_head(self.heads, settings, languages, pieces)

    @cached_property
    def layer_weights(self) -> int:
        return linear_weights(self.encoder.layers)

    def prepared(
        self, batch: Batch, seed: int, step: int, first: int = 0, total: int | None = None
    ) -> Batch:
        """Return the batch of a step with what the objectives need: masks, keys, its number.

        Its pairs are those from `first` on of the `total` of the step (all of them, if None).
        """
        if self.masker:
            batch = self.masker(batch, seed, step, first, total)
        keys = sentence_keys(batch) if self.contrast.mask_duplicates else None
        return replace(batch, keys=keys, step=step)

    def forward(self, batch: DeviceBatch) -> dict[str, Tensor]:
        """Return the loss parts of a batch by name, accuracies, and the weighted `total`."""
        packing = batch.packing if self.encoder.settings.attends else None
        return self.losses(batch, *self.encode(batch.inputs, batch.lengths, packing))

    def encode(
        self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None
    ) -> tuple[Tensor | None, Tensor]:
        """Return states[T, d] and embeddings[N, d] of packed tokens[T] of N sentences.

        In half precision the residual stream stays float32. float16 is for training alone: the
        authors validate in float32.
        """
        on = self.half == torch.bfloat16 or (self.half is not None and self.training)
        with torch.autocast(tokens.device.type, self.half, enabled=on):
            return self.encoder.both(tokens, lengths, packing)

    def losses(
        self, batch: DeviceBatch, states: Tensor | None, vectors: Tensor
    ) -> dict[str, Tensor]:
        """Return what `forward` returns, from states[T, d] and embeddings[2B, d] in their order."""
        sentences = torch.empty_like(vectors).index_copy(0, batch.rows, vectors)  # (2B, d), by row
        encoded = Encoded(batch, states, sentences)
        parts = {
            name: objective.loss(self, encoded) / batch.total
            for name, objective in self.objectives.items()
        }
        total = sum(getattr(self.settings, name).weight * part for name, part in parts.items())
        rates = {
            f"{name}_accuracy": objective.accuracy(self, encoded) / batch.total
            for name, objective in self.objectives.items()
            if objective.accuracy
        }
        return {**parts, **rates, "total": total}

    @property
    def parts(self) -> list[str]:
        rated = [name for name, objective in self.objectives.items() if objective.accuracy]
        return [*self.objectives, *(f"{name}_accuracy" for name in rated), "total"]

    @property
    def negatives(self) -> int | None:
        """Return the pairs of a group; None for all of a step."""
        return None if self.contrast.negatives == "batch" else self.contrast.negatives


def similarity_flops(system: System, lengths: np.ndarray, width: int | None = None) -> int:
    """Count the operations of comparing vectors (default: the embeddings) with their groups."""
    pairs = len(lengths) // 2
    group = min(system.negatives or pairs, pairs)
    return 4 * (width or system.encoder.settings.pooled_width) * pairs * group


def linear_weights(module: nn.Module) -> int:
    """Count the weights of the linear layers of a module: half the operations of one row."""
    return sum(m.weight.numel() for m in module.modules() if isinstance(m, nn.Linear))
