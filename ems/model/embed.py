"""Token ids -> sentence embeddings in bulk: sorted by length, packed, without gradients."""

import numpy as np
import torch

from ems.model.encoder import Encoder
from ems.progress import Progress

BATCH_TOKENS = 8192  # tokens encoded at once


@torch.inference_mode()
def embed_tokens(
    encoder: Encoder, sentences: list[np.ndarray], progress: Progress | None = None
) -> np.ndarray:
    """Mean-pooled embeddings float32[N, d] of N token id arrays, in the order given.

    The encoder is put into eval mode; arrays are cut to its max_tokens and may not be empty.
    """
    encoder.eval()
    device = encoder.tokens.weight.device
    limit = encoder.settings.max_tokens
    lengths = np.array([min(len(sentence), limit) for sentence in sentences], np.int64)
    order = np.argsort(lengths, kind="stable")
    result = np.empty((len(sentences), encoder.settings.width), np.float32)
    for members in _token_batches(order, lengths):
        tokens = np.concatenate([sentences[at][:limit] for at in members]).astype(np.int64)
        vectors = encoder(
            torch.from_numpy(tokens).to(device), torch.from_numpy(lengths[members]).to(device)
        )
        result[members] = vectors.float().cpu().numpy()
        if progress:
            progress.add(len(members))
    return result


def _token_batches(order: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """`order` cut into runs of about BATCH_TOKENS tokens."""
    if not len(order):
        return []
    batch = np.cumsum(lengths[order]) // BATCH_TOKENS
    return np.split(order, np.flatnonzero(np.diff(batch)) + 1)
