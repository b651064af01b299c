"""What a vocabulary does to each language: pieces per script, unknown tokens, tokens per character.

Measured on the lines that the vocabulary was trained on, at most LINES of each language, so it says
how well the pieces are shared out, not how unseen text fares. EMS v2 has no such table; that 47
percent of Gujarati is unknown to the authors' released vocabulary is what one is for.

Notable choices:
- a piece belongs to the script of its first letter, by the first word of that letter's Unicode
  name; pieces without a letter are counted as "other", byte pieces and control symbols apart;
- characters are counted without spaces, which Chinese and Japanese have none of.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from ems.batches import batched
from ems.files import reading_text, sha256_file, write_json
from ems.progress import Progress
from ems.text.subwords import UNK, languages_of, load_vocabulary, unequal_sample
from ems.text.tsv import count_lines

LINES = 20_000  # of each language
OTHER, BYTES, CONTROL = "other", "bytes", "control"
NAMES = {
    "Cjk": "Han",
    "Ideographic": "Han",
}  # where the first word of the name is not that of the script


@dataclass
class Counts:
    """Of the lines of one language."""

    lines: int = 0
    characters: int = 0
    tokens: int = 0
    unknown: int = 0


def write_vocabulary_report(vocabulary: Path, sample: Path, out: Path) -> dict[str, Any]:
    """Count the pieces of a vocabulary by script, and what it makes of its sample by language.

    Writes and returns {"pieces": total, "scripts": name -> pieces, "languages": code -> counts}.
    """
    processor = load_vocabulary(vocabulary)
    lines, labels = count_lines(sample), count_lines(languages_of(sample))
    if lines != labels:
        raise unequal_sample(sample)
    progress = Progress("look at the vocabulary", lines, "lines")
    found: dict[str, Counts] = {}
    pairs = zip(_lines(languages_of(sample)), _lines(sample), strict=True)
    for batch in batched(pairs, lambda pair: len(pair[1])):
        _count(batch, processor, found)
        progress.add(len(batch))
    report = {
        "pieces": processor.get_piece_size(),
        "scripts": dict(sorted(Counter(_scripts(processor)).items())),
        "languages": {code: vars(counts) for code, counts in sorted(found.items())},
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
    found: dict[str, Counts],
) -> None:
    """Add the lines (language, text) of a batch, up to LINES of a language."""
    taken: list[tuple[str, str]] = []
    for code, text in batch:
        counts = found.setdefault(code, Counts())
        if counts.lines < LINES:
            counts.lines += 1
            counts.characters += len(text) - text.count(" ")
            taken.append((code, text))
    encoded = processor.encode([text for _, text in taken], num_threads=1)
    for (code, _), ids in zip(taken, encoded, strict=True):
        found[code].tokens += len(ids)
        found[code].unknown += ids.count(UNK)


def _scripts(processor: sentencepiece.SentencePieceProcessor) -> Iterator[str]:
    """The script of each piece."""
    for piece in range(processor.get_piece_size()):
        if processor.is_control(piece) or processor.is_unknown(piece):
            yield CONTROL
        elif processor.is_byte(piece):
            yield BYTES
        else:
            yield script_of(processor.id_to_piece(piece))


def script_of(text: str) -> str:
    """The script of the first letter or combining mark, like "Latin"; "other" without any."""
    for character in text:
        if unicodedata.category(character)[0] in "LM":
            name = unicodedata.name(character, OTHER).split()[0].split("-")[0].capitalize()
            return NAMES.get(name, name)
    return OTHER
