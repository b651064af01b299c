"""A table of pieces and n-grams as the first module of a model of sentence-transformers.

In an exported folder this file and table.py are run with `trust_remote_code=True`. It splits texts
into pieces by tokenizer.json and computes vectors from model.safetensors. It does nothing else.
"""

from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import InputModule
from tokenizers import Tokenizer
from torch import Tensor

from ems.model.table import EmbeddingTable

FILE = "tokenizer.json"


class NgramEmbedding(InputModule):
    """Maps texts to vectors [N, d], and a text without pieces to zeros."""

    def __init__(self, tokenizer: Tokenizer, table: EmbeddingTable) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.table = table

    def preprocess(
        self, inputs: list[str], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Return the piece ids of all texts, int64[T], and the count per text, int64[N]."""
        texts = self._prepend_prompt(inputs, prompt) if prompt else inputs
        encoded = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        ids = [text.ids for text in encoded]
        packed = torch.tensor([piece for text in ids for piece in text], dtype=torch.long)
        return {"input_ids": packed, "lengths": torch.tensor([len(text) for text in ids])}

    def forward(self, features: dict[str, Tensor], **kwargs: Any) -> dict[str, Tensor]:
        """Add `sentence_embedding`, float[N, d], to the features."""
        vectors = self.table(features["input_ids"], features["lengths"])
        return {**features, "sentence_embedding": vectors}

    @property
    def max_seq_length(self) -> int:
        """Maximum number of pieces of a text that are read."""
        return self.tokenizer.truncation["max_length"]

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self.tokenizer.enable_truncation(value)

    def get_embedding_dimension(self) -> int:
        return self.table.pieces.embedding_dim

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True) -> None:
        self.save_torch_weights(output_path, safe_serialization)
        self.tokenizer.save(str(Path(output_path) / FILE))

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> "NgramEmbedding":
        """Load the module from a folder or from a repository of the Hugging Face hub."""
        known = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        place = {name: kwargs[name] for name in known if name in kwargs}
        tokenizer = Tokenizer.from_file(cls.load_file_path(model_name_or_path, FILE, **place))
        weights = cls.load_torch_weights(model_name_or_path, **place)
        pieces, ngrams = weights["table.pieces.weight"], weights["table.ngrams.table.weight"]
        with torch.device("meta"):  # no initial values, since all are replaced
            table = EmbeddingTable(pieces.shape[1], len(pieces), len(ngrams))
            module = cls(tokenizer, table)
        module.load_state_dict(weights, assign=True)
        return module
