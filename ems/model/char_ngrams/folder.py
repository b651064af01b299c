"""The model folder of a system of n-grams: what its model.json says, and its files.

model.json              the kind, the settings, the lines that were counted; of kind fused the
                        weight, the power, how each point of the grid scored, and where the
                        folder of the trained encoder lies
ngrams.safetensors      the weight of each place that an n-gram is hashed to
"""

from pathlib import Path
from typing import Any

from ems.base.files import ENCODER, EXPORTED, NGRAMS, SUMS, VOCABULARY, read_json
from ems.base.shapes import AMOUNT, TEXT, listing, record

DESCRIPTION = "model.json"
KINDS = ("char-ngram", "fused")
KIND = record({}, {"kind": {"enum": list(KINDS)}})  # a trained encoder's has none
COUNTED = {
    "kind": KIND["properties"]["kind"],
    "languages": listing(TEXT, least=1),
    "ngrams": {"type": "object", "description": "settings"},
    "sha256": record({NGRAMS: TEXT}),
}
OF = {"weight": AMOUNT, "power": AMOUNT, "of": record({"model": TEXT, "sha256": TEXT})}
SHAPES = {"char-ngram": record(COUNTED), "fused": record({**COUNTED, **OF})}


def kind_of(folder: Path) -> str:
    """Return the kind that a model folder says, "" of a trained encoder, also if it was exported.
    Raises `Damaged` for a model.json that is missing or is none.
    """
    if _exported(folder):
        return ""
    return read_json(folder / DESCRIPTION, KIND).get("kind", "")


def read_description(folder: Path) -> dict[str, Any]:
    """Return the model.json of a system of n-grams. Raises `Damaged` if it is none."""
    return read_json(folder / DESCRIPTION, SHAPES[kind_of(folder) or "char-ngram"])


def files_of(folder: Path) -> list[Path]:
    """Return the files that encoding with a model folder reads, of a trained encoder too.

    What is not there yet is taken to be one.
    """
    kind = kind_of(folder) if (folder / DESCRIPTION).is_file() else ""
    if _exported(folder):
        return [folder / name for name in (EXPORTED, SUMS)]
    if not kind:
        return [folder / name for name in (DESCRIPTION, ENCODER, VOCABULARY)]
    own = [folder / DESCRIPTION, folder / NGRAMS]
    if kind == "char-ngram":
        return own
    return [*own, *files_of(folder / read_description(folder)["of"]["model"])]


def _exported(folder: Path) -> bool:
    """Return whether `ems export` wrote a folder."""
    return (folder / EXPORTED).is_file() and not (folder / DESCRIPTION).is_file()
