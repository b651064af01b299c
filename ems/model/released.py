"""The authors' checkpoint (EMS_model.pt) and their SentencePiece model as one of our model folders.

https://github.com/Mao-KU/EMS: `torch.save` of a dict with `state_dict`, the keys of which start
with "module." (DistributedDataParallel). The cheapest check of a benchmark there is: EMS v2 Table
IV prints 89.8 for it on Tatoeba.

Notable choices:
- the file is a pickle, so it is read by this step alone, as tensors only (`weights_only`), and what
  stays is safetensors and JSON;
- their position 0 is padding, so ours are theirs from 1 on; their query, key and value are ours in
  one;
- the heads of training are known by name and left out; any other key is an error, so that a model
  of another shape is never half-read;
- the number of heads is in no weight: 64 wide each, as their both models (16 of 1024, 8 of 512);
- ids are the vocabulary's: 0 <pad>, 1 <unk>, 2 <MASK>, then a control symbol <2xx> per language;
- words are segmented as EMS v2 section IV-B says and lower-cased after it; their embed.py
  lower-cases before, and has sacremoses in place of the Perl script (an option here).
"""

import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ems.errors import EmsError
from ems.files import atomic_path, sha256_file, write_json
from ems.model.encoder import Encoder, EncoderSettings
from ems.segmenters.base import default_for
from ems.text.subwords import PAD, UNK, language_token, load_vocabulary

HEAD_WIDTH = 64
NORM_EPS = 1e-12
MODULE, BERT = "module.", "model.bert."  # prefixes of their keys
LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.+)")
UNSEEN = "und"  # a language that it was not trained on, for the segmenter of such
OUTSIDE = {  # theirs -> ours
    "embedding.word_embedding.embedding.weight": "tokens.weight",
    "embedding.position_embedding.position_embeddings.weight": "positions.weight",
    "embedding.layer_norm": "input_norm",
}
IN_LAYER = {
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "inner",
    "output.dense": "outer",
    "output.LayerNorm": "output_norm",
}
FIRST = ["<pad>", "<unk>", "<mask>"]  # theirs is <MASK>
PROJECTIONS = ("query", "key", "value")
TRAINING = re.compile(  # the heads
    r"model\.(la_tag_linear|transform|decoder|target_embedding)\.|alignproj\.[03]\."
)
SAFE = [  # what `best_loss` may be: a number of NumPy
    (np._core.multiarray.scalar, "numpy.core.multiarray.scalar"),
    np._core.multiarray.scalar,
    np.dtype,
    *(type(np.dtype(kind)) for kind in ("float32", "float64", "int64")),
]


def import_released(
    weights: Path, spm: Path, out: Path, heads: int = 0, segmenter: str = "moses"
) -> str:
    """Write the model folder `out`; what it is, in words.

    `heads`: of attention, 0 for 64 wide each; `segmenter`: of the languages whose segmenter is
    Moses. Raises `EmsError` for a file that cannot be read, keys and shapes that are not the
    authors', and a vocabulary of another size or layout.
    """
    state = read_state(weights)
    settings = sizes(state, heads, weights)
    vocabulary = load_vocabulary(spm)
    languages = languages_of(vocabulary, spm)
    pieces = len(state["tokens.weight"])
    if vocabulary.get_piece_size() != pieces:
        raise EmsError(
            f"{spm}: {vocabulary.get_piece_size():,} pieces, but {weights} has embeddings of "
            f"{pieces:,}; give the SentencePiece model that it was trained with"
        )
    _check_shapes(state, settings, weights)
    with atomic_path(out / "model.safetensors") as temporary:
        save_file({key: value.contiguous() for key, value in state.items()}, temporary)
    with atomic_path(out / "vocabulary.model") as temporary:
        shutil.copyfile(spm, temporary)
    _describe(out, settings, languages, segmenter, sha256_file(weights))
    return (
        f"{settings.layers} layers, width {settings.width}, {settings.heads} heads, {pieces:,} "
        f"pieces, {len(languages)} languages"
    )


def read_state(path: Path) -> dict[str, Tensor]:
    """The encoder's weights by our names, float32. Raises `EmsError` for another checkpoint."""
    found = _loaded(path).get("state_dict")
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        raise EmsError(f"{path}: expected a dict with a `state_dict` of tensors, found none")
    state: dict[str, Tensor] = {}
    parts: dict[str, dict[str, Tensor]] = {}
    names = {key: _renamed(key) for key in found if not TRAINING.match(key.removeprefix(MODULE))}
    _refuse(path, "unknown", [key for key, ours in names.items() if not ours])
    for key, ours in names.items():
        if isinstance(ours, tuple):
            parts.setdefault(ours[0], {})[ours[1]] = found[key].float()
        else:
            state[ours] = found[key].float()
    state |= {key: _together(path, key, each) for key, each in parts.items()}
    if "positions.weight" in state:
        state["positions.weight"] = state["positions.weight"][1:]  # theirs: 0 is padding
    return state


def _together(path: Path, key: str, parts: dict[str, Tensor]) -> Tensor:
    """Query, key and value as one matrix, or one bias."""
    _refuse(path, "missing", [f"{name} of {key}" for name in PROJECTIONS if name not in parts])
    shapes = {name: list(parts[name].shape) for name in PROJECTIONS}
    if len(set(map(tuple, shapes.values()))) > 1:
        raise EmsError(f"{path}: {key} has parts of unlike shapes, {shapes}")
    return torch.cat([parts[name] for name in PROJECTIONS])  # (3d, d) or (3d,)


def _loaded(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise EmsError(f"{path}: no such file; https://github.com/Mao-KU/EMS says where to get it")
    try:
        with torch.serialization.safe_globals(SAFE):
            found = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
    except Exception as error:  # of pickle, zip and torch, each with its own
        said = " ".join(str(error).split())[:300]
        raise EmsError(
            f"{path}: not a checkpoint of tensors and numbers only, so it is not loaded: {said}"
        ) from None
    if not isinstance(found, dict):
        raise EmsError(f"{path}: expected a dict with a `state_dict`, found {type(found).__name__}")
    return found


def _renamed(key: str) -> str | tuple[str, str]:
    """Our name of one of their keys, of a projection also which of the three; '' for no such."""
    key = key.removeprefix(MODULE)
    if not key.startswith(BERT):
        return ""
    key = key.removeprefix(BERT)
    if key in OUTSIDE:
        return OUTSIDE[key]
    module, _, kind = key.rpartition(".")
    if kind not in ("weight", "bias"):
        return ""
    if module in OUTSIDE:
        return f"{OUTSIDE[module]}.{kind}"
    layer = LAYER.fullmatch(module)
    if not layer:
        return ""
    number, inner = layer.groups()
    if inner in IN_LAYER:
        return f"layers.{number}.{IN_LAYER[inner]}.{kind}"
    before, _, name = inner.rpartition(".")
    if before == "attention.self_attention" and name in PROJECTIONS:
        return f"layers.{number}.attention.input.{kind}", name
    return ""


def _refuse(path: Path, what: str, keys: list[str]) -> None:
    if keys:
        more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
        raise EmsError(
            f"{path}: {what} weights, {', '.join(sorted(keys)[:3])}{more}; expected the checkpoint "
            "of https://github.com/Mao-KU/EMS"
        )


def sizes(state: dict[str, Tensor], heads: int, path: Path) -> EncoderSettings:
    """The sizes of an encoder with these weights. Raises `EmsError` where one cannot be told."""
    wanted = ("tokens.weight", "positions.weight", "layers.0.inner.weight")
    _refuse(path, "missing", [key for key in wanted if key not in state])
    for key in wanted:
        if state[key].ndim != 2:
            raise EmsError(
                f"{path}: {key} has the shape {list(state[key].shape)}, expected two sizes"
            )
    width = state["tokens.weight"].shape[1]
    layers = {int(key.split(".")[1]) for key in state if key.startswith("layers.")}
    heads = heads or max(1, width // HEAD_WIDTH)
    if width % heads:
        raise EmsError(f"--heads {heads}: the width of {path}, {width}, is no multiple of it")
    return EncoderSettings(
        layers=max(layers) + 1,
        width=width,
        heads=heads,
        feed_forward=state["layers.0.inner.weight"].shape[0],
        dropout=0.1,
        attention_dropout=0.1,
        max_tokens=len(state["positions.weight"]),
        start="pytorch",
        norm_eps=NORM_EPS,
    )


def _check_shapes(state: dict[str, Tensor], settings: EncoderSettings, path: Path) -> None:
    """Raise `EmsError` unless these are the weights of an encoder of those sizes, all of them."""
    with torch.device("meta"):
        expected = Encoder(settings, len(state["tokens.weight"])).state_dict()
    _refuse(path, "missing", [key for key in expected if key not in state])
    for key, value in expected.items():
        if state[key].shape != value.shape:
            raise EmsError(
                f"{path}: {key} has the shape {list(state[key].shape)}, expected "
                f"{list(value.shape)} by the sizes of its other weights"
            )
        if not torch.isfinite(state[key]).all():
            raise EmsError(f"{path}: {key} has a value that is not finite; the file is damaged")


def languages_of(vocabulary: Any, path: Path) -> list[str]:
    """The languages of the control symbols, in order. Raises `EmsError` for another layout."""
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


def _describe(
    out: Path, settings: EncoderSettings, languages: list[str], segmenter: str, source: str
) -> None:
    """model.json, written last."""
    segmenters = {code: default_for(code) for code in (UNSEEN, *languages)}
    files = ("model.safetensors", "vocabulary.model")
    description = {
        "name": "released",
        "released_sha256": source,
        "model": dict(vars(settings)),
        "languages": languages,
        "segmenters": {k: segmenter if v == "moses" else v for k, v in segmenters.items()},
        "format_characters": "keep",
        "sha256": {name: sha256_file(out / name) for name in files},
    }
    write_json(out / "model.json", description)
