"""Count text in the encoding of a legacy font, and private characters; nothing is mended.

legacy.tsv has the signs of Zawgyi (Burmese), Kruti Dev (Hindi) and TCVN3 (Vietnamese).
"""

from pathlib import Path

from ems.text.repairs.base import Repair, rules


def repair(language: str) -> Repair | None:
    found = rules(Path(__file__).with_suffix(".tsv"), language)
    return found and Repair(found.suspects, seen=lambda text: found.text(text) != text)
