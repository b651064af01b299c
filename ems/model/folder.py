"""Model folders: their description, model.json or ems.json, and the files that encoding reads.

    model.json          trained encoder: sizes, segmenters and training;
                        character n-grams: kind, settings and the search for them
    model.safetensors   the encoder's weights
    vocabulary.model    the encoder's SentencePiece model
    ngrams.safetensors  the weight of each place that an n-gram is hashed to

A folder written by `ems export` has ems.json and SHA256SUMS instead of model.json.
"""

import re
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from ems.base.errors import Damaged, mistake
from ems.base.files import ENCODER, EXPORTED, NGRAMS, SUMS, VOCABULARY, read_json
from ems.base.records import BELOW, Below, Bounds, Json, NonBlank, Record, fitting, number, only
from ems.base.texts import read_lines
from ems.config.languages import UNSEEN
from ems.config.sizes import EncoderSizes, NgramSizes
from ems.text.segmenters.base import names

DESCRIPTION = "model.json"
TRAINED = (DESCRIPTION, ENCODER, VOCABULARY)  # files of a trained encoder that encoding reads
STATIC = "0_StaticEmbedding/model.safetensors"  # the weights of an exported table of pieces
SIZES = ("layers", "width", "heads", "feed_forward", "max_tokens", "dropout", "attention_dropout")
SegmenterName = Literal[names()]
NgramKind = Literal["char-ngram", "fused"]
Code = Annotated[str, re.compile(r"\S{1,40}").fullmatch, "the code of a language"]
Rows = Literal["float32", "int8"]  # int8: `bytes` with `scales`, one of each row, for `weight`
Size = Annotated[int, Bounds(ge=1), "a size"]


class _Described(Record):
    """Fields that model.json and ems.json share; `written` has all, for the hash."""

    model: EncoderSizes
    name: str = ""
    experiment: str = ""
    identity: str = "unknown"
    languages: list[Code] = field(default_factory=list)
    format_characters: Literal["keep", "drop"] = "keep"
    rows: Rows = "float32"
    written: Json = field(default_factory=dict)


class Description(_Described):
    """The model.json of a trained encoder, or an ems.json in this form, with its `weights`."""

    segmenters: Annotated[dict[Code, SegmenterName], Bounds(min_length=1)]
    sha256: dict[Below, NonBlank]
    training: Json = field(default_factory=dict)
    weights: Literal["", STATIC, ENCODER] = ""
    dimensions: Size | None = None


class _Export(_Described):
    languages: list[Code]
    segmenter: SegmenterName
    dimensions: Size
    static: bool


class NgramModel(Record):
    kind: NgramKind
    languages: Annotated[list[Code], Bounds(min_length=1)]
    ngrams: NgramSizes
    sha256: dict[Below, NonBlank]


class TrainedModel(Record):
    model: NonBlank  # folder of the trained encoder
    sha256: NonBlank  # of its model.json


class FusedModel(NgramModel):
    weight: Annotated[number(ge=0, le=10_000), "a number from 0 to 10,000"]
    power: Annotated[number(ge=0, le=2), "a number from 0 to 2"]
    of: TrainedModel


def _read(path: Path, record: type[_Described]) -> Any:
    """Read a description. Raises `EmsError` if a size is missing, or does not fit another one."""
    described = read_json(path, record)
    for name in SIZES:
        if name not in described.written["model"]:
            raise Damaged(path, f"expected a size under `model.{name}`, found nothing")
    described.model.check(str(path))
    return described


def read_model(folder: Path) -> Description:
    """Read the model.json of a trained encoder. Raises `EmsError` for a system of n-grams."""
    if kind := kind_of(folder):
        raise mistake("model of n-grams", folder=folder, kind=kind)
    path = folder / DESCRIPTION
    described = _read(path, Description)
    for name in (ENCODER, VOCABULARY):
        if name not in described.sha256:
            raise Damaged(path, f"expected text under `sha256.{name}`, found nothing")
    return described


def has_code(folder: Path) -> bool:
    """Return whether a folder is an export with code for sentence-transformers (ems runs none)."""
    path = folder / EXPORTED
    return path.is_file() and _read(path, _Export).model.ngrams > 0


def describe(folder: Path) -> Description:
    """Describe the trained encoder of a model folder or of an exported one, in the same form."""
    if not _exported(folder):
        return read_model(folder)
    own = _read(folder / EXPORTED, _Export)
    weights = STATIC if own.static else ENCODER
    sums = _read_sums(folder / SUMS)
    sha256 = {name: sums.get(name, "none") for name in (weights, VOCABULARY)}
    alike = dict.fromkeys([UNSEEN, *own.languages], own.segmenter)
    added = {"weights": weights, "sha256": sha256, "segmenters": alike}
    try:
        return fitting(Description, {**own.written, **added})
    except ValueError as error:
        raise Damaged(folder / EXPORTED, str(error)) from None


def checksums(folder: Path) -> dict[str, str]:
    """Return file -> SHA-256 that the folder of a trained or exported encoder lists."""
    listed = _exported(folder) or (folder / SUMS).is_file()  # a plain export has no ems.json
    return _read_sums(folder / SUMS) if listed else read_model(folder).sha256


def _read_sums(path: Path) -> dict[str, str]:
    sums = {}
    for at, line in enumerate(read_lines(path), start=1):
        row = re.fullmatch(rf"([0-9a-f]{{64}})  ({BELOW})", line)
        if not row:
            expected = "64 hexadecimal digits, two spaces and the name of a file in this folder"
            raise Damaged(path, f"line {at:,}: expected {expected}, found {line[:80]!r}")
        sums[row[2]] = row[1]
    return sums


def kind_of(folder: Path) -> str:
    """Return `kind` of a model folder; "" for a trained or exported encoder. Raises `Damaged`."""
    if _exported(folder):
        return ""
    return read_json(folder / DESCRIPTION, only("kind", NgramKind | None, None)).kind or ""


def read_description(folder: Path) -> Any:
    """Read the `NgramModel` or `FusedModel` of a folder. Raises `Damaged` for anything else."""
    record = FusedModel if kind_of(folder) == "fused" else NgramModel
    described = read_json(folder / DESCRIPTION, record)
    if NGRAMS not in described.sha256:
        problem = f"expected text under `sha256.{NGRAMS}`, found nothing"
        raise Damaged(folder / DESCRIPTION, problem)
    return described


def files_of(folder: Path) -> list[Path]:
    """List the files that encoding reads; a folder without model.json counts as an encoder."""
    if _exported(folder):
        return [folder / EXPORTED, folder / SUMS]
    kind = kind_of(folder) if (folder / DESCRIPTION).is_file() else ""
    if not kind:
        return [folder / name for name in TRAINED]
    about = read_description(folder)
    trained = [folder / about.of.model / name for name in TRAINED] if kind == "fused" else []
    return [folder / DESCRIPTION, folder / NGRAMS, *trained]


def _exported(folder: Path) -> bool:
    return (folder / EXPORTED).is_file() and not (folder / DESCRIPTION).is_file()
