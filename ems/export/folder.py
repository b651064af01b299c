"""`ems export`: write a trained encoder to a folder, check it in another process, describe it.

    modules.json, config.json, model.safetensors, tokenizer.json, ...   for sentence-transformers
    ngram_embedding.py, table.py, hashing.py                            code for n-grams
    onnx/model.onnx, onnx/model_qint8.onnx                              for onnxruntime
    vocabulary.model, ems.json                                          for ems
    README.md, SHA256SUMS                                               for people

A folder is written whole or not at all, and only if its token ids and vectors equal ours.
"""

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ems.base import files
from ems.base.errors import EmsError, mistake
from ems.base.files import ENCODER, EXPORTED, VOCABULARY, atomic_path, write_json, write_text
from ems.base.provenance import source_root
from ems.base.records import Json
from ems.base.templates import rendered
from ems.bench.retrieval import normalised
from ems.config.languages import UNSEEN
from ems.export import is_export, write_sums
from ems.export.onnx import write_int8, write_onnx
from ems.export.tokenizer import make_tokenizer
from ems.export.verify import Figures, compared, expected_of, verify_folder
from ems.model.devices import save_tensors
from ems.model.encode import SentenceEncoder, bert_names
from ems.model.encoder import Encoder
from ems.model.folder import STATIC, read_model
from ems.model.static import StaticEncoder, Table
from ems.text.subwords import PAD, UNK

MODULES = "sentence_transformers.models"  # a name that all versions know
NGRAM_CODE = ("export/ngram_embedding.py", "model/table.py", "model/hashing.py")
OWN_IMPORT = re.compile(r"^from ems\.\w+\.(\w+) import", re.MULTILINE)


class Exported:
    """A model to export, with one segmenter for all of its languages. Raises `EmsError` for a model
    that cannot be exported, and for `dimensions` that were not trained.
    """

    def __init__(
        self,
        model: Path,
        segmenter: str,
        onnx: bool = False,
        int8: bool = False,
        dimensions: int = 0,
    ) -> None:
        self.model, self.segmenter, self.graph, self.int8 = model, segmenter, onnx or int8, int8
        self.description = read_model(model)
        sizes = self.description.model
        if sizes.layers and sizes.table:
            raise mistake("layers and table", model=model, sizes=sizes)
        self.ours = SentenceEncoder(model, "cpu")
        languages = {UNSEEN, *self.ours.segmenters}
        self.ours.segmenters = dict.fromkeys(languages, segmenter)
        self.encoder = self.ours.encoder.requires_grad_(False)
        self.settings = settings = self.encoder.settings
        self.ngrams = settings.ngrams
        pieces_alone = settings.positions == "none" and settings.pooling == "mean"
        self.static = not (settings.layers or self.ngrams) and bool(settings.table or pieces_alone)
        self.plain: Any = None  # an ems.export.plain.Plain
        self.quantised = False  # rows of int8, for EMS alone
        self.dimensions = dimensions or settings.pooled_width
        if self.dimensions != settings.pooled_width:
            system = self.description.training.get("system", {})
            matryoshka = system.get("objectives", {}).get("matryoshka") or {}
            trained = matryoshka.get("dimensions", []) if matryoshka.get("weight") else []
            if dimensions not in trained:
                known = ", ".join(map(str, [*trained, settings.pooled_width]))
                raise mistake("unknown dimensions", dimensions=dimensions, model=model, known=known)


def export(
    exported: Exported, lines: Sequence[str], card: Callable[[Figures], str], out: Path
) -> Figures:
    """Write the folder `out` with README.md from `card(figures)`; return the figures. Raises
    `EmsError`, and writes nothing, if ids or vectors of the text `lines` differ from ours.
    """
    needed = ["tokenizers", "google.protobuf", "sentence_transformers"]
    needed += ["onnx", "onnxruntime"] if exported.graph else []
    missing = [n for n in needed if not (find_spec(n.partition(".")[0]) and find_spec(n))]
    if missing:
        raise mistake("export needs packages", missing=missing)
    with atomic_path(out, ours=is_export) as folder:
        folder.mkdir()
        if exported.quantised:
            figures = write_quantised(exported, folder, lines)
        elif exported.plain:
            figures = verify_folder(folder, exported.plain.write(exported, folder, lines))
        else:
            write_model(exported, folder)
            expected = expected_of(exported.ours, exported.dimensions, lines)
            figures = verify_folder(folder, expected)
        write_text(folder / "README.md", card(figures))
        write_sums(folder)
    return figures


def write_model(exported: Exported, folder: Path) -> None:
    """Write all files except the card."""
    encoder, dimensions, most = exported.encoder, exported.dimensions, exported.settings.max_tokens
    vocabulary = exported.model / VOCABULARY
    format_ = exported.description.format_characters
    tokenizer = make_tokenizer(vocabulary, exported.segmenter, format_, most)
    copyfile(vocabulary, folder / VOCABULARY)
    write_json(folder / EXPORTED, _ours(exported))
    body = (folder / STATIC).parent if exported.static else folder
    if exported.static:
        table = encoder.table
        weights = table.pieces.weight if table else encoder.input_norm(encoder.tokens.weight)
        write_tensors({"embedding.weight": weights[:, :dimensions].contiguous()}, folder / STATIC)
    elif exported.ngrams:
        write_tensors(table_weights(encoder, dimensions), folder / ENCODER)
        # sentence-transformers has no module for n-grams, so the folder includes our code, with
        # imports between the files of NGRAM_CODE made relative
        for name in NGRAM_CODE:
            source = source_root() / name
            text = OWN_IMPORT.sub(r"from .\1 import", source.read_text(encoding="utf-8"))
            write_text(folder / source.name, text)
    else:
        _write_bert(exported, folder)
    write_text(body / "tokenizer.json", tokenizer.to_str(pretty=True))
    write_modules(exported, folder)
    graph = folder / "onnx/model.onnx"
    if exported.graph:
        write_onnx(encoder, dimensions, graph)
    if exported.int8:
        write_int8(graph, folder / "onnx/model_qint8.onnx")


def write_quantised(exported: Exported, folder: Path, lines: Sequence[str]) -> Figures:
    """Write a model without layers for EMS alone (int8 rows with a scale each); return the cosines
    of its vectors of the lines with ours. Raises `EmsError` for layers.
    """
    if exported.settings.attends:
        raise EmsError(f"--quantised: {exported.model} has layers; it is for a model without them")
    tensors = table_weights(exported.encoder, exported.dimensions)
    for name in [each for each in tensors if each.endswith(".weight")]:
        table, stem = Table(tensors.pop(name).numpy(), int8=True), name.removesuffix("weight")
        tensors[f"{stem}bytes"] = torch.from_numpy(table.rows)
        tensors[f"{stem}scales"] = torch.from_numpy(table.scales)
    write_tensors(tensors, folder / ENCODER)
    copyfile(exported.model / VOCABULARY, folder / VOCABULARY)
    write_json(folder / EXPORTED, {**_ours(exported), "static": False, "rows": "int8"})
    write_sums(folder)  # which names the weights and the vocabulary to load
    vectors = StaticEncoder(folder).encoded(list(lines), UNSEEN).vectors
    known = np.flatnonzero(vectors.any(1))
    ours = exported.ours.encode(list(lines), UNSEEN, "expected")[:, : exported.dimensions]
    cosines = compared(normalised(vectors[known], "rows"), normalised(ours[known], "rows"))
    return {"lines": len(known), "ids_differ": 0, "quantised": cosines}


def _ours(exported: Exported) -> Json:
    """Return ems.json, which an EMS encoder needs besides the weights and the vocabulary."""
    known = ("name", "experiment", "identity", "languages", "model")
    written = exported.description.written
    kept = {key: written[key] for key in known if key in written}
    if exported.ngrams or exported.quantised:  # the weights are cut
        kept["model"] = {**kept["model"], "table": exported.dimensions}
    kept |= {key: getattr(exported, key) for key in ("segmenter", "dimensions", "static")}
    format_ = exported.description.format_characters
    return {**kept, "exported_from": written["sha256"], "format_characters": format_}


def write_modules(exported: Exported, folder: Path) -> None:
    """Write modules.json, what its modules need, and the measure of similarity."""
    if exported.static or exported.plain:
        steps = [(f"{MODULES}.StaticEmbedding", "" if exported.plain else "0_StaticEmbedding")]
    elif exported.ngrams:
        steps = [("ngram_embedding.NgramEmbedding", "")]
    else:
        steps = [(f"{MODULES}.Transformer", ""), (f"{MODULES}.Pooling", "1_Pooling")]
        width = exported.settings.pooled_width
        if exported.dimensions < width:  # a linear layer that keeps the first numbers of a vector
            steps.append((f"{MODULES}.Dense", "2_Dense"))
            prefix = {"linear.weight": torch.eye(exported.dimensions, width)}
            write_tensors(prefix, folder / "2_Dense/model.safetensors")
    steps.append((f"{MODULES}.Normalize", f"{len(steps)}_Normalize"))
    write_json(folder / steps[-1][1] / "config.json", {})
    modules = [{"path": path, "type": kind} for kind, path in steps]
    modules = [{"idx": at, "name": str(at), **module} for at, module in enumerate(modules)]
    write_json(folder / "modules.json", modules)
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "cosine"})


def _write_bert(exported: Exported, folder: Path) -> None:
    """Write the weights by the names of transformers' BertModel, which has the same architecture,
    and the settings of all modules. BERT's segment embedding and pooler are zero, as are positions
    that ours lacks.
    """
    state = {name: value.cpu() for name, value in exported.encoder.state_dict().items()}
    width, places = exported.settings.width, exported.settings.max_tokens
    state.setdefault("positions.weight", torch.zeros(places, width))
    weights = {
        "embeddings.token_type_embeddings.weight": torch.zeros(1, width),
        "pooler.dense.weight": torch.zeros(width, width),
        "pooler.dense.bias": torch.zeros(width),
    }
    for ours, theirs in bert_names(exported.settings.layers).items():
        weights |= dict(zip(theirs, state[ours].chunk(len(theirs)), strict=True))
    write_tensors({name: value.contiguous() for name, value in weights.items()}, folder / ENCODER)
    vocabulary = exported.ours.vocabulary
    pad, unknown = (vocabulary.id_to_piece(at) for at in (PAD, UNK))
    template, size = Path(__file__).with_name("bert.json.jinja"), vocabulary.get_piece_size()
    words = {"pieces": size, "pad": pad, "unknown": unknown, "dimensions": exported.dimensions}
    text = rendered(template, sizes=exported.settings, **words)
    for name, content in files.parse_json(text).items():
        write_json(folder / name, content)


def write_tensors(tensors: dict[str, Tensor], out: Path) -> None:
    with atomic_path(out) as temporary:
        save_tensors(tensors, temporary, {"format": "pt"})


def table_weights(encoder: Encoder, dimensions: int) -> dict[str, Tensor]:
    """Return the weights of an encoder without layers, on the CPU and cut to `dimensions`."""
    return {
        name: value.cpu()[:, :dimensions].contiguous() if value.is_floating_point() else value.cpu()
        for name, value in encoder.state_dict().items()
    }
