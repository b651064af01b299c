"""Token ids to sentence embeddings in bulk: sorted by length, packed, without gradients."""

import numpy as np
import torch

from ems.base.progress import Progress
from ems.model.encoder import Encoder

BATCH_TOKENS = 4096  # encoded at once; of 8192 a CPU gets the memory anew for each batch


@torch.inference_mode()
def embed_tokens(
    encoder: Encoder, sentences: list[np.ndarray], progress: Progress | None = None
) -> np.ndarray:
    """Return the embeddings float32[N, d] of N arrays of token ids, in the order given.

    The encoder is put into eval mode; arrays are cut to its max_tokens and may not be empty.
    """
    encoder.eval()
    result = np.empty((len(sentences), encoder.settings.pooled_width), np.float32)
    if not sentences:
        return result
    device, limit = encoder.device, encoder.settings.max_tokens
    lengths = np.array([min(len(sentence), limit) for sentence in sentences], np.int64)
    order = np.argsort(lengths, kind="stable")
    batch = np.cumsum(lengths[order]) // BATCH_TOKENS  # of each sentence in this order
    for members in np.split(order, np.flatnonzero(np.diff(batch)) + 1):
        tokens = np.concatenate([sentences[at][:limit] for at in members]).astype(np.int64)
        vectors = encoder(
            torch.from_numpy(tokens).to(device), torch.from_numpy(lengths[members]).to(device)
        )
        result[members] = vectors.float().cpu().numpy()
        if progress:
            progress.add(len(members))
    return result
