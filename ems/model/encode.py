"""Text -> vectors with a trained encoder, from its model folder alone (folder.py). A sentence
without tokens is encoded as one <unk>, where the authors' code gives NaN. Embeddings are not
normalised; retrieval normalises (EMS v2 Eq. 9 and section V use cosine).
"""

import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ems.base.errors import Damaged, mistake
from ems.base.files import ENCODER, EXPORTED, SUMS, check_sha256, read_table
from ems.base.provenance import digest, source_hash
from ems.model.devices import choose_device, read_tensors
from ems.model.encoder import Encoder, embed_tokens, shapes_of
from ems.model.folder import DESCRIPTION, STATIC, Description, describe
from ems.model.lines import Encoded, Tokeniser, check_finite
from ems.model.weights import in_bytes
from ems.text.subwords import UNK

SHOWN = 200  # characters of PyTorch's message that ours quotes
# Maps our names to BERT's, whose query, key and value are three matrices.
EMBEDDINGS = {
    "tokens.weight": ["embeddings.word_embeddings.weight"],
    "positions.weight": ["embeddings.position_embeddings.weight"],
}
UNUSED = {"pooler.dense.weight", "pooler.dense.bias", *EMBEDDINGS["positions.weight"]}
UNUSED |= {"embeddings.token_type_embeddings.weight"}
QKV = ("query", "key", "value")
IN_LAYER = read_table(Path(__file__).with_suffix(".tsv"))


def _loaded(folder: Path, description: Description, pieces: int) -> nn.Module:
    """Load the encoder of a folder. Raises `Damaged` for weights that do not fit its sizes."""
    sizes, path = description.model, folder / (description.weights or ENCODER)
    names: dict[str, list[str]] = {}  # ours -> theirs, of a folder for other libraries
    if description.weights == STATIC:  # an exported table
        table = description.dimensions or sizes.pooled_width
        sizes = replace(sizes, layers=0, table=table, ngrams=0)
        names = {"table.pieces.weight": ["embedding.weight"]}
    elif description.weights and sizes.attends:
        names = bert_names(sizes.layers)
    shapes, expected = shapes_of(sizes, pieces), {}
    for ours, (rows, *rest) in shapes.items():
        theirs = names.get(ours, [ours])
        expected |= dict.fromkeys(theirs, (rows // len(theirs), *rest))
    expected = in_bytes(expected) if description.rows == "int8" else expected
    tensors = read_tensors(path, expected, UNUSED - expected.keys() if names else set())
    for name in [each for each in tensors if each.endswith(".bytes")]:
        stem = name.removesuffix("bytes")
        tensors[f"{stem}weight"] = tensors.pop(name) * tensors.pop(f"{stem}scales")[:, None]
    for ours, theirs in names.items():
        if ours in shapes:
            parts = [tensors.pop(name) for name in theirs]
            tensors[ours] = torch.cat(parts) if len(parts) > 1 else parts[0]
    encoder = Encoder(sizes, pieces)
    encoder.load_state_dict(tensors)
    return encoder


def bert_names(
    layers: int, norm: str = "embeddings.LayerNorm", attention: str = "attention.self"
) -> dict[str, list[str]]:
    """Map each of our encoder's weights to the weights of a BertModel that it concatenates."""
    modules = {"input_norm": [norm]}
    for number in range(layers):
        ours, theirs = f"layers.{number}.", f"encoder.layer.{number}."
        modules[f"{ours}attention.input"] = [f"{theirs}{attention}.{name}" for name in QKV]
        modules |= {ours + row["ours"]: [theirs + row["theirs"]] for row in IN_LAYER}
    both = product(modules.items(), ("weight", "bias"))
    names = {f"{ours}.{kind}": [f"{name}.{kind}" for name in own] for (ours, own), kind in both}
    return EMBEDDINGS | names


class SentenceEncoder(Tokeniser):
    """A trained encoder with its segmenters and its vocabulary, in PyTorch; `precision` is float32,
    bfloat16 or int8. Raises `EmsError` for a missing or damaged file, and for int8 on a GPU.
    """

    def __init__(self, folder: Path, device: str = "auto", precision: str = "float32") -> None:
        self._description = description = describe(folder)
        about, sums = (EXPORTED, SUMS) if description.weights else (DESCRIPTION, DESCRIPTION)
        for name, sha256 in description.sha256.items():
            check_sha256(folder / name, sha256, f"{sums}; it is damaged, or of another model")
        super().__init__(folder, description)
        try:
            self.encoder = _loaded(folder, description, self.vocabulary.get_piece_size())
            check_finite(embed_tokens(self.encoder, [np.array([UNK])]), folder)
        except (IndexError, RuntimeError) as error:
            problem = f"cannot encode with these sizes ({' '.join(str(error).split())[:SHOWN]})"
            raise Damaged(folder / about, problem) from None
        self.encoder.to(choose_device(device)).eval()
        self.device, self.precision = self.encoder.device, precision
        if precision == "int8":
            if self.device.type == "cuda":
                raise mistake("int8 on a GPU")
            with warnings.catch_warnings():  # PyTorch announces that torchao will replace it
                warnings.simplefilter("ignore")
                quantised = torch.ao.quantization.quantize_dynamic
                self.encoder = quantised(self.encoder, {nn.Linear}, torch.qint8)

    @property
    def identity(self) -> str:
        """Hash of all that vectors depend on: weights, vocabulary, settings, device and source."""
        parts = [self._description.written, str(self.device), torch.__version__]
        parts.append(source_hash("ems.model.encode"))
        return digest([*parts, self.precision] if self.precision != "float32" else parts)

    @property
    def threads(self) -> int:
        return torch.get_num_threads()

    def of_one_language(self, lines: list[str], language: str | None, progress: Any) -> Encoded:
        tokens = self.tokenise(lines, language) if lines or isinstance(language, str) else []
        read = [ids[: self.max_tokens] for ids in tokens]
        tokens_of, read_of = (np.array(list(map(len, each)), np.int64) for each in (tokens, read))
        ids = np.concatenate([np.empty(0, np.int64), *read])
        with torch.autocast(self.device.type, torch.bfloat16, self.precision == "bfloat16"):
            vectors = embed_tokens(self.encoder, read, progress)[:, : self._description.dimensions]
        check_finite(vectors, self.folder)
        return Encoded(vectors, tokens_of, *self.known(ids, read_of))
