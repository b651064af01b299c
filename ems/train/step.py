"""One batch -> the losses of EMS (v2 Eq. 12), for training and for validation alike."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ems.model.encoder import Encoder, EncoderSettings
from ems.model.heads import ContrastiveHead, GenerativeHead, HeadSettings
from ems.objectives.contrastive import contrastive_loss
from ems.objectives.fused import kl_loss
from ems.objectives.xtr import xtr_target
from ems.shards.reader import Batch


class System(nn.Module):
    """An encoder with the heads that its objectives need; an objective of weight 0 has no head."""

    def __init__(
        self, settings: dict[str, Any], languages: int, pieces: int, precision: str = "float32"
    ) -> None:
        super().__init__()
        model = EncoderSettings(**settings["model"])
        objectives = {name: part for name, part in settings["objectives"].items() if name != "head"}
        self.weights = {name: part["weight"] for name, part in objectives.items()}
        self.half = precision == "bfloat16"
        self.temperature: float = settings["objectives"]["contrastive"]["temperature"]
        self.encoder = Encoder(model, pieces)
        self.heads = nn.ModuleDict()
        if self.weights["xtr"]:
            head = HeadSettings(**settings["objectives"]["head"])
            self.heads["generative"] = GenerativeHead(model, head, languages, pieces)
        if self.weights["contrastive"]:
            width = settings["objectives"]["contrastive"]["width"]
            self.heads["contrastive"] = ContrastiveHead(model, width)

    def forward(self, batch: "DeviceBatch") -> dict[str, Tensor]:
        """The loss parts of a batch, each divided by its B pairs (Eq. 12), and their weighted
        `total`.
        """
        with self._mixed(batch):
            vectors = self.encoder(batch.tokens, batch.lengths)  # (2B, d), by length
        sentences = torch.empty_like(vectors).index_copy(0, batch.rows, vectors)  # (2B, d), by row
        parts = {}
        if self.weights["xtr"]:
            parts["xtr"] = self._xtr(sentences, batch) / batch.pairs
        if "contrastive" in self.heads:
            first, second = self.heads["contrastive"](sentences).split(batch.pairs)
            parts["contrastive"] = contrastive_loss(first, second, self.temperature) / batch.pairs
        total = sum(self.weights[name] * part for name, part in parts.items())
        return {**parts, "total": total}

    def _mixed(self, batch: "DeviceBatch") -> torch.autocast:
        """Matrix products of the encoder in half precision; its residual stream stays float32."""
        return torch.autocast(batch.tokens.device.type, torch.bfloat16, enabled=self.half)

    def _xtr(self, sentences: Tensor, batch: "DeviceBatch") -> Tensor:
        """Each sentence predicts the pieces of the other side, told that side's language."""
        other = (torch.arange(2 * batch.pairs, device=sentences.device) + batch.pairs) % (
            2 * batch.pairs
        )  # (2B,): the row of the translation
        head = self.heads["generative"]
        states = head(sentences, batch.languages[other])  # (2B, d_la + d)
        of_token = torch.repeat_interleave(batch.rows, batch.lengths)  # (T,): row of each token
        lengths = torch.empty_like(batch.lengths).index_copy(0, batch.rows, batch.lengths)
        output = self.encoder.tokens if head.output is None else head.output
        target = xtr_target(other[of_token], batch.tokens, lengths[other], states.dtype)
        dtype = torch.bfloat16 if self.half else None
        return kl_loss(states, output.weight, target, head.bias, dtype)


@dataclass
class DeviceBatch:
    """A `Batch` as tensors on a device; the fields are those of `Batch`."""

    tokens: Tensor
    lengths: Tensor
    rows: Tensor
    languages: Tensor
    pairs: int

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> "DeviceBatch":
        arrays = (batch.tokens, batch.lengths, batch.rows, batch.languages)
        return cls(*(torch.from_numpy(array).to(device) for array in arrays), batch.pairs)
