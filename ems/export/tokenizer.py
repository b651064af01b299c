"""Convert the vocabulary of a model to a tokenizer.json that gives the same token ids.

The steps of `tidier`, the segmenter, `str.lower` and SentencePiece are expressed with the library
`tokenizers`, in patterns that JavaScript reads too. The converter of transformers cannot be used:
it finds special tokens such as `<2en>` in a text. The loss without other segmenters is measured as
P@1 on the first benchmark of the experiment that searches for translations.
"""

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.base.errors import mistake
from ems.base.files import VOCABULARY, write_json
from ems.bench.evaluate import evaluate_by_hand
from ems.bench.scores import ENGLISH, read_score_file
from ems.config.experiment import Experiment
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark
from ems.model.folder import Description
from ems.text.normalise import CONTROL, format_pattern
from ems.text.segmenters.base import SPACE
from ems.text.subwords import PAD, UNK, by_characters, load_vocabulary

SEGMENTERS = ("none", "unicode")  # segmenters that a tokenizer.json can express
NORMAL, BYTE, UNIGRAM = 1, 6, 1  # types of a piece and of a model in SentencePiece's files
NEVER = -1e6  # a score so low that the piece is never chosen
FINAL_SIGMA = r"(?<=\p{L})\u03a3(?![\p{L}\p{M}])"  # in Python it becomes U+03C2, in Rust U+03C3
MARK = r"[\p{P}\p{S}]"
CHARACTERS = "single characters"  # of a language with `vocabulary.characters`


def make_tokenizer(
    vocabulary: Path, segmenter: str, format_characters: str, max_tokens: int
) -> Any:
    """Make a truncating `tokenizers.Tokenizer` of a SentencePiece model and one of SEGMENTERS."""
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import Tokenizer, decoders

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(vocabulary.read_bytes())
    tokenizer = Tokenizer(_model(model))
    charsmap = model.normalizer_spec.precompiled_charsmap
    tokenizer.normalizer = _normalizer(charsmap, segmenter, format_characters)
    tokenizer.pre_tokenizer = pre_tokenizer(segmenter)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _model(model: Any) -> Any:
    """Convert the pieces to a BPE or unigram model of `tokenizers`."""
    from tokenizers import models

    pieces, fallback = [piece.piece for piece in model.pieces], model.trainer_spec.byte_fallback
    if model.trainer_spec.model_type == UNIGRAM:
        # Special pieces get names that no tidy text contains, or they would be found in a text.
        # <pad> and <unk> keep the names that transformers needs; they are found in a text only if
        # the vocabulary has no piece for `<`.
        scored = [
            (piece.piece, piece.score)
            if piece.type in (NORMAL, BYTE)
            else (piece.piece if at in (PAD, UNK) else f"\n{piece.piece}", NEVER)
            for at, piece in enumerate(model.pieces)
        ]
        return models.Unigram(scored, unk_id=UNK, byte_fallback=fallback)
    ids = {piece: at for at, piece in enumerate(pieces)}
    normal = {piece.piece for piece in model.pieces if piece.type == NORMAL}
    cuts = ((piece[:cut], piece[cut:]) for piece in normal for cut in range(1, len(piece)))
    pairs = [pair for pair in cuts if normal.issuperset(pair)]
    pairs.sort(key=lambda pair: [ids["".join(pair)], *map(ids.get, pair)])  # the lowest id first
    return models.BPE(ids, pairs, unk_token=pieces[UNK], fuse_unk=True, byte_fallback=fallback)


def _normalizer(charsmap: bytes, segmenter: str, format_characters: str) -> Any:
    """Return the steps that change characters, in the same order as ours."""
    from tokenizers import Regex, normalizers

    sentencepiece = normalizers.Precompiled(charsmap)
    steps = [normalizers.Replace(Regex(CONTROL), " "), normalizers.NFC()]
    if format_characters == "drop":
        steps.insert(0, normalizers.Replace(Regex(format_pattern()), ""))
    if segmenter == "unicode":
        steps += [sentencepiece, normalizers.Replace(SPACE, " ")]
    steps += [normalizers.Replace(Regex(FINAL_SIGMA), "\u03c2"), normalizers.Lowercase()]
    spaces = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    return normalizers.Sequence([*steps, sentencepiece, *spaces])


def pre_tokenizer(segmenter: str) -> Any:
    from tokenizers import Regex, pre_tokenizers

    words = pre_tokenizers.Metaspace(prepend_scheme="always")
    if segmenter != "unicode":
        return words
    apart = pre_tokenizers.Split(Regex(MARK), "isolated")
    whole = pre_tokenizers.Split(Regex(r"\s+"), "removed")
    return pre_tokenizers.Sequence([whole, apart, words])


# --- segmenters


@dataclass(frozen=True)
class Loss:
    """The loss of a model without its segmenters: language -> P@1 with them, and without."""

    benchmark: str
    values: dict[str, tuple[float, float]]


def choose_segmenter(
    model: Path, tools: dict[str, str], without_segmenters: bool
) -> tuple[str, bool]:
    """Choose the segmenter of an export, the most frequent of SEGMENTERS or `unicode`; return it,
    and whether any language loses its own. Raises `EmsError` if one does and not
    `without_segmenters`, or if the vocabulary splits a language into characters.
    """
    vocabulary = load_vocabulary(model / VOCABULARY)
    tools = {code: tool for code, tool in tools.items() if code != UNSEEN}
    counts = Counter(tool for tool in tools.values() if tool in SEGMENTERS)
    segmenter = counts.most_common(1)[0][0] if counts else "unicode"
    lost: dict[str, list[str]] = {}
    for language, tool in sorted(tools.items()):
        tool = CHARACTERS if by_characters(vocabulary, language) else tool
        if tool != segmenter:
            lost.setdefault(tool, []).append(language)
    if CHARACTERS in lost or (lost and not without_segmenters):
        named = "; ".join(f"{tool}: {', '.join(languages)}" for tool, languages in lost.items())
        raise mistake("segmenters of a tokenizer", model=model, named=named)
    return segmenter, bool(lost)


def measure_loss(
    model: Path, description: Description, segmenter: str, experiment: Experiment, data: Path
) -> Loss:
    """Measure P@1 (mean of both directions) with the model's segmenters and with `segmenter` alone.
    Raises `EmsError` if the experiment has no benchmark of translations, or its data are missing.
    """
    records = [(name, benchmark(name)) for name in experiment.benchmarks]
    names = [name for name, record in records if record.family == "retrieval" and not record.drawn]
    if not names:
        raise mistake("no benchmark of the loss", experiment=experiment)
    name, values = names[0], []
    with tempfile.TemporaryDirectory(prefix="ems-export-") as folder:
        bare = Path(folder) / "model"  # links to the files of the model
        bare.mkdir()
        for file in description.sha256:
            (bare / file).symlink_to((model / file).resolve())
        tools = dict.fromkeys(description.segmenters, segmenter)
        write_json(bare / "model.json", {**description.written, "segmenters": tools})
        for path in (model, bare):
            evaluate_by_hand(experiment, [name], Path(folder), data, str(path), name="exported")
            scores = read_score_file(Path(folder) / f"{name}.json", name, "P@1")
            means = {}
            for label, ways in scores.labelled().items():
                language = scores.languages.get(label, ENGLISH)
                means[language] = sum(row.value for row in ways.values()) / len(ways)
            values.append(means)
    both = {code: (values[0][code], values[1][code]) for code in values[0] if code != ENGLISH}
    return Loss(name, both)
