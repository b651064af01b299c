"""A batch as the losses see it: on the device, and encoded."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ems.model.device import onto
from ems.model.packing import Packing, pack
from ems.shards.reader import Batch


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
        """Return B, the number of sentence pairs."""
        return len(self.rows) // 2

    @cached_property
    def packing(self) -> Packing:
        """Return the packing of its tokens; not used where a batch is encoded in parts."""
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
    """A batch, the states[T, d] of its tokens and its sentences[2B, d] by row.

    There are no states if the batch is encoded in parts (GradCache), or by a table alone.
    """

    batch: DeviceBatch
    states: Tensor | None
    sentences: Tensor

    @property
    def sides(self) -> tuple[Tensor, ...]:
        """Return the embeddings [B, d] of the first and of the second sides."""
        return self.sentences.split(self.batch.pairs)

    @property
    def masked(self) -> tuple[Tensor, Tensor]:
        """Return (row[M], token[M]): the sentences of the masked tokens, and these tokens."""
        return self.batch.row[self.batch.places], self.batch.tokens[self.batch.places]
