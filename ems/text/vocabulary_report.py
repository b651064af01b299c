"""What a vocabulary does to each language: pieces per script, unknown tokens, tokens per character.

Measured on the lines that the vocabulary was trained on, at most LINES of each language, so it says
how well the pieces are shared out, not how unseen text fares. Characters are counted without
spaces, which Chinese and Japanese have none of.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from ems.base.batches import batched
from ems.base.files import reading_text, sha256_file, write_json
from ems.base.progress import Progress
from ems.text.subwords import UNK, count_sample, encode_lines, languages_of, load_vocabulary

LINES = 20_000  # of each language
OTHER, BYTES, CONTROL = "other", "bytes", "control"
# scripts that are not the first word of a letter's Unicode name
SCRIPTS = {"Cjk": "Han", "Ideographic": "Han"}


@dataclass
class Counts:
    """Counts over the lines of one language."""

    lines: int = 0
    characters: int = 0
    tokens: int = 0
    unknown: int = 0


def write_vocabulary_report(vocabulary: Path, sample: Path, out: Path) -> dict[str, Any]:
    """Count the pieces of a vocabulary by script, and what it makes of its sample by language.

    Writes and returns {"pieces": total, "scripts": name -> pieces, "languages": code -> counts}.
    """
    processor = load_vocabulary(vocabulary)
    progress = Progress("look at the vocabulary", count_sample(sample), "lines")
    languages: dict[str, Counts] = {}
    pairs = zip(_lines(languages_of(sample)), _lines(sample), strict=True)
    for batch in batched(pairs, lambda pair: len(pair[1])):
        _count(batch, processor, languages)
        progress.add(len(batch))
    report = {
        "pieces": processor.get_piece_size(),
        "scripts": dict(sorted(Counter(_scripts(processor)).items())),
        "languages": {code: vars(counts) for code, counts in sorted(languages.items())},
        "vocabulary_sha256": sha256_file(vocabulary),
    }
    progress.close()
    write_json(out, report)
    return report


def _lines(path: Path) -> Iterator[str]:
    with reading_text(path) as reader:
        for line in reader:
            yield line.rstrip("\n")


def _count(
    batch: Iterable[tuple[str, str]],
    processor: sentencepiece.SentencePieceProcessor,
    languages: dict[str, Counts],
) -> None:
    """Add the lines (language, text) of a batch, up to LINES of a language."""
    taken: list[tuple[str, str]] = []
    for code, text in batch:
        counts = languages.setdefault(code, Counts())
        if counts.lines < LINES:
            counts.lines += 1
            counts.characters += len(text) - text.count(" ")
            taken.append((code, text))
    for code, counts in languages.items():
        own = [text for of, text in taken if of == code]
        for ids in encode_lines(processor, own, code):
            counts.tokens += len(ids)
            counts.unknown += ids.count(UNK)


def _scripts(processor: sentencepiece.SentencePieceProcessor) -> Iterator[str]:
    """Yield the script of each piece; byte pieces and control symbols count apart."""
    for piece in range(processor.get_piece_size()):
        if processor.is_control(piece) or processor.is_unknown(piece):
            yield CONTROL
        elif processor.is_byte(piece):
            yield BYTES
        else:
            yield script_of(processor.id_to_piece(piece))


def script_of(text: str) -> str:
    """Return the script of the first letter or combining mark, like "Latin", else "other"."""
    for character in text:
        if unicodedata.category(character)[0] in "LM":
            name = unicodedata.name(character, OTHER).split()[0].split("-")[0].capitalize()
            return SCRIPTS.get(name, name)
    return OTHER
