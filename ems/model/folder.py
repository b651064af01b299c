"""Model folders: what their model.json or ems.json says, and which files encoding reads.

A trained encoder:

    model.safetensors   the encoder's weights
    model.json          its sizes, the segmenter of each language, whether format characters are
                        dropped, how it was trained
    vocabulary.model    the SentencePiece model

A system of character n-grams (`kind: char-ngram` or `fused`):

    model.json          the kind, the settings, the lines that were counted; of kind fused the
                        weight, the power, how each point of the grid scored, and where the
                        folder of the trained encoder lies
    ngrams.safetensors  the weight of each place that an n-gram is hashed to

What `ems export` wrote has ems.json and SHA256SUMS instead of model.json.
"""

from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.files import (
    ENCODER,
    EXPORTED,
    NGRAMS,
    SUMS,
    VOCABULARY,
    read_json,
    read_lines,
)
from ems.base.shapes import AMOUNT, BELOW, COUNT, TEXT, Shape, listing, mapping, record
from ems.config.languages import UNSEEN
from ems.text.segmenters.base import names

DESCRIPTION = "model.json"
STATIC = "0_StaticEmbedding/model.safetensors"  # the weights of an exported table of pieces
SIZE: Shape = {"type": "integer", "minimum": 1, "maximum": 1 << 20, "description": "a size"}
SHARE: Shape = {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "description": "a share"}
SETTINGS = record(  # of `Sizes`
    {
        "layers": {**COUNT, "maximum": 1 << 12},  # beyond it making them would take minutes
        **dict.fromkeys(("width", "heads", "feed_forward", "max_tokens"), SIZE),
        **dict.fromkeys(("dropout", "attention_dropout"), SHARE),
    },
    {
        "start": {"enum": ["ours", "pytorch"]},
        "norm_eps": {"type": "number", "minimum": 0},
        "pooling": {"enum": ["mean", "mean-max"]},
        "activation": {"enum": ["silu", "gelu"]},
        "positions": {"enum": ["learned", "none"]},
        "table": {**COUNT, "maximum": SIZE["maximum"]},
        "ngrams": {**COUNT, "maximum": 1 << 24},
    },
)
MODEL = record(  # of model.json
    {
        "model": {**SETTINGS, "additionalProperties": False},
        "segmenters": mapping({"enum": list(names())}, least=1),
        "sha256": {**mapping(TEXT, BELOW), "required": [ENCODER, VOCABULARY]},
    },
    {"format_characters": {"enum": ["keep", "drop"]}},
)
EXPORT = record(  # of ems.json
    {
        "model": {**SETTINGS, "additionalProperties": False},
        "segmenter": {"enum": list(names())},
        "languages": listing(TEXT),
        "dimensions": SIZE,
        "static": {"type": "boolean", "description": "true or false"},
    },
    {"format_characters": {"enum": ["keep", "drop"]}},
)
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


def read_model(folder: Path) -> dict[str, Any]:
    """Return the model.json of a trained encoder. Raises `EmsError` for one of n-grams."""
    path = folder / DESCRIPTION
    if kind := read_json(path, record({})).get("kind"):
        raise EmsError(
            f"{folder}: expected the model folder of a trained encoder, found one of kind {kind}, "
            "which only benchmarks can use (`ems eval`, or `kind: folder`)"
        )
    return read_json(path, MODEL)


def is_ours(folder: Path) -> bool:
    """Return whether a folder is a model folder of ours, or one that `ems export` wrote."""
    return any((folder / name).is_file() for name in (DESCRIPTION, EXPORTED))


def has_code(folder: Path) -> bool:
    """Return whether an exported folder has code for sentence-transformers; ems runs none of it."""
    path = folder / EXPORTED
    return path.is_file() and read_json(path, EXPORT)["model"].get("ngrams", 0) > 0


def describe(folder: Path) -> dict[str, Any]:
    """Return the description of a model folder, or of an exported one in the same form."""
    exported = not (folder / DESCRIPTION).is_file() and (folder / EXPORTED).is_file()
    return _read_export(folder) if exported else read_model(folder)


def _read_export(folder: Path) -> dict[str, Any]:
    """Return the description of an exported folder in the form of model.json."""
    own = read_json(folder / EXPORTED, EXPORT)
    weights = STATIC if own["static"] else ENCODER
    rows = (line.split(maxsplit=1) for line in read_lines(folder / SUMS))
    sums = {name: sha256 for sha256, name in rows}
    sha256 = {name: sums.get(name, "") for name in (weights, VOCABULARY)}
    alike = dict.fromkeys([UNSEEN, *own["languages"]], own["segmenter"])
    return {**own, "weights": weights, "sha256": sha256, "segmenters": alike}


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
