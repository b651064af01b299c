"""Large batches on small cards: GradCache, exactly (Gao et al., "Scaling Deep Contrastive Learning
Batch Size under Memory Limited Setup", RepL4NLP 2021).

The losses need the sentence embeddings of the whole batch, but the encoder's activations only of
the part that is differentiated at the moment. So every part is encoded without activations, the
losses give the gradient of the embeddings, and each part is encoded again to pass it on.

Notable choices:
- the parts are runs of sentences in the batch's order, which is by length: each packs as well as
  the whole, and each holds about as many tokens;
- each part's dropout has a seed of its own, given again when it is encoded a second time, so both
  times are the same. With dropout the step is the plain one of these parts and seeds, without it
  that of the whole batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ems.errors import EmsError
from ems.objectives.batch import DeviceBatch
from ems.objectives.system import System


@dataclass
class InParts:
    """Sentences that are encoded in at most `count` parts, part i with its dropout at `seed(i)`.

    `encode(tokens[T], lengths[N])` gives [N, d]; lengths are at least 1.
    """

    encode: Callable[[Tensor, Tensor], Tensor]
    tokens: Tensor
    lengths: Tensor
    count: int
    seed: Callable[[int], int]

    def vectors(self) -> Tensor:
        """The embeddings [N, d] of all sentences."""
        return torch.cat([self._encode(*part) for part in self._parts()])

    def backward(self, grad: Tensor) -> None:
        """Pass the embeddings' gradient[N, d] on to the encoder, holding the activations of one
        part at a time.
        """
        for part in self._parts():
            self._encode(*part).backward(grad[part[2]])

    def _encode(self, number: int, tokens: slice, sentences: slice) -> Tensor:
        torch.manual_seed(self.seed(number))
        return self.encode(self.tokens[tokens], self.lengths[sentences])

    def _parts(self) -> Iterator[tuple[int, slice, slice]]:
        """(number, tokens, sentences) of each part: about equally many tokens, a sentence at
        least.
        """
        ends = torch.cumsum(self.lengths, 0).tolist()
        token = sentence = 0
        for number in range(self.count):
            limit = ends[-1] * (number + 1) / self.count
            last = sentence
            while last < len(ends) and ends[last] <= limit:
                last += 1
            if last > sentence:
                yield number, slice(token, ends[last - 1]), slice(sentence, last)
                token, sentence = ends[last - 1], last


class GradCache:
    """The forward and the backward pass of a step with the encoder in at most `count` parts.

    Raises `EmsError` for an objective that needs more of a sentence than its embedding.
    """

    def __init__(self, system: System, count: int) -> None:
        for name, objective in system.objectives.items():
            if objective.states:
                raise EmsError(
                    "train.grad_cache: it keeps the embeddings of sentences, but "
                    f"objectives.{name} needs the states of their tokens; leave one of them out"
                )
        self.system, self.count = system, count

    def forward(self, batch: DeviceBatch, seed: Callable[[int], int]) -> dict[str, Tensor]:
        """The loss parts of a batch; the dropout of part i is at `seed(i)`."""

        def embed(tokens: Tensor, lengths: Tensor) -> Tensor:
            return self.system.encode(tokens, lengths)[1]

        self.sentences = InParts(embed, batch.inputs, batch.lengths, self.count, seed)
        with torch.no_grad():
            self.vectors = self.sentences.vectors()
        return self.system.losses(batch, None, self.vectors.requires_grad_())

    def backward(self, total: Tensor) -> None:
        """The gradients of all parameters, of the `total` that `forward` gave last."""
        total.backward()
        self.sentences.backward(self.vectors.grad)
