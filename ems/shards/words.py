"""Lines -> packed token ids, each distinct word encoded once.

SentencePiece splits at spaces before it merges, and a piece has a space at its start or nowhere, so
the tokens of a line are those of its words. Words repeat (Zipf): looking them up takes a third of
the time. A vocabulary with pieces across spaces, which ems does not train, is used line by line.
"""

from array import array
from itertools import chain

from sentencepiece import SentencePieceProcessor

SPACE = "\u2581"  # how SentencePiece writes a space
KEPT = 1_000_000  # characters of words that are remembered, some 25 MB; then they are forgotten


class WordEncoder:
    """Encodes lines with a subword model and remembers words."""

    def __init__(self, processor: SentencePieceProcessor) -> None:
        self.processor = processor
        pieces = map(processor.id_to_piece, range(processor.get_piece_size()))
        self.by_words = not any(SPACE in piece[1:] for piece in pieces)
        self.known: dict[str, bytes] = {}
        self.size = 0  # characters in `known`

    def encode(self, lines: tuple[str, ...]) -> list[bytes]:
        """Return the ids of each line, as `processor.encode` gives them, packed as uint16."""
        if not self.by_words:
            return self._pack(list(lines))
        if self.size > KEPT:
            self.known, self.size = {}, 0
        words = [line.split(" ") for line in lines]
        new = list(set(chain.from_iterable(words)).difference(self.known))
        self.known.update(zip(new, self._pack(new), strict=True))
        self.size += sum(map(len, new))
        look_up = self.known.__getitem__
        return [b"".join(map(look_up, line)) for line in words]

    def _pack(self, texts: list[str]) -> list[bytes]:
        encoded = self.processor.encode(texts, num_threads=1)
        return [array("H", ids).tobytes() for ids in encoded]
