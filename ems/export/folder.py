"""`ems export`: write the folder of a trained encoder, check it in another process, describe it.

    modules.json, config.json, model.safetensors, tokenizer.json, ...   for sentence-transformers
    ngram_embedding.py, table.py                                        its code of n-grams
    onnx/model.onnx, onnx/model_qint8.onnx                              for onnxruntime
    vocabulary.model, ems.json                                          for ems
    README.md, SHA256SUMS                                               for people

A folder is written whole or not at all, and only if its token ids and vectors are ours.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile
from typing import Any

import torch
from torch import Tensor

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
from ems.base.provenance import source_root
from ems.base.schema import Json
from ems.config.languages import UNSEEN
from ems.config.model import EncoderSettings
from ems.export import check_installed, is_export
from ems.export.onnx import write_int8, write_onnx, write_table
from ems.export.tokenizer import make_tokenizer, tokenizer_config
from ems.export.verify import Figures, expected_of, verified
from ems.model.devices import save_tensors
from ems.model.encode import SentenceEncoder, bert_names
from ems.model.encoder import Encoder
from ems.model.folder import STATIC, Description, read_model

CARD = "README.md"
MODULES = "sentence_transformers.models"  # the name that all its versions know
NGRAM_MODULE = "ngram_embedding.NgramEmbedding"  # in modules.json
NGRAM_CODE = ("export/ngram_embedding.py", "model/table.py")
OWN_IMPORT = re.compile(r"^from ems\.\w+\.(\w+) import", re.MULTILINE)


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
    description: Description = field(init=False)
    ours: SentenceEncoder = field(init=False)

    def __post_init__(self) -> None:
        self.description = read_model(self.model)
        sizes = self.description.model
        if sizes.layers and sizes.table:
            raise EmsError(
                f"{self.model}: ems export cannot write a model with layers and a table (layers: "
                f"{sizes.layers}, table: {sizes.table}); use it by `ems encode` or "
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
        system = self.description.training.get("system", {})
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
        expected = expected_of(exported.ours, exported.dimensions, lines)
        figures = verified(folder, expected)
        write_text(folder / CARD, card(figures))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        sums = [f"{sha256_file(path)}  {path.relative_to(folder)}\n" for path in files]
        write_text(folder / SUMS, "".join(sums))
    return figures


def write_model(exported: Exported, folder: Path) -> None:
    """Write all files but the card."""
    encoder, settings = exported.ours.encoder, exported.ours.encoder.settings
    vocabulary = exported.model / VOCABULARY
    format_ = exported.description.format_characters
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


def _ours(exported: Exported, format_characters: str) -> Json:
    """Return what an encoder of ours needs to know besides the weights and the vocabulary."""
    known = ("name", "experiment", "identity", "languages", "model")
    written = exported.description.written
    kept = {key: written[key] for key in known if key in written}
    kept["exported_from"] = written["sha256"]
    if exported.ngrams:  # the weights are cut
        kept["model"] = {**kept["model"], "table": exported.dimensions}
    own = {"segmenter": exported.segmenter, "format_characters": format_characters}
    return {**kept, **own, "dimensions": exported.dimensions, "static": exported.static}


def _modules(exported: Exported, folder: Path) -> list[Json]:
    """Write the folders of the modules after the first; return modules.json."""
    settings = exported.ours.encoder.settings
    steps = []
    if exported.static:
        steps.append((f"{MODULES}.StaticEmbedding", "0_StaticEmbedding"))
    elif exported.ngrams:
        steps.append((NGRAM_MODULE, ""))
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


def _pooling(settings: Any) -> Json:
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


# --- weights and code


def is_table(settings: EncoderSettings) -> bool:
    """Return whether a sentence embedding is the mean of one vector for each of its pieces."""
    if not settings.attends:
        return settings.ngrams == 0
    at_once = settings.layers == 0 and settings.positions == "none"
    return at_once and settings.pooling == "mean" and not settings.table


@torch.no_grad()
def table(encoder: Encoder) -> Tensor:
    """Return the vector of each piece, float32[pieces, d], of an encoder that `is_table`."""
    if encoder.table is not None:
        return encoder.table.pieces.weight.cpu().clone()
    return encoder.input_norm(encoder.tokens.weight).cpu().clone()


def table_weights(encoder: Encoder, dimensions: int) -> dict[str, Tensor]:
    """Return the weights of an encoder without layers by our names, with the first `dimensions` of
    each vector, on the CPU.
    """
    state = {name: value.cpu() for name, value in encoder.state_dict().items()}
    return {
        name: value[:, :dimensions].contiguous() if value.is_floating_point() else value
        for name, value in state.items()
    }


def bert_weights(encoder: Encoder) -> dict[str, Tensor]:
    """Return the weights by the names of transformers' BertModel, on the CPU.

    It is one: token and position embeddings, layer norm, post-LN layers. BERT has a segment
    embedding and a pooler besides; both are zero, and so are positions where ours has none.
    """
    state = {name: value.detach().cpu() for name, value in encoder.state_dict().items()}
    width, places = encoder.settings.width, encoder.settings.max_tokens
    zeros = torch.zeros(places, width)
    weights = {
        "embeddings.word_embeddings.weight": state["tokens.weight"],
        "embeddings.position_embeddings.weight": state.get("positions.weight", zeros),
        "embeddings.token_type_embeddings.weight": torch.zeros(1, width),
        "pooler.dense.weight": torch.zeros(width, width),
        "pooler.dense.bias": torch.zeros(width),
    }
    for ours, theirs in bert_names(encoder.settings.layers).items():
        weights |= dict(zip(theirs, state[ours].chunk(len(theirs)), strict=True))
    return {name: value.contiguous() for name, value in weights.items()}


def bert_config(settings: EncoderSettings, pieces: int) -> Json:
    """Return config.json of a BertModel of these sizes with so many pieces."""
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": pieces,
        "hidden_size": settings.width,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "intermediate_size": settings.feed_forward,
        "hidden_act": settings.activation,
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.attention_dropout,
        "max_position_embeddings": settings.max_tokens,
        "type_vocab_size": 1,
        "layer_norm_eps": settings.norm_eps,
        "pad_token_id": 0,
        "torch_dtype": "float32",
    }


def write_code(folder: Path) -> None:
    """Write the code of a model with n-grams, which sentence-transformers has no module for.

    Each file of NGRAM_CODE is copied; what it imports from another of them is imported from beside
    it. The code that is tested here is thus the code that runs there.
    """
    for name in NGRAM_CODE:
        source = source_root() / name
        text = OWN_IMPORT.sub(r"from .\1 import", source.read_text(encoding="utf-8"))
        write_text(folder / source.name, text)


def code_of(folder: Path) -> list[str]:
    """Return the names of the files of a folder that `trust_remote_code=True` may run."""
    return sorted(path.name for path in folder.glob("*.py"))
