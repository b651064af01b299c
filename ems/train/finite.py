"""A loss or a gradient that is not finite: found before the optimiser step, at no cost on a GPU.

Notable choices:
- the check stays on the device: a flag that the optimiser takes as `found_inf` makes its step a
  no-operation, that step and every later one, so the weights are still those before it when the
  flag is read (every so many steps and before anything is saved);
- the step is named, and its pairs: the batch is a function of (seed, step) and is drawn again.
"""

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from ems.files import write_json
from ems.shards.reader import PairStore

FOLDERS = ("corpus", "version", "pair")  # above a shard
SHOWN = 3  # pairs that the message names; all are in the file
NORM = "gradient norm"


class Guard:
    """Remembers the first step whose loss or gradient was not finite, and its values."""

    def __init__(self, device: torch.device) -> None:
        self.first = torch.full((), -1, dtype=torch.int64, device=device)
        self.names: list[str] = []
        self.values: Tensor | None = None

    @torch.no_grad()
    def look(
        self, step: int, parts: dict[str, Tensor], parameters: Iterable[nn.Parameter]
    ) -> Tensor:
        """1 if this or an earlier step is bad, else 0: a float32 scalar on the device."""
        gradients = [value.grad for value in parameters if value.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        self.names = [*parts, NORM]
        values = torch.stack([*(part.detach().float() for part in parts.values()), norm.float()])
        bad = (self.first < 0) & ~torch.isfinite(values).all()
        self.values = values if self.values is None else torch.where(bad, values, self.values)
        self.first = torch.where(bad, step, self.first)
        return (self.first >= 0).float()

    def found(self) -> tuple[int, dict[str, float]] | None:
        """The first bad step and its values, if there was one. Waits for the device."""
        step = int(self.first)
        if step < 0 or self.values is None:
            return None
        return step, dict(zip(self.names, self.values.tolist(), strict=True))


def write_bad_batch(
    folder: Path, store: PairStore, drawn: tuple[int, int, int, float], values: dict[str, float]
) -> str:
    """Write a bad step's values and where each of its pairs comes from to a file of a folder (the
    shard and row are those that `ems inspect` shows); the values and a few of the pairs as words.

    `drawn` is how its pairs were drawn: seed, step, pairs, alpha.
    """
    pairs = [
        {
            **dict(zip(FOLDERS, shard.folder.resolve().parts[-4:-1], strict=True)),
            "line": int(shard.lines[row]),
            "shard": str(shard.folder),
            "row": row,
        }
        for shard, row in store.places(*store.drawn(*drawn))
    ]
    path = folder / f"bad-batch-{drawn[1]}.json"
    texts = {name: str(value) for name, value in values.items()}  # JSON has no NaN
    write_json(path, {"values": texts, "pairs": pairs})
    parts = ", ".join(f"{name} {value:.6g}" for name, value in values.items())
    few = "; ".join(
        f"{p['corpus']} {p['version']} {p['pair']} line {p['line']:,}" for p in pairs[:SHOWN]
    )
    more = " ..." if len(pairs) > SHOWN else ""
    return f"({parts}); its pairs: {few}{more} (all {len(pairs)}: {path})"
