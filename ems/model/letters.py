"""What the pieces of a vocabulary spell, in Latin letters and digits."""

import re
import unicodedata

import sentencepiece
import torch
from anyascii import anyascii
from torch import Tensor

from ems.model.ngrams import GAP, LONGEST

OTHER = re.compile("[^a-z0-9]+")


def letters_of(vocabulary: sentencepiece.SentencePieceProcessor) -> Tensor:
    """Return what each piece spells, uint8[pieces, LONGEST]: letters, digits and gaps, then 0."""
    letters = torch.zeros(vocabulary.get_piece_size(), LONGEST, dtype=torch.uint8)
    for at in range(len(letters)):
        symbol = vocabulary.is_control(at) or vocabulary.is_unknown(at) or vocabulary.is_byte(at)
        spelt = " " if symbol else "".join(map(_spelt, vocabulary.id_to_piece(at)))
        codes = list(spelt.encode()[:LONGEST])
        letters[at, : len(codes)] = torch.tensor(codes, dtype=torch.uint8)
    return letters


def _spelt(character: str) -> str:
    """Return the letters of a character: a gap for punctuation, nothing for a soft sign."""
    letters = OTHER.sub("", anyascii(character).lower())
    mute = unicodedata.category(character)[0] in "LM"  # of letters and marks
    return letters if letters or mute else chr(GAP)
