"""Lines -> packed token ids, each distinct word encoded once.

SentencePiece splits at spaces before it merges, and a piece has a space at its start or nowhere, so
the tokens of a line are those of its words. Words repeat (Zipf): looking them up takes a third of
the time. A vocabulary with pieces across spaces, which ems does not train, is used line by line; so
is a unigram model, whose sums of scores may round otherwise, and a language of characters.
"""

from array import array
from itertools import chain

from sentencepiece import SentencePieceProcessor

from ems.text.segmenters.base import SPACE
from ems.text.subwords import by_characters, encode_lines

KEPT = 1_000_000  # characters of words that are remembered, some 25 MB; then they are forgotten


class WordEncoder:
    """Encodes lines of a language with a subword model and remembers words."""

    def __init__(self, processor: SentencePieceProcessor, language: str = "") -> None:
        self.processor, self.language = processor, language
        ids = range(processor.get_piece_size())
        self.by_words = not (
            any(SPACE in processor.id_to_piece(at)[1:] for at in ids)
            or by_characters(processor, language)
            or any(processor.get_score(at) % 1 for at in ids)  # of BPE: the number of the merge
        )
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
        encoded = encode_lines(self.processor, texts, self.language)
        return [array("H", ids).tobytes() for ids in encoded]
