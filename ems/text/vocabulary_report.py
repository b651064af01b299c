"""Report a vocabulary: pieces per script; unknown tokens and tokens per character by language.

It is measured on up to LINES lines per language of the vocabulary's training sample: it shows how
languages share pieces, not the effect on unseen text. Spaces, which some lack, are no characters.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from ems.base.files import reading_text, sha256_file, write_json
from ems.base.progress import Progress
from ems.text.subwords import UNK, count_sample, encode_lines, languages_of, load_vocabulary

LINES = 20_000  # per language
COUNTS = ("lines", "characters", "tokens", "unknown")
OTHER, BYTES, CONTROL = "other", "bytes", "control"
# for letters whose Unicode name does not begin with the script
SCRIPTS = {"Cjk": "Han", "Ideographic": "Han"}


def write_vocabulary_report(vocabulary: Path, sample: Path, out: Path) -> dict[str, Any]:
    """Write and return the report: pieces in all and by script, and COUNTS by language."""
    processor = load_vocabulary(vocabulary)
    progress = Progress("look at the vocabulary", count_sample(sample), "lines")
    languages: dict[str, dict[str, int]] = {}
    with reading_text(languages_of(sample)) as codes, reading_text(sample) as texts:
        lines = ([line.rstrip("\n") for line in pair] for pair in zip(codes, texts, strict=True))
        for code, text in progress.over(lines):
            counts = languages.setdefault(code, dict.fromkeys(COUNTS, 0))
            if counts["lines"] < LINES:
                (ids,) = encode_lines(processor, [text], code)
                counts["lines"] += 1
                counts["characters"] += len(text) - text.count(" ")
                counts["tokens"] += len(ids)
                counts["unknown"] += ids.count(UNK)
    report = {
        "pieces": processor.get_piece_size(),
        "scripts": dict(sorted(Counter(_scripts(processor)).items())),
        "languages": dict(sorted(languages.items())),
        "vocabulary_sha256": sha256_file(vocabulary),
    }
    write_json(out, report)
    return report


def _scripts(processor: SentencePieceProcessor) -> Iterator[str]:
    """Yield the script of each piece; BYTES for a byte piece, CONTROL for a symbol."""
    for piece in range(processor.get_piece_size()):
        if processor.is_control(piece) or processor.is_unknown(piece):
            yield CONTROL
        elif processor.is_byte(piece):
            yield BYTES
        else:
            yield script_of(processor.id_to_piece(piece))


def script_of(text: str) -> str:
    """Return the script of the first letter or combining mark, like "Latin"; "other" if none."""
    for character in text:
        if unicodedata.category(character)[0] in "LM":
            name = unicodedata.name(character, OTHER).split()[0].split("-")[0].capitalize()
            return SCRIPTS.get(name, name)
    return OTHER
