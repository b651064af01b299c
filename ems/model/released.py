"""The authors' checkpoint (EMS_model.pt) and their SentencePiece model as one of our model folders.

https://github.com/Mao-KU/EMS: a pickle, read as tensors only (`weights_only`), with a `state_dict`
whose keys start with "module.". EMS v2 Table IV prints 89.8 for it on Tatoeba. The weights differ
from ours in three ways: position 0 is padding; query, key and value are three matrices; and ids are
0 <pad>, 1 <unk>, 2 <MASK>, then <2xx> per language, in the order of the language embeddings. The
heads of training come along, with what their code trains with, so that `ems validate` computes the
authors' losses. Any other key is an error, so that a model of another shape is never half-read. The
number of attention heads is in no weight: each is 64 wide in both their models (16 of 1024, 8 of
512).
"""

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ems.base.errors import EmsError
from ems.base.files import ENCODER, VOCABULARY, sha256_file, write_json
from ems.base.schema import plain
from ems.config.model import EncoderSettings, HeadSettings
from ems.config.objectives import ContrastiveSettings, Objectives, XtrSettings
from ems.config.train import TrainSettings
from ems.model.devices import save_model
from ems.model.encode import bert_names
from ems.model.encoder import Encoder
from ems.model.objectives.contrastive import ContrastiveHead
from ems.model.objectives.generative import GenerativeHead
from ems.text.segmenters.base import defaults
from ems.text.subwords import PAD, UNK, language_token, load_vocabulary

HEAD_WIDTH = 64
NORM_EPS = 1e-12
MODULE, BERT = "module.", "model.bert."  # prefixes of their keys
LAYER = re.compile(rf"{re.escape(BERT)}encoder\.layer\.(\d+)\.")
UNSEEN = "und"  # a language that it was not trained on, for the segmenter of such
EMBEDDINGS = {  # ours: theirs
    "tokens.weight": [f"{BERT}embedding.word_embedding.embedding.weight"],
    "positions.weight": [f"{BERT}embedding.position_embedding.position_embeddings.weight"],
}
FIRST = ["<pad>", "<unk>", "<mask>"]  # theirs is <MASK>
HEAD_MODULES = {
    "generative.languages": ["model.la_tag_linear.embedding"],
    "generative.language_norm": ["model.la_tag_linear.layer_norm"],
    "generative.mix": ["model.transform.dense", "model.decoder.transform.dense"],  # now, before
    "generative.norm": ["model.transform.LayerNorm", "model.decoder.transform.LayerNorm"],
    "generative.output": ["model.decoder.decoder"],
    "contrastive.inner": ["alignproj.0"],
    "contrastive.outer": ["alignproj.3"],
}
HEAD_KEYS = {  # theirs: ours
    f"{module}.{kind}": f"{ours}.{kind}"
    for ours, theirs in HEAD_MODULES.items()
    for module in theirs
    for kind in ("weight", "bias")
}
LANGUAGES, OUTPUT = "generative.languages.weight", "generative.output.weight"
PROJECTION = "contrastive.outer.weight"
SHARED = "model.target_embedding.weight"  # there if the output matrix is the token embeddings
SAFE = [  # what `best_loss` may be: a number of NumPy
    (np._core.multiarray.scalar, "numpy.core.multiarray.scalar"),
    np._core.multiarray.scalar,
    np.dtype,
    *(type(np.dtype(kind)) for kind in ("float32", "float64", "int64")),
]
# EMS v2 IV-C and IV-D, and what only the code says: distinct labels, and a masked token
TRAIN = {"steps": 733176, "batch_pairs": 608, "amsgrad": True, "input_mask": "one"}


def import_released(
    weights: Path, spm: Path, out: Path, heads: int = 0, segmenter: str = "moses"
) -> str:
    """Write the model folder `out` and return a description of it.

    `heads`: number of attention heads (default: width / 64); `segmenter`: of the languages whose
    segmenter is Moses. Raises `EmsError` for a file that cannot be read, keys and shapes that are
    not the authors', and a vocabulary of another size or layout.
    """
    state, of_training = read_state(weights)
    settings = sizes(state, heads, weights)
    vocabulary = load_vocabulary(spm)
    languages = languages_of(vocabulary, spm)
    pieces = len(state["tokens.weight"])
    if vocabulary.get_piece_size() != pieces:
        raise EmsError(
            f"{spm}: {vocabulary.get_piece_size():,} pieces, but {weights} has embeddings of "
            f"{pieces:,}; give the SentencePiece model that it was trained with"
        )
    with torch.device("meta"):
        expected = Encoder(settings, pieces).state_dict()
    _check_shapes(state, expected, weights)
    objectives = _objectives(of_training, settings, len(languages), pieces, weights)
    save_model(out, state, of_training, spm)
    description = {
        "name": "released",
        "released_sha256": sha256_file(weights),
        "model": plain(settings),
        "training": {
            "system": {
                "model": plain(settings),
                "objectives": plain(objectives),
                "train": plain(TrainSettings(**TRAIN)),
            }
        },
        "languages": languages,
        "segmenters": _segmenters(languages, segmenter),
        "format_characters": "keep",
        "sha256": {name: sha256_file(out / name) for name in (ENCODER, VOCABULARY)},
    }
    write_json(out / "model.json", description)
    return (
        f"{settings.layers} layers, width {settings.width}, {settings.heads} heads, {pieces:,} "
        f"pieces, {len(languages)} languages"
    )


def read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Read encoder and heads by our names, float32. Raises `EmsError` for other weights."""
    state = _loaded(path)
    keys = {key.removeprefix(MODULE): key for key in state}
    layers = max((int(match[1]) for key in keys if (match := LAYER.match(key))), default=0) + 1
    sources = _sources(layers)
    known = {key for parts in sources.values() for key in parts} | {*HEAD_KEYS, SHARED}
    _refuse(path, "unknown", [keys[key] for key in keys.keys() - known])
    missing = [
        ours if len(parts) == 1 else f"{key.split('.')[-2]} of {ours}"
        for ours, parts in sources.items()
        for key in parts
        if key not in keys
    ]
    _refuse(path, "missing", missing)
    ours = {
        name: _joined(path, name, [state[keys[key]].float() for key in parts])
        for name, parts in sources.items()
    }
    ours["positions.weight"] = ours["positions.weight"][1:]  # theirs: 0 is padding
    heads = {HEAD_KEYS[key]: state[keys[key]].float() for key in keys.keys() & HEAD_KEYS.keys()}
    if SHARED in keys:
        heads.pop(OUTPUT, None)
    return ours, heads


def _loaded(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise EmsError(f"{path}: no such file; https://github.com/Mao-KU/EMS says where to get it")
    try:
        with torch.serialization.safe_globals(SAFE):
            saved = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
    except Exception as error:  # of pickle, zip and torch, each with its own
        reason = " ".join(str(error).split())[:300]
        raise EmsError(
            f"{path}: not a checkpoint of tensors and numbers only, so it is not loaded: {reason}"
        ) from None
    state = saved.get("state_dict") if isinstance(saved, dict) else None
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise EmsError(f"{path}: expected a dict with a `state_dict` of tensors, found none")
    return state


def _sources(layers: int) -> dict[str, list[str]]:
    """Map each of our weights to theirs, in a model of so many layers."""
    names = bert_names(layers, "embedding.layer_norm", "attention.self_attention")
    return EMBEDDINGS | {ours: [BERT + name for name in theirs] for ours, theirs in names.items()}


def _joined(path: Path, name: str, parts: list[Tensor]) -> Tensor:
    """Stack query, key and value; any other weight is one part."""
    shapes = [list(part.shape) for part in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise EmsError(f"{path}: {name} has parts of unlike shapes, {shapes}")
    return torch.cat(parts)  # (3d, d) or (3d,)


def _refuse(path: Path, problem: str, keys: list[str]) -> None:
    if keys:
        more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
        raise EmsError(
            f"{path}: {problem} weights, {', '.join(sorted(keys)[:3])}{more}; expected the "
            "checkpoint of https://github.com/Mao-KU/EMS"
        )


def sizes(state: dict[str, Tensor], heads: int, path: Path) -> EncoderSettings:
    """Return the sizes of an encoder with these weights. Raises `EmsError` if they have none."""
    _check_matrices(state, ("tokens.weight", "positions.weight", "layers.0.inner.weight"), path)
    width = state["tokens.weight"].shape[1]
    heads = heads or max(1, width // HEAD_WIDTH)
    if width % heads:
        raise EmsError(f"--heads {heads}: the width of {path}, {width}, is no multiple of it")
    return EncoderSettings(
        layers=1 + max(int(key.split(".")[1]) for key in state if key.startswith("layers.")),
        width=width,
        heads=heads,
        feed_forward=state["layers.0.inner.weight"].shape[0],
        dropout=0.1,
        attention_dropout=0.1,
        max_tokens=len(state["positions.weight"]),
        start="pytorch",
        norm_eps=NORM_EPS,
    )


def _check_matrices(state: dict[str, Tensor], keys: Iterable[str], path: Path) -> None:
    """Raise `EmsError` unless these weights have two sizes each."""
    for key in keys:
        if state[key].ndim != 2:
            shape = list(state[key].shape)
            raise EmsError(f"{path}: {key} has the shape {shape}, expected two sizes")


def _objectives(
    heads: dict[str, Tensor], model: EncoderSettings, languages: int, pieces: int, path: Path
) -> Objectives:
    """Return the objectives of such heads. Raises `EmsError` for weights that they cannot have."""
    _check_matrices(heads, heads.keys() & {LANGUAGES, PROJECTION}, path)
    width = heads[LANGUAGES].shape[1] if LANGUAGES in heads else 0
    projection = len(heads[PROJECTION]) if PROJECTION in heads else 0
    output = "own" if OUTPUT in heads else "shared"
    head = HeadSettings(language_width=width, output=output, layer_norm=True, dropout=0.1)
    with torch.device("meta"):
        made = nn.ModuleDict({"generative": GenerativeHead(model, head, languages, pieces)})
        if projection:
            made["contrastive"] = ContrastiveHead(model, projection)
    expected = made.state_dict()
    _refuse(path, "missing", [f"heads.{key}" for key in expected.keys() - heads.keys()])
    _refuse(path, "unknown", [f"heads.{key}" for key in heads.keys() - expected.keys()])
    _check_shapes(heads, expected, path)
    weight = 1 if projection else 0
    contrastive = ContrastiveSettings(weight=weight, width=projection, negatives=152)  # of each GPU
    return Objectives(head=head, xtr=XtrSettings(target="distinct"), contrastive=contrastive)


def _check_shapes(state: dict[str, Tensor], expected: dict[str, Tensor], path: Path) -> None:
    """Raise `EmsError` unless all weights are finite and of the expected shapes."""
    for key, value in expected.items():
        if state[key].shape != value.shape:
            raise EmsError(
                f"{path}: {key} has the shape {list(state[key].shape)}, expected "
                f"{list(value.shape)} by the sizes of its other weights"
            )
        if not torch.isfinite(state[key]).all():
            raise EmsError(f"{path}: {key} has a value that is not finite; the file is damaged")


def languages_of(vocabulary: Any, path: Path) -> list[str]:
    """Return the languages of the control symbols. Raises `EmsError` for another layout."""
    pieces = [vocabulary.id_to_piece(number) for number in range(len(vocabulary))]
    special = (vocabulary.pad_id(), vocabulary.unk_id())
    if [piece.lower() for piece in pieces[:3]] != FIRST or special != (PAD, UNK):
        raise EmsError(f"{path}: expected the pieces {', '.join(FIRST)} first, found {pieces[:3]}")
    codes = []
    for piece in pieces[3:]:
        code = piece[2:-1]
        if not code or piece != language_token(code):
            break
        codes.append(code)
    if "en" not in codes:
        raise EmsError(f"{path}: expected language tokens like <2en> from piece 3 on, found none")
    return codes


def _segmenters(languages: list[str], moses: str) -> dict[str, str]:
    """Return the segmenter of each language; `moses` stands in for Moses."""
    # EMS v2 IV-B segments, then lower-cases; their embed.py lower-cases before, by sacremoses
    chosen = defaults((UNSEEN, *languages))
    return {code: moses if name == "moses" else name for code, name in chosen.items()}
