"""Import the authors' checkpoint (EMS_model.pt) and SentencePiece model as a model folder.

https://github.com/Mao-KU/EMS has a pickle, read as tensors only (`weights_only`), whose keys start
with "module.". Its weights differ from ours: position 0 is padding; query, key and value are three
matrices; ids are 0 <pad>, 1 <unk>, 2 <MASK>, then <2xx> per language, in the order of the language
embeddings. The heads have the settings of their training, for `perf/validate.py`. Any other key is
an error. No weight tells the number of attention heads: each is 64 wide in both their models.
"""

import re
import zipfile
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ems.base.errors import EmsError, mistake
from ems.base.files import ENCODER, VOCABULARY, read_table, sha256_file, write_json
from ems.base.schema import plain
from ems.config.languages import UNSEEN
from ems.config.model import EncoderSettings, HeadSettings
from ems.config.objectives import ContrastiveSettings, Objectives, XtrSettings
from ems.config.train import TrainSettings
from ems.model.devices import save_model
from ems.model.encode import bert_names
from ems.model.encoder import Encoder
from ems.model.objectives.contrastive import ContrastiveHead
from ems.model.objectives.generative import GenerativeHead
from ems.text.segmenters.base import defaults
from ems.text.subwords import LANGUAGE, PAD, UNK, load_vocabulary

HEAD_WIDTH = 64
MODULE, BERT = "module.", "model.bert."  # prefixes of their keys
LAYER = re.compile(rf"{re.escape(BERT)}encoder\.layer\.(\d+)\.")
EMBEDDINGS = {  # ours: theirs
    "tokens.weight": [f"{BERT}embedding.word_embedding.embedding.weight"],
    "positions.weight": [f"{BERT}embedding.position_embedding.position_embeddings.weight"],
}
FIRST = ["<pad>", "<unk>", "<mask>"]  # theirs is <MASK>
TOKEN = re.compile(LANGUAGE.format("(.+)"), re.DOTALL)
HEAD_KEYS = {  # theirs: ours; two modules had other names before
    f"{row['theirs']}.{kind}": f"{row['ours']}.{kind}"
    for row in read_table(Path(__file__).with_suffix(".tsv"))
    for kind in ("weight", "bias")
}
LANGUAGES, OUTPUT = "generative.languages.weight", "generative.output.weight"
PROJECTION = "contrastive.outer.weight"
SHARED = "model.target_embedding.weight"  # present if token embeddings are the output matrix
SAFE = [  # types that `best_loss` may have: a number of NumPy
    (np._core.multiarray.scalar, "numpy.core.multiarray.scalar"),
    np._core.multiarray.scalar,
    np.dtype,
    *(type(np.dtype(kind)) for kind in ("float32", "float64", "int64")),
]
# EMS v2 IV-C and IV-D; the masked token is in the authors' code only
MODEL = {"dropout": 0.1, "attention_dropout": 0.1, "start": "pytorch", "norm_eps": 1e-12}
TRAIN = {"steps": 733176, "batch_pairs": 608, "amsgrad": True, "input_mask": "one"}


def import_released(
    weights: Path, spm: Path, out: Path, heads: int = 0, segmenter: str = "moses"
) -> str:
    """Write the model folder `out` and return a description of it. `heads`: number of attention
    heads (default: width / 64); `segmenter`: replaces Moses. Raises `EmsError` for an unreadable
    file, other keys and shapes than the authors', and a vocabulary of another size or layout.
    """
    state, of_training = read_state(weights)
    settings = sizes(state, heads, weights)
    vocabulary = load_vocabulary(spm)
    languages = languages_of(vocabulary, spm)
    pieces = len(state["tokens.weight"])
    if vocabulary.get_piece_size() != pieces:
        words = {"spm": spm, "found": vocabulary.get_piece_size(), "expected": pieces}
        raise mistake("vocabulary of another model", weights=weights, **words)
    with torch.device("meta"):
        _check_shapes(state, Encoder(settings, pieces), weights)
    objectives = _objectives(of_training, settings, len(languages), pieces, weights)
    save_model(out, state, of_training, spm)
    # EMS v2 IV-B segments, then lower-cases; their embed.py lower-cases before, by sacremoses
    chosen = defaults((UNSEEN, *languages)).items()
    tools = {code: segmenter if name == "moses" else name for code, name in chosen}
    system = {"model": settings, "objectives": objectives, "train": TrainSettings(**TRAIN)}
    description = {
        "name": "released",
        "released_sha256": sha256_file(weights),
        "model": plain(settings),
        "training": {"system": {name: plain(part) for name, part in system.items()}},
        "languages": languages,
        "segmenters": tools,
        "format_characters": "keep",
        "sha256": {name: sha256_file(out / name) for name in (ENCODER, VOCABULARY)},
    }
    write_json(out / "model.json", description)
    encoder = f"{settings.layers} layers, width {settings.width}, {settings.heads} heads"
    return f"{encoder}, {pieces:,} pieces, {len(languages)} languages"


def read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Read encoder and heads in float32, by our names. Raises `EmsError` for other weights."""
    state = _loaded(path)
    keys = {key.removeprefix(MODULE): key for key in state}
    layers = max((int(match[1]) for key in keys if (match := LAYER.match(key))), default=0) + 1
    names = bert_names(layers, "embedding.layer_norm", "attention.self_attention")
    sources = {ours: [BERT + key for key in theirs] for ours, theirs in names.items()} | EMBEDDINGS
    known = {key for parts in sources.values() for key in parts} | {*HEAD_KEYS, SHARED}
    _refuse(path, "unknown", [keys[key] for key in keys.keys() - known])
    missing = [
        ours if len(parts) == 1 else f"{key.split('.')[-2]} of {ours}"
        for ours, parts in sources.items()
        for key in parts
        if key not in keys
    ]
    _refuse(path, "missing", missing)
    encoder = {}
    for ours, parts in sources.items():
        tensors = [state[keys[key]].float() for key in parts]
        shapes = [list(tensor.shape) for tensor in tensors]
        if any(shape != shapes[0] for shape in shapes):
            raise EmsError(f"{path}: {ours} has parts of unlike shapes, {shapes}")
        encoder[ours] = torch.cat(tensors)  # (3d, d) or (3d,) of query, key and value
    encoder["positions.weight"] = encoder["positions.weight"][1:]  # theirs: 0 is padding
    heads = {HEAD_KEYS[key]: state[keys[key]].float() for key in keys.keys() & HEAD_KEYS.keys()}
    if SHARED in keys:
        heads.pop(OUTPUT, None)
    return encoder, heads


def _loaded(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise EmsError(f"{path}: no such file; https://github.com/Mao-KU/EMS says where to get it")
    try:
        with torch.serialization.safe_globals(SAFE):
            zipped = zipfile.is_zipfile(path)
            saved = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except Exception as error:  # pickle, zip and torch each raise others
        reason = " ".join(str(error).split())[:300]
        raise mistake("no checkpoint", path=path, reason=reason) from None
    state = saved.get("state_dict") if isinstance(saved, dict) else None
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise EmsError(f"{path}: expected a dict with a `state_dict` of tensors, found none")
    return state


def _refuse(path: Path, problem: str, keys: list[str]) -> None:
    if keys:
        more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
        some = ", ".join(sorted(keys)[:3]) + more
        raise mistake("other weights", path=path, problem=problem, some=some)


def sizes(state: dict[str, Tensor], heads: int, path: Path) -> EncoderSettings:
    """Derive an encoder's settings from its weights. Raises `EmsError` if they do not fit."""
    names = "tokens.weight", "positions.weight", "layers.0.inner.weight"
    (_, width), (positions, _), (inner, _) = (_size(state, name, path) for name in names)
    heads = heads or max(1, width // HEAD_WIDTH)
    if width % heads:
        raise EmsError(f"--heads {heads}: the width of {path}, {width}, is no multiple of it")
    layers = 1 + max(int(key.split(".")[1]) for key in state if key.startswith("layers."))
    counted = {"layers": layers, "width": width, "heads": heads, "feed_forward": inner}
    return EncoderSettings(**counted, max_tokens=positions, **MODEL)


def _size(state: dict[str, Tensor], key: str, path: Path) -> tuple[int, int]:
    """Return (rows, columns) of a matrix; (0, 0) if `state` lacks it."""
    shape = list(state[key].shape) if key in state else [0, 0]
    if len(shape) != 2:
        raise EmsError(f"{path}: {key} has the shape {shape}, expected two sizes")
    return shape[0], shape[1]


def _objectives(
    heads: dict[str, Tensor], model: EncoderSettings, languages: int, pieces: int, path: Path
) -> Objectives:
    """Derive the objectives from their heads. Raises `EmsError` for missing or other weights."""
    width, projection = _size(heads, LANGUAGES, path)[1], _size(heads, PROJECTION, path)[0]
    output = "own" if OUTPUT in heads else "shared"
    head = HeadSettings(language_width=width, output=output, layer_norm=True, dropout=0.1)
    with torch.device("meta"):
        modules = nn.ModuleDict({"generative": GenerativeHead(model, head, languages, pieces)})
        if projection:
            modules["contrastive"] = ContrastiveHead(model, projection)
    expected = modules.state_dict().keys()
    _refuse(path, "missing", [f"heads.{key}" for key in expected - heads.keys()])
    _refuse(path, "unknown", [f"heads.{key}" for key in heads.keys() - expected])
    _check_shapes(heads, modules, path)
    weight = 1 if projection else 0
    contrastive = ContrastiveSettings(weight=weight, width=projection, negatives=152)  # on each GPU
    return Objectives(head=head, xtr=XtrSettings(target="distinct"), contrastive=contrastive)


def _check_shapes(state: dict[str, Tensor], module: nn.Module, path: Path) -> None:
    """Raise `EmsError` unless all weights are finite and have the module's shapes."""
    for key, value in module.state_dict().items():
        if state[key].shape != value.shape:
            words = {"found": str(list(state[key].shape)), "expected": str(list(value.shape))}
            raise mistake("weight of another shape", path=path, key=key, **words)
        if not torch.isfinite(state[key]).all():
            raise EmsError(f"{path}: {key} has a value that is not finite; the file is damaged")


def languages_of(vocabulary: Any, path: Path) -> list[str]:
    """List the languages of the control symbols <2xx>. Raises `EmsError` for another layout."""
    pieces = [vocabulary.id_to_piece(number) for number in range(len(vocabulary))]
    special = (vocabulary.pad_id(), vocabulary.unk_id())
    if [piece.lower() for piece in pieces[:3]] != FIRST or special != (PAD, UNK):
        raise EmsError(f"{path}: expected the pieces {', '.join(FIRST)} first, found {pieces[:3]}")
    codes = [match[1] for match in takewhile(bool, map(TOKEN.fullmatch, pieces[3:]))]
    if "en" not in codes:
        raise EmsError(f"{path}: expected language tokens like <2en> from piece 3 on, found none")
    return codes
