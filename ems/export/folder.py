"""`ems export`: write the folder of a trained encoder, check it in another process, describe it.

    modules.json, config.json, model.safetensors, tokenizer.json, ...   for sentence-transformers
    ngram_embedding.py, table.py                                        its code of n-grams
    onnx/model.onnx, onnx/model_qint8.onnx                              for onnxruntime
    vocabulary.model, ems.json                                          for ems
    README.md, SHA256SUMS                                               for people

A folder is written whole or not at all, and only if its token ids and vectors are ours.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import torch

from ems.base.errors import EmsError
from ems.base.files import (
    ENCODER,
    EXPORTED,
    SUMS,
    VOCABULARY,
    atomic_path,
    sha256_file,
    write_json,
    write_text,
)
from ems.bench.retrieval import normalised
from ems.config.languages import UNSEEN
from ems.export import check_installed, is_export
from ems.export.bert import bert_config, bert_weights, is_table, table, table_weights
from ems.export.code import MODULE, write_code
from ems.export.onnx import write_int8, write_onnx
from ems.export.onnx_table import write_table
from ems.export.tokenizer import make_tokenizer, tokenizer_config
from ems.model.devices import save_tensors
from ems.model.encode import SentenceEncoder
from ems.model.folder import STATIC, read_model
from ems.text.subwords import UNK

CARD = "README.md"
MODULES = "sentence_transformers.models"  # the name that all its versions know
LEAST = {"float32": 0.99999, "onnx": 0.99999, "int8": 0.995}  # cosines
Figures = dict[str, Any]  # of ems.export.verify
TAIL = 800  # characters of what the other process said


@dataclass(frozen=True)
class Options:
    """What the folder has besides the files of sentence-transformers."""

    onnx: bool = False
    int8: bool = False
    dimensions: int = 0


@dataclass
class Exported:
    """A model on its way into a folder: with one segmenter for all of its languages."""

    model: Path
    segmenter: str
    options: Options
    description: dict[str, Any] = field(init=False)
    ours: SentenceEncoder = field(init=False)

    def __post_init__(self) -> None:
        self.description = read_model(self.model)
        sizes = self.description["model"]
        if sizes["layers"] and sizes.get("table"):
            raise EmsError(
                f"{self.model}: ems export cannot write a model with layers and a table (layers: "
                f"{sizes['layers']}, table: {sizes['table']}); use it by `ems encode` or "
                "ems.Encoder, or train one with `layers: 0` or `table: 0`"
            )
        self.ours = SentenceEncoder(self.model, "cpu")
        languages = {UNSEEN, *self.ours.segmenters}
        self.ours.segmenters = dict.fromkeys(languages, self.segmenter)
        self.ours.encoder.requires_grad_(False)

    @property
    def dimensions(self) -> int:
        """The width of an embedding. Raises `EmsError` for one that was not trained."""
        whole, asked = self.ours.encoder.settings.pooled_width, self.options.dimensions
        if asked in (0, whole):
            return whole
        system = self.description.get("training", {}).get("system", {})
        matryoshka = system.get("objectives", {}).get("matryoshka") or {}
        trained = matryoshka.get("dimensions", []) if matryoshka.get("weight") else []
        if asked not in trained:
            known = ", ".join(map(str, [*trained, whole]))
            raise EmsError(
                f"--dimensions {asked}: {self.model} was trained for {known}; choose one, or train "
                "with objectives.matryoshka"
            )
        return asked

    @property
    def static(self) -> bool:
        """Return whether it is a table of vectors, without a matrix product."""
        return is_table(self.ours.encoder.settings)

    @property
    def ngrams(self) -> int:
        """The rows of its second table, of n-grams; with it the folder has code of its own."""
        return self.ours.encoder.settings.ngrams


def export(
    exported: Exported, lines: Sequence[str], card: Callable[[Figures], str], out: Path
) -> Figures:
    """Write the folder `out`, with `card(figures)` as its README.md; return the figures.

    `lines` are the text on which it is checked. Raises `EmsError` if it differs from our encoder,
    and writes nothing then.
    """
    graphs = exported.options.onnx or exported.options.int8
    check_installed("tokenizers", "google.protobuf", "sentence_transformers")
    check_installed(*("onnx", "onnxruntime") if graphs else ())
    with atomic_path(out, ours=is_export) as folder:
        folder.mkdir()
        write_model(exported, folder)
        figures = verified(exported, folder, lines)
        write_text(folder / CARD, card(figures))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        sums = [f"{sha256_file(path)}  {path.relative_to(folder)}\n" for path in files]
        write_text(folder / SUMS, "".join(sums))
    return figures


def write_model(exported: Exported, folder: Path) -> None:
    """Write all files but the card."""
    encoder, settings = exported.ours.encoder, exported.ours.encoder.settings
    vocabulary = exported.model / VOCABULARY
    format_ = exported.description.get("format_characters", "keep")
    tokenizer = make_tokenizer(vocabulary, exported.segmenter, format_, settings.max_tokens)
    copyfile(vocabulary, folder / VOCABULARY)
    write_json(folder / EXPORTED, _ours(exported, format_))
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "cosine"})
    body = (folder / STATIC).parent if exported.static else folder
    if exported.static:
        weights = table(encoder)[:, : exported.dimensions].contiguous()
        _write_tensors({"embedding.weight": weights}, folder / STATIC)
    elif exported.ngrams:
        _write_tensors(table_weights(encoder, exported.dimensions), folder / ENCODER)
        write_code(folder)
    else:
        _write_bert(exported, folder)
    write_text(body / "tokenizer.json", tokenizer.to_str(pretty=True))
    write_json(folder / "modules.json", _modules(exported, folder))
    if exported.options.onnx or exported.options.int8:
        _write_graph(exported, folder / "onnx/model.onnx")
    if exported.options.int8:
        write_int8(folder / "onnx/model.onnx", folder / "onnx/model_qint8.onnx")


def _write_bert(exported: Exported, folder: Path) -> None:
    """Write the weights, the sizes and the settings of the tokenizer, as transformers has them."""
    encoder, settings = exported.ours.encoder, exported.ours.encoder.settings
    pieces = exported.ours.vocabulary.get_piece_size()
    first = [exported.ours.vocabulary.id_to_piece(at) for at in range(2)]
    _write_tensors(bert_weights(encoder), folder / ENCODER)
    write_json(folder / "config.json", bert_config(settings, pieces))
    write_json(folder / "tokenizer_config.json", tokenizer_config(settings.max_tokens, first))
    write_json(folder / "special_tokens_map.json", {"pad_token": first[0], "unk_token": first[1]})
    write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": settings.max_tokens, "do_lower_case": False},
    )


def _write_graph(exported: Exported, out: Path) -> None:
    encoder, dimensions = exported.ours.encoder, exported.dimensions
    if encoder.table is not None:
        write_table(table_weights(encoder, dimensions), out)
    else:
        write_onnx(encoder.state_dict(), encoder.settings, dimensions, out)


def _ours(exported: Exported, format_characters: str) -> dict[str, Any]:
    """Return what an encoder of ours needs to know besides the weights and the vocabulary."""
    known = ("name", "experiment", "identity", "languages", "model")
    kept = {key: exported.description[key] for key in known if key in exported.description}
    kept["exported_from"] = exported.description["sha256"]
    if exported.ngrams:  # the weights are cut
        kept["model"] = {**kept["model"], "table": exported.dimensions}
    own = {"segmenter": exported.segmenter, "format_characters": format_characters}
    return {**kept, **own, "dimensions": exported.dimensions, "static": exported.static}


def _modules(exported: Exported, folder: Path) -> list[dict[str, Any]]:
    """Write the folders of the modules after the first; return modules.json."""
    settings = exported.ours.encoder.settings
    steps = []
    if exported.static:
        steps.append((f"{MODULES}.StaticEmbedding", "0_StaticEmbedding"))
    elif exported.ngrams:
        steps.append((MODULE, ""))
    else:
        steps += [(f"{MODULES}.Transformer", ""), (f"{MODULES}.Pooling", "1_Pooling")]
        write_json(folder / "1_Pooling/config.json", _pooling(settings))
        if exported.dimensions < settings.pooled_width:
            steps.append((f"{MODULES}.Dense", "2_Dense"))
            _write_prefix(settings.pooled_width, exported.dimensions, folder / "2_Dense")
    name = f"{len(steps)}_Normalize"
    (folder / name).mkdir()
    steps.append((f"{MODULES}.Normalize", name))
    write_json(folder / name / "config.json", {})
    return [
        {"idx": at, "name": str(at), "path": path, "type": kind}
        for at, (kind, path) in enumerate(steps)
    ]


def _pooling(settings: Any) -> dict[str, Any]:
    """Return the configuration of the pooling; servers read the older of its keys."""
    size = {"word_embedding_dimension": settings.width}
    if settings.pooling == "mean-max":
        return {**size, "pooling_mode": ["mean", "max"]}
    return {**size, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


def _write_prefix(width: int, dimensions: int, folder: Path) -> None:
    """Write a linear layer that keeps the first numbers of a vector."""
    _write_tensors({"linear.weight": torch.eye(dimensions, width)}, folder / "model.safetensors")
    write_json(
        folder / "config.json",
        {
            "in_features": width,
            "out_features": dimensions,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    )


def _write_tensors(tensors: dict[str, torch.Tensor], out: Path) -> None:
    with atomic_path(out) as temporary:
        save_tensors(tensors, temporary, {"format": "pt"})


# --- is it ours?


def verified(exported: Exported, folder: Path, lines: Sequence[str]) -> Figures:
    """Return the figures of a folder. Raises `EmsError` unless its ids and vectors are ours."""
    found = _in_another_process(folder, _expected(exported, lines))
    if found["ids_differ"]:
        shown = ", ".join(repr(line[:80]) for line in found["wrong"])
        raise EmsError(
            f"the tokenizer.json differs from ours in {found['ids_differ']:,} of "
            f"{found['lines']:,} lines, like {shown}; nothing was written. Leave such lines out of "
            "--verify if you can do without them, or report them"
        )
    for name, least in LEAST.items():
        cosine = found.get(name, {}).get("mean_cosine" if name == "int8" else "least_cosine", 1.0)
        if "shape" in found.get(name, {}) or not cosine >= least:
            raise EmsError(
                f"the {name} vectors are not ours: cosine {cosine:.6f}, expected {least} or more "
                f"({found[name]}); nothing was written. Report it with the model"
            )
    return found


def as_rows(figures: Figures) -> Iterator[tuple[str, str]]:
    """Yield the figures as names and values: lines, ids_differ, float32.least_cosine, ..."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", f"{number:.8f}") for key, number in value.items())
        elif isinstance(value, int):
            yield name, str(value)


def _expected(exported: Exported, lines: Sequence[str]) -> bytes:
    """Return the ids and the vectors of ours; lines without any token are left out."""
    ours, limit = exported.ours, exported.ours.encoder.settings.max_tokens
    tokens = ours.tokenise(list(lines), UNSEEN)
    pairs = [(line, ids[:limit]) for line, ids in zip(lines, tokens, strict=True)]
    pairs = [(line, ids) for line, ids in pairs if ids.tolist() != [UNK]]
    if not pairs:
        raise EmsError("--verify: expected lines of text, found none; name another file")
    kept = [line for line, _ in pairs]
    vectors = ours.encode(kept, UNSEEN, "expected")[:, : exported.dimensions]
    buffer = io.BytesIO()
    np.savez(
        buffer,
        lines=np.array(kept),
        ids=np.concatenate([ids for _, ids in pairs]),
        counts=np.array([len(ids) for _, ids in pairs]),
        vectors=normalised(vectors, "the expected vectors"),
    )
    return buffer.getvalue()


def _in_another_process(folder: Path, expected: bytes) -> Figures:
    """Return what `ems.export.verify` says. Raises `EmsError` with the end of its error."""
    command = [sys.executable, "-m", "ems.export.verify", str(folder.resolve())]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryDirectory(prefix="ems-verify-") as copies:
        environment["HF_MODULES_CACHE"] = copies  # transformers copies code before it runs it
        done = subprocess.run(command, input=expected, capture_output=True, env=environment)
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())[-TAIL:]
        raise EmsError(
            f"the folder cannot be loaded, so nothing was written: {said}. Report it with the model"
        )
    return json.loads(done.stdout.decode().splitlines()[-1])
