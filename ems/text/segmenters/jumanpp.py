"""Juman++ 2, for Japanese.

Juman++ drops lines that begin with `# ` and lines of over 4,096 bytes, so neither reaches it. Its
dictionary has full-width kana only, and it treats half-width spaces as words, so both become
full-width (SentencePiece's NFKC would do so anyway).
"""

from ems.text.segmenters.base import Segmenter, full_width_kana, program


def prepare(line: str) -> str:
    """Remove the comment sign of a line; make half-width spaces and kana full-width."""
    text = line.strip()
    text = text[0] + text[2:] if text.startswith("# ") else text
    return full_width_kana(text.replace(" ", "\u3000"))


ABSENT = "the program `jumanpp` is not on PATH: install Juman++ 2 from its release tarball"
TARBALL = "github.com/ku-nlp/jumanpp"
SEGMENTER = Segmenter(
    command=lambda language: ["jumanpp", "--segment"],
    needs=(program("jumanpp", f"{ABSENT} ({TARBALL}), which holds the model"),),
    prepare=prepare,
    limit=4000,  # bytes; Juman++ 2 silently drops longer lines (its limit is 4,096)
    default_of=("ja",),
)
