"""Text -> vectors with a trained encoder; the model folder holds all that this needs.

    model.safetensors   the encoder's weights
    model.json          its sizes, the segmenter of each language, whether format characters are
                        dropped, how it was trained
    vocabulary.model    the SentencePiece model

A sentence without any token becomes one <unk>: a finite vector, where the authors' code has NaN.
Embeddings are not normalised; retrieval normalises (EMS v2 Eq. 9 and section V use cosine).
"""

from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ems import segmenters  # noqa: F401  as a whole: each file is a part of the source of encoding
from ems.config.provenance import digest, source_hash
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import ENCODER, VOCABULARY, read_json, sha256_file
from ems.model.device import choose_device
from ems.model.embed import embed_tokens
from ems.model.encoder import Encoder, EncoderSettings
from ems.progress import Progress
from ems.segmenters.base import names, segmenter
from ems.shapes import BELOW, COUNT, TEXT, Shape, mapping, record
from ems.text.normalise import tidier, tidy_lines
from ems.text.subwords import UNK, encode_lines, load_vocabulary

SHOWN = 200  # characters of a long message
SIZE: Shape = {"type": "integer", "minimum": 1, "maximum": 1 << 20, "description": "a size"}
SHARE: Shape = {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "description": "a share"}
SETTINGS = record(  # of `EncoderSettings`
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


def _check_files(folder: Path, expected: dict[str, str]) -> None:
    """Raise `Damaged` for a file that is not the one that model.json was written for."""
    for name, sha256 in expected.items():
        if not (folder / name).is_file():
            raise Damaged(folder / name, "no such file")
        if sha256_file(folder / name) != sha256:
            raise Damaged(
                folder / name,
                "its sha256 is not the one in model.json beside it; it is damaged, or of another "
                "model",
            )


class SentenceEncoder:
    """A trained encoder with its segmenters and its vocabulary."""

    def __init__(self, folder: Path, device: str = "auto") -> None:
        description = read_json(folder / "model.json", MODEL)
        self.folder = folder
        _check_files(folder, description["sha256"])
        self.segmenters: dict[str, str] = description["segmenters"]
        self.tidy = tidier(description.get("format_characters", "keep"))
        self.vocabulary = load_vocabulary(folder / VOCABULARY)
        try:
            settings = EncoderSettings(**description["model"])
            self.encoder = Encoder(settings, self.vocabulary.get_piece_size())
            self.encoder.load_state_dict(load_file(folder / ENCODER))
        except (OSError, RuntimeError, ValueError, SafetensorError) as error:
            problem = f"{ENCODER} does not fit its sizes ({' '.join(str(error).split())[:SHOWN]})"
            raise Damaged(folder / "model.json", problem) from None
        self.encoder.to(choose_device(device)).eval()
        self._description = description

    @property
    def identity(self) -> str:
        """Hash of weights, vocabulary, settings, device and source: all that vectors depend on."""
        device = str(self.encoder.tokens.weight.device)
        return digest([self._description, device, torch.__version__, source_hash("ems.encode")])

    def tokenise(self, lines: list[str], language: str) -> list[np.ndarray]:
        """Return the token ids of each line: tidied, segmented, lower-cased, cut into pieces."""
        if language not in self.segmenters:
            known = ", ".join(sorted(self.segmenters))
            raise EmsError(f"language {language!r}: {self.folder} was trained for {known}")
        segment = segmenter(self.segmenters[language], language)
        words = [line.lower() for line in segment(tidy_lines(lines, self.tidy))]
        encoded = encode_lines(self.vocabulary, words, language)
        return [np.array(ids or [UNK], np.int64) for ids in encoded]

    def token_counts(self, lines: list[str], language: str) -> list[int]:
        """Count the tokens of each line, of which `encode` sees the first `max_tokens`."""
        return [len(tokens) for tokens in self.tokenise(lines, language)]

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return embeddings float32[len(lines), d]. Raises `EmsError` for an unknown language."""
        progress = Progress(f"{what} {language}", len(lines), "sentences")
        vectors = embed_tokens(self.encoder, self.tokenise(lines, language), progress)
        progress.close()
        return vectors
