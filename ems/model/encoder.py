"""The sentence encoder: a Transformer and pooling (EMS v2 section III-A, Eq. 1).

Where the paper gives no detail it follows the authors' code (docs/fidelity.md): learned absolute
positions, no language token in the input, layer norm after each residual (post-LN), swish. Start
values are ours, N(0, 0.02) and Xavier uniform; `start: pytorch` is the authors' code.

Dropout on a CPU is ours, ten times as fast as PyTorch's Bernoulli numbers: each 64-bit number of
NumPy's SFC64, seeded from PyTorch's generator, gives four 16-bit integers. So the share is a
multiple of 1/65536 (0.1 becomes 0.100006). For shares near 0 or 1 it is PyTorch's.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from ems.base.progress import Progress
from ems.config.sizes import EncoderSizes
from ems.model.packing import Packing, Pad, Unpad, pack, rounded
from ems.model.table import EmbeddingTable

ACTIVATIONS = {"silu": functional.silu, "gelu": functional.gelu}  # gelu: exact, by erf
SHORT = 48  # tokens up to which plain products are faster than PyTorch's fused attention on a CPU
ROWS = 512  # half precision pads rows to a multiple of this, since each new shape is cached
SHAPES = 16  # compiled layers pad rows to a multiple of about 1/16 of them: 3 % more on average
LEVELS = 1 << 16  # possible shares of dropout
EDGE = 1 / 256  # our dropout is too coarse for shares nearer to 0 or 1
BATCH_TOKENS = 4096  # tokens in a batch; with 8192 a CPU allocates new memory for each batch


class Attention(nn.Module):
    def __init__(self, settings: EncoderSizes) -> None:
        super().__init__()
        self.heads = settings.heads
        self.dropout = settings.attention_dropout
        self.input = nn.Linear(settings.width, 3 * settings.width)
        self.output = nn.Linear(settings.width, settings.width)

    def forward(self, states: Tensor, packing: Packing) -> Tensor:
        """Let each token attend to its sentence: states[T, d] -> [T, d]."""
        projected = self.input(states)  # (T, 3d)
        dropout = self.dropout if self.training else 0.0
        parts = []
        for group, padded in zip(packing.groups, Pad.apply(projected, packing), strict=True):
            count, longest = group.index.shape
            split = padded.view(count, longest, 3, self.heads, -1)
            query, key, value = split.permute(2, 0, 3, 1, 4)  # each (n, heads, L, d / heads)
            mixed = _attend(query, key, value, group.real[:, None, None, :], dropout)
            parts.append(mixed.transpose(1, 2).reshape(count * longest, -1))  # (n * L, d)
        return self.output(rounded(Unpad.apply(packing, *parts), len(states)))


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float) -> Tensor:
    """Compute scaled dot-product attention (n, heads, L, d / heads). A CPU computes it in float32,
    since PyTorch's kernel takes three times as long in 16 bits. With our dropout, and for short
    sentences without gradients, it uses plain products.
    """
    parts = (query, key, value)
    slow = query.device.type == "cpu" and query.dtype.itemsize == 2
    with torch.autocast("cpu", enabled=False) if slow else nullcontext():
        parts = tuple(part.float() for part in parts) if slow else parts
        short = not torch.is_grad_enabled() and query.shape[2] <= SHORT
        if (dropout or short) and query.device.type == "cpu":
            return _attend_plainly(*parts, mask, dropout)
        return functional.scaled_dot_product_attention(*parts, attn_mask=mask, dropout_p=dropout)


def _attend_plainly(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float
) -> Tensor:
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(2, 3)  # (n, heads, L, L)
    shares = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return drop(shares, dropout) @ value


class Layer(nn.Module):
    """One post-LN Transformer layer over packed tokens."""

    def __init__(self, settings: EncoderSizes) -> None:
        super().__init__()
        self.attention = Attention(settings)
        self.attention_norm = nn.LayerNorm(settings.width, settings.norm_eps)
        self.inner = nn.Linear(settings.width, settings.feed_forward)
        self.outer = nn.Linear(settings.feed_forward, settings.width)
        self.output_norm = nn.LayerNorm(settings.width, settings.norm_eps)
        self.activation = ACTIVATIONS[settings.activation]
        self.dropout = settings.dropout
        self.compiled: Callable[[Tensor, Tensor], Tensor] | None = None

    def forward(self, states: Tensor, packing: Packing) -> Tensor:
        compiled = self.compiled if self.training else None
        return (compiled or self.by_token)(states, self.attention(states, packing))

    def by_token(self, states: Tensor, mixed: Tensor) -> Tensor:
        """Compute the layer after attention: states[T, d], mixed[T, d] -> [T, d]."""
        dropout = self.dropout if self.training else 0.0
        states = self.attention_norm(add_dropped(states, mixed, dropout))
        inner = self.activation(self.inner(states))  # (T, feed_forward)
        return self.output_norm(add_dropped(states, self.outer(inner), dropout))


class Encoder(nn.Module):
    """Maps token ids to sentence embeddings: the part that remains after training (Fig. 1)."""

    def __init__(self, settings: EncoderSizes, pieces: int) -> None:
        super().__init__()
        self.settings = settings
        if settings.attends:
            self.tokens = nn.Embedding(pieces, settings.width)
            learned = settings.positions == "learned"
            self.positions = nn.Embedding(settings.max_tokens, settings.width) if learned else None
            self.input_norm = nn.LayerNorm(settings.width, settings.norm_eps)
        self.dropout = settings.dropout
        self.layers = nn.ModuleList(Layer(settings) for _ in range(settings.layers))
        self.checkpoint_layers = False  # True: keep a layer's input only and run it again
        table = (settings.table, pieces, settings.ngrams)
        self.table = EmbeddingTable(*table) if settings.table else None
        if settings.table and settings.attends:
            self.widen = nn.Linear(settings.width, settings.table, bias=False)
        start_values(self, settings.start)
        if settings.table and settings.attends:  # else the layers would drown the table's vectors
            nn.init.zeros_(self.widen.weight)
        if settings.start == "pytorch":  # the authors' code: <pad> is zero, all layers are equal
            if settings.attends:
                nn.init.zeros_(self.tokens.weight[0])
            for layer in self.layers[1:]:
                layer.load_state_dict(self.layers[0].state_dict())

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None) -> Tensor:
        """Embed packed tokens[T] of ascending lengths[N]: [N, d], or mean-max [N, 2 d] (Eq. 1)."""
        return self.both(tokens, lengths, packing)[1]

    def both(
        self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None
    ) -> tuple[Tensor | None, Tensor]:
        """Return the states [T, d] of the tokens (None: no layers), and the embeddings [N, d]."""
        if self.table is None:
            return self._pooled(tokens, lengths, packing)
        wide = self.table(tokens, lengths)  # (N, table)
        if not self.settings.attends:
            return None, drop(wide, self.dropout if self.training else 0.0)
        states, means = self._pooled(tokens, lengths, packing)
        return states, wide + self.widen(means)

    def _pooled(
        self, tokens: Tensor, lengths: Tensor, packing: Packing | None
    ) -> tuple[Tensor, Tensor]:
        """Return the states [T, d] of the tokens, and their means [N, d] or mean-max [N, 2 d]."""
        packing = packing or pack(lengths)
        dropout = self.dropout if self.training else 0.0
        states = self.tokens(tokens)  # (T, d)
        if self.positions is not None:
            states = states + self.positions(packing.position)
        states = rounded(states, self._rows(len(tokens)))  # (T or more, d)
        states = drop(self.input_norm(states), dropout)
        for layer in self.layers:
            if self.checkpoint_layers:
                states = checkpoint(layer, states, packing, use_reentrant=False)
            else:
                states = layer(states, packing)
        states = states[: len(tokens)]  # (T, d)
        zeros = states.new_zeros(len(lengths), states.shape[1])
        means = zeros.index_add(0, packing.sentence, states) / lengths[:, None]  # (N, d)
        if self.settings.pooling == "mean":
            return states, means
        maxima = []
        for group, padded in zip(packing.groups, Pad.apply(states, packing), strict=True):
            rows = padded.view(*group.index.shape, -1)  # (n, L, d)
            maxima.append(rows.masked_fill(~group.real[:, :, None], float("-inf")).max(1).values)
        return states, torch.cat([means, torch.cat(maxima)], dim=1)  # (N, 2 d)

    def _rows(self, tokens: int) -> int:
        """Return the rows to pad `tokens` to, so that few shapes are compiled or cached."""
        step = ROWS if torch.is_autocast_enabled(self.device.type) else 1
        if self.training and any(layer.compiled for layer in self.layers):
            step = max(ROWS, 1 << (tokens // SHAPES).bit_length() >> 1)
        return -(-tokens // step) * step

    def compile_layers(self, backend: str = "inductor") -> None:
        """Compile the token-wise part of each layer for training; this changes dropout masks."""
        for layer in self.layers:
            layer.compiled = torch.compile(layer.by_token, dynamic=False, backend=backend)


def shapes_of(settings: EncoderSizes, pieces: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of an `Encoder`, which takes no memory for them."""
    with torch.device("meta"), NoStartValues():
        weights = Encoder(settings, pieces).state_dict()
    return {name: tuple(weight.shape) for name, weight in weights.items()}


class NoStartValues(TorchFunctionMode):
    """Skips `normal_`, which on the meta device loads PyTorch's compiler (seconds)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **(kwargs or {}))


def start_values(module: nn.Module, start: str) -> None:
    """Initialise the weights of a module if `start` is "ours", else leave PyTorch's."""
    if start != "ours":
        return
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)
        elif isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def drop(states: Tensor, share: float) -> Tensor:
    """Zero about `share` of the elements of states[...] and scale up the others."""
    if _draws_itself(states, share):
        return states * keep_mask(states, share)
    return functional.dropout(states, share) if share else states


def add_dropped(residual: Tensor, branch: Tensor, share: float) -> Tensor:
    """Return residual + drop(branch), both [T, d], in one pass."""
    if residual.dtype == branch.dtype and _draws_itself(branch, share):
        return torch.addcmul(residual, branch, keep_mask(branch, share))
    return residual + drop(branch, share)


def keep_mask(like: Tensor, share: float) -> Tensor:
    """Draw 0 with probability `share`, else 1 / (1 - share), in the shape and dtype of `like`."""
    dropped = round(share * LEVELS)
    seed = int(torch.randint(1 << 62, ()))
    words = np.random.SFC64(seed).random_raw(-(-like.numel() // 4))  # uint64
    bits = torch.from_numpy(words.view(np.int16)[: like.numel()]).view(like.shape)
    kept = torch.empty(like.shape, dtype=like.dtype)
    torch.ge(bits, dropped - LEVELS // 2, out=kept)
    return kept.mul_(LEVELS / (LEVELS - dropped))


def _draws_itself(states: Tensor, share: float) -> bool:
    return states.device.type == "cpu" and EDGE <= share <= 1 - EDGE


@torch.inference_mode()
def embed_tokens(
    encoder: Encoder, sentences: list[np.ndarray], progress: Progress | None = None
) -> np.ndarray:
    """Embed N arrays of ids, not empty, cut to max_tokens: float32[N, d]. Sets eval mode."""
    encoder.eval()
    result = np.empty((len(sentences), encoder.settings.pooled_width), np.float32)
    if not sentences:
        return result
    device, limit = encoder.device, encoder.settings.max_tokens
    lengths = np.array([min(len(sentence), limit) for sentence in sentences], np.int64)
    order = np.argsort(lengths, kind="stable")
    batch = np.cumsum(lengths[order]) // BATCH_TOKENS  # of each sentence in this order
    for members in np.split(order, np.flatnonzero(np.diff(batch)) + 1):
        tokens = np.concatenate([sentences[i][:limit] for i in members]).astype(np.int64)
        parts = (torch.from_numpy(each).to(device) for each in (tokens, lengths[members]))
        result[members] = encoder(*parts).float().cpu().numpy()
        if progress:
            progress.add(len(members))
    return result
