"""The sentence encoder: a Transformer and mean pooling (EMS v2 section III-A, Eq. 1).

Notable choices, where the paper is silent, as in the authors' code (reference in docs/fidelity.md):
- learned absolute positions, layer norm and dropout on the input, no language token in the input;
- layer norm after each residual (post-LN), swish in the feed-forward layer;
- ours: embeddings start at N(0, 0.02) and linear layers at Xavier uniform; `start: pytorch` is the
  authors' code, PyTorch's defaults with all layers alike.
"""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ems.model.dropout import add_dropped, drop
from ems.model.packing import Packing, pack, pad, rounded, unpad
from ems.model.settings import EncoderSettings

ROWS = 512  # in half precision rows come in multiples of it: each new shape is compiled and kept
SHAPES = 16  # compiled layers get rows in multiples of about this part of them: 3 % more on average


class Attention(nn.Module):
    """Multi-head self-attention over packed tokens."""

    def __init__(self, settings: EncoderSettings) -> None:
        super().__init__()
        self.heads = settings.heads
        self.dropout = settings.attention_dropout
        self.input = nn.Linear(settings.width, 3 * settings.width)
        self.output = nn.Linear(settings.width, settings.width)

    def forward(self, states: Tensor, packing: Packing) -> Tensor:
        """states[T, d] -> [T, d]; each token attends to the tokens of its own sentence."""
        projected = self.input(states)  # (T, 3d)
        dropout = self.dropout if self.training else 0.0
        parts = []
        for group, padded in zip(packing.groups, pad(projected, packing), strict=True):
            count, longest = group.index.shape
            split = padded.view(count, longest, 3, self.heads, -1)
            query, key, value = split.permute(2, 0, 3, 1, 4)  # each (n, heads, L, d / heads)
            mixed = _attend(query, key, value, group.real[:, None, None, :], dropout)
            parts.append(mixed.transpose(1, 2).reshape(count * longest, -1))  # (n * L, d)
        return self.output(rounded(unpad(parts, packing), len(states)))


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float) -> Tensor:
    """Scaled dot-product attention (n, heads, L, d / heads); on a CPU never in bfloat16, since
    PyTorch's kernel takes three times as long in it there, and with dropout by plain products,
    which PyTorch's kernel would fall back to.
    """
    parts = (query, key, value)
    slow = query.device.type == "cpu" and query.dtype == torch.bfloat16
    with torch.autocast("cpu", enabled=False) if slow else nullcontext():
        parts = tuple(part.float() for part in parts) if slow else parts
        if dropout and query.device.type == "cpu":
            return _attend_plainly(*parts, mask, dropout)
        return functional.scaled_dot_product_attention(*parts, attn_mask=mask, dropout_p=dropout)


def _attend_plainly(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float
) -> Tensor:
    """Scaled dot-product attention of (n, heads, L, d / heads) with dropout of its shares."""
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(2, 3)  # (n, heads, L, L)
    shares = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return drop(shares, dropout) @ value


class Layer(nn.Module):
    """One post-LN Transformer layer over packed tokens."""

    def __init__(self, settings: EncoderSettings) -> None:
        super().__init__()
        self.attention = Attention(settings)
        self.attention_norm = nn.LayerNorm(settings.width, settings.norm_eps)
        self.inner = nn.Linear(settings.width, settings.feed_forward)
        self.outer = nn.Linear(settings.feed_forward, settings.width)
        self.output_norm = nn.LayerNorm(settings.width, settings.norm_eps)
        self.dropout = settings.dropout
        self.compiled: Callable[[Tensor, Tensor], Tensor] | None = None

    def forward(self, states: Tensor, packing: Packing) -> Tensor:
        """states[T, d] -> [T, d]."""
        compiled = self.compiled if self.training else None
        return (compiled or self.by_token)(states, self.attention(states, packing))

    def by_token(self, states: Tensor, mixed: Tensor) -> Tensor:
        """What follows attention, all of it token by token: states[T, d], mixed[T, d] -> [T, d]."""
        dropout = self.dropout if self.training else 0.0
        states = self.attention_norm(add_dropped(states, mixed, dropout))
        inner = functional.silu(self.inner(states))  # (T, feed_forward)
        return self.output_norm(add_dropped(states, self.outer(inner), dropout))


class Encoder(nn.Module):
    """Token ids to sentence embeddings: the part of EMS that is used after training (Fig. 1)."""

    def __init__(self, settings: EncoderSettings, pieces: int) -> None:
        super().__init__()
        self.settings = settings
        self.tokens = nn.Embedding(pieces, settings.width)
        self.positions = nn.Embedding(settings.max_tokens, settings.width)
        self.input_norm = nn.LayerNorm(settings.width, settings.norm_eps)
        self.dropout = settings.dropout
        self.layers = nn.ModuleList(Layer(settings) for _ in range(settings.layers))
        self.checkpoint_layers = False  # keep a layer's input, run it again for its gradient
        start_values(self, settings.start)
        if settings.start == "pytorch":
            _as_the_authors(self)

    def forward(self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None) -> Tensor:
        """Packed tokens[T] of N sentences, lengths[N] ascending -> mean-pooled states [N, d] (Eq.
        1). The packing of these lengths can be made before (so that no GPU is waited for).
        """
        return self.both(tokens, lengths, packing)[1]

    def both(
        self, tokens: Tensor, lengths: Tensor, packing: Packing | None = None
    ) -> tuple[Tensor, Tensor]:
        """The states [T, d] of the tokens, and what `forward` gives."""
        packing = packing or pack(lengths)
        states = self.tokens(tokens) + self.positions(packing.position)  # (T, d)
        states = rounded(states, self._rows(len(tokens)))  # (T or more, d)
        states = drop(self.input_norm(states), self.dropout if self.training else 0.0)
        for layer in self.layers:
            if self.checkpoint_layers:
                states = checkpoint(layer, states, packing, use_reentrant=False)
            else:
                states = layer(states, packing)
        states = states[: len(tokens)]  # (T, d)
        sums = states.new_zeros(len(lengths), states.shape[1])
        sums = sums.index_add(0, packing.sentence, states)  # (N, d)
        return states, sums / lengths[:, None]

    def _rows(self, tokens: int) -> int:
        """Rows for so many tokens: few numbers of them where each is compiled, or kept, anew."""
        if self.training and any(layer.compiled for layer in self.layers):
            return _up(tokens, max(ROWS, 1 << (tokens // SHAPES).bit_length() >> 1))
        half = torch.is_autocast_enabled(self.tokens.weight.device.type)
        return _up(tokens, ROWS if half else 1)

    def compile_layers(self, backend: str = "inductor") -> None:
        """Compile what each layer does token by token, for training; static shapes.

        The same function up to rounding, but other masks of dropout. Evaluation stays as it is:
        its shapes are many. Attention does too, its groups differ from batch to batch.
        """
        for layer in self.layers:
            layer.compiled = torch.compile(layer.by_token, dynamic=False, backend=backend)


def _up(count: int, step: int) -> int:
    return -(-count // step) * step


def start_values(module: nn.Module, start: str) -> None:
    """Set the weights of a module: `ours`, or as PyTorch made them (`pytorch`)."""
    if start == "ours":
        module.apply(_initialise)


def _initialise(module: nn.Module) -> None:
    """Ours: embeddings N(0, 0.02), linear weights Xavier uniform, biases 0."""
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def _as_the_authors(encoder: Encoder) -> None:
    """What their code adds to PyTorch's defaults: the embedding of <pad> is zero, and all layers
    are copies of one.
    """
    encoder.tokens.weight[0] = 0
    for layer in encoder.layers[1:]:
        layer.load_state_dict(encoder.layers[0].state_dict())
