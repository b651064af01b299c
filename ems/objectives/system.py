"""A system: an encoder with the heads of its objectives, and the losses of a batch.

Notable choices:
- an objective is a file of this package, found by its name; one of weight 0 has no head and is
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
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ems import objectives  # as a whole: each of its files is a part of the source of training
from ems.errors import EmsError
from ems.model.encoder import Encoder
from ems.model.packing import Packing
from ems.model.settings import EncoderSettings
from ems.objectives.batch import DeviceBatch, Encoded
from ems.objectives.masking import HIDES, Masker, Pieces, sentence_keys
from ems.objectives.negatives import Groups
from ems.objectives.settings import Objectives
from ems.shards.reader import Batch
from ems.train.settings import TrainSettings


class Parts(Protocol):
    """The settings of a system that it is made of."""

    model: EncoderSettings
    objectives: Objectives
    train: TrainSettings


@dataclass(frozen=True)
class Objective:
    """One objective: its loss, and what it needs.

    `loss(system, encoded)` is a sum over the pairs of a batch. `add_head(heads, settings,
    languages, pieces)` adds to the heads of a system what the loss needs of them. `hide` says which
    tokens are hidden from the encoder (as `Masker.hide`; none, if empty), `states` whether the loss
    needs the states of tokens besides the sentence embeddings. `flops(system, lengths[2B])` are the
    operations of a forward pass, those of the encoder left out, for the log. `order` is the place
    in sums and among the heads, whatever the order of an experiment's keys: the same settings give
    the same bits. Equal ones are in the order of their names.
    """

    loss: Callable[["System", Encoded], Tensor]
    add_head: Callable[[nn.ModuleDict, "Parts", int, int], None] = lambda *_: None
    hide: str = ""
    states: bool = False
    flops: Callable[["System", np.ndarray], int] = lambda *_: 0
    order: int = 100


def load_objective(name: str) -> Objective:
    """Return the `OBJECTIVE` of the file of this name. Raises `EmsError` if there is none."""
    module = f"{objectives.__name__}.{name}"
    if find_spec(module) is None:
        folder = objectives.__path__[0]
        raise EmsError(f"objectives.{name}: expected a file {name}.py in {folder}, found none")
    return import_module(module).OBJECTIVE


def load_objectives(settings: Objectives) -> dict[str, Objective]:
    """Return the objectives that have a weight in `objectives` of an experiment, in their order."""
    loaded = {name: load_objective(name) for name in sorted(settings.active)}
    return dict(sorted(loaded.items(), key=lambda item: item[1].order))


class System(nn.Module):
    """An encoder with the heads that its objectives need."""

    def __init__(
        self,
        settings: Parts,
        languages: int,
        pieces: int,
        precision: str = "float32",
        kinds: Pieces | None = None,
    ) -> None:
        super().__init__()
        model, self.settings = settings.model, settings.objectives
        self.objectives = load_objectives(self.settings)
        self.contrast = self.settings.contrastive
        self.masked_labels = settings.train.input_mask == "one"
        needed = {objective.hide for objective in self.objectives.values()}
        needed.add(settings.train.input_mask)
        hide = next((hide for hide in HIDES if hide in needed), None)
        known = kinds or Pieces.assumed(pieces, languages)
        self.masker = Masker(hide, known, model.max_tokens) if hide else None
        self.half = precision == "bfloat16"
        self.encoder = Encoder(model, pieces)
        self.heads = nn.ModuleDict()
        for objective in self.objectives.values():
            objective.add_head(self.heads, settings, languages, pieces)

    def prepared(
        self, batch: Batch, seed: int, step: int, first: int = 0, total: int | None = None
    ) -> Batch:
        """The batch of a step with what the objectives need of it: masks, keys, its number.

        A pure function; `first` and `total` as in `Masker`. In validation seed and step are
        constants, so that it is a function of the model only.
        """
        if self.masker:
            batch = self.masker(batch, seed, step, first, total)
        keys = sentence_keys(batch) if self.contrast.mask_duplicates else None
        return replace(batch, keys=keys, step=step)

    def forward(self, batch: DeviceBatch) -> dict[str, Tensor]:
        """The loss parts of a batch by name, and their weighted `total`."""
        return self.losses(batch, *self.encode(batch.inputs, batch.lengths, batch.packing))

    def encode(
        self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None
    ) -> tuple[Tensor, Tensor]:
        """Packed tokens[T] of N sentences -> states[T, d] of the tokens, and embeddings[N, d].

        Matrix products are in half precision if the system is; the residual stream stays float32.
        """
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=self.half):
            return self.encoder.both(tokens, lengths, packing)

    def losses(
        self, batch: DeviceBatch, states: Tensor | None, vectors: Tensor
    ) -> dict[str, Tensor]:
        """What `forward` gives, of a batch that is encoded; few objectives need the states."""
        sentences = torch.empty_like(vectors).index_copy(0, batch.rows, vectors)  # (2B, d), by row
        encoded = Encoded(batch, states, sentences)
        parts = {
            name: objective.loss(self, encoded) / batch.total
            for name, objective in self.objectives.items()
        }
        total = sum(getattr(self.settings, name).weight * part for name, part in parts.items())
        return {**parts, "total": total}

    @property
    def negatives(self) -> int | None:
        """Pairs of a group; None for all of a step."""
        return None if self.contrast.negatives == "batch" else self.contrast.negatives

    def groups(self, batch: DeviceBatch) -> Groups:
        """Which pairs are negatives of which; a batch smaller than a group (validation) is one."""
        size = min(self.negatives or batch.total, batch.total)
        return Groups(size, batch.pairs, batch.first, batch.total)


def similarity_flops(system: System, lengths: np.ndarray, width: int | None = None) -> int:
    """Operations of comparing each pair with each of its group, in both directions, by vectors of
    so many dimensions (default: the sentence embeddings).
    """
    pairs = len(lengths) // 2
    group = min(system.negatives or pairs, pairs)
    return 4 * (width or system.encoder.settings.width) * pairs * group
