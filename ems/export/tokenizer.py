"""The vocabulary of a model as a tokenizer.json, which gives the token ids that ours gives.

What ours does by `tidier`, by a segmenter, by `str.lower` and by SentencePiece is said in the terms
of the library `tokenizers`. Patterns are Oniguruma's, written so that JavaScript reads them too.
It is not transformers' converter of SentencePiece: that one finds `<2en>` in a text.

No tokenizer.json can do what other segmenters do. What a model loses without them is measured: P@1
of both, on the first benchmark of its experiment that searches a translation among the others.
"""

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
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

SEGMENTERS = ("none", "unicode")  # the segmenters that a tokenizer.json can say
NORMAL, BYTE, UNIGRAM = 1, 6, 1  # kinds of a piece and of a model, in SentencePiece's own files
NEVER = -1e6  # a score that no text is worth
FINAL_SIGMA = r"(?<=\p{L})\u03a3(?![\p{L}\p{M}])"  # in Python it becomes U+03C2, in Rust U+03C3
MARK = r"[\p{P}\p{S}]"
CHARACTERS = "single characters"  # a language whose pieces these are (vocabulary.characters)


def make_tokenizer(
    vocabulary: Path, segmenter: str, format_characters: str, max_tokens: int
) -> Any:
    """Return the `tokenizers.Tokenizer` of a SentencePiece model, cut at `max_tokens`.

    `segmenter` is one of SEGMENTERS, `format_characters` the setting of `clean`.
    """
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import Tokenizer, decoders

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(vocabulary.read_bytes())
    tokenizer = Tokenizer(_model(model))
    charsmap = model.normalizer_spec.precompiled_charsmap
    tokenizer.normalizer = _normalizer(charsmap, segmenter, format_characters)
    tokenizer.pre_tokenizer = _pre_tokenizer(segmenter)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _model(model: Any) -> Any:
    """Return the pieces as a model of `tokenizers`: BPE or unigram."""
    from tokenizers import models

    pieces, fallback = [piece.piece for piece in model.pieces], model.trainer_spec.byte_fallback
    if model.trainer_spec.model_type == UNIGRAM:
        # A piece that is no text would be found in a text, so it gets a name that no tidy text has.
        # <pad> and <unk> keep theirs, by which transformers knows them: they are found where `<`
        # has no piece.
        scored = [
            (piece.piece, piece.score)
            if piece.type in (NORMAL, BYTE)
            else (piece.piece if at in (PAD, UNK) else f"\n{piece.piece}", NEVER)
            for at, piece in enumerate(model.pieces)
        ]
        return models.Unigram(scored, unk_id=UNK, byte_fallback=fallback)
    ids = {piece: at for at, piece in enumerate(pieces)}
    normal = {piece.piece for piece in model.pieces if piece.type == NORMAL}
    merges = [
        (at, ids[left], ids[right], left, right)
        for at, piece in enumerate(pieces)
        if piece in normal
        for left, right in ((piece[:cut], piece[cut:]) for cut in range(1, len(piece)))
        if left in normal and right in normal
    ]
    merges.sort(key=lambda merge: merge[:3])  # SentencePiece joins the lowest id first
    return models.BPE(
        ids,
        [merge[3:] for merge in merges],
        unk_token=pieces[UNK],
        fuse_unk=True,
        byte_fallback=fallback,
    )


def _normalizer(charsmap: bytes, segmenter: str, format_characters: str) -> Any:
    """Return what happens to the characters of a text, in the order in which ours does it."""
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


def _pre_tokenizer(segmenter: str) -> Any:
    """Return how a text is cut into words, each with a space before it."""
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
    """What a model loses without its segmenters: benchmark, and language -> P@1 with, without."""

    benchmark: str
    values: dict[str, tuple[float, float]]


def chosen(model: Path, tools: dict[str, str], without_segmenters: bool) -> tuple[str, bool]:
    """Return the segmenter of the export, that of most languages or else `unicode`, and whether it
    would cut some languages into other pieces.

    Raises `EmsError` for such languages unless they may be `without_segmenters`, and for any that
    the vocabulary has cut into characters.
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
        raise EmsError(
            f"{model}: no tokenizer.json can do what these segmenters do: {named}. Train with "
            "`segmenters: {default: unicode}` (or none), or say --without-segmenters: its folder "
            "has the loss of P@1 on its card"
        )
    return segmenter, bool(lost)


def measured(
    model: Path, description: Description, segmenter: str, experiment: Experiment, data: Path
) -> Loss:
    """Return P@1 of a model with its segmenters and with `segmenter` alone: of each language the
    mean of both directions.

    Raises `EmsError` if the experiment has no such benchmark, or its data are not there.
    """
    records = [(name, benchmark(name)) for name in experiment.benchmarks]
    names = [name for name, of in records if of.family == "retrieval" and not of.drawn]
    if not names:
        raise EmsError(
            f"--without-segmenters: experiment {experiment.name} has no benchmark of translations "
            "to measure the loss on; name another --experiment"
        )
    name, values = names[0], []
    with tempfile.TemporaryDirectory(prefix="ems-export-") as folder:
        bare = Path(folder) / "model"  # links to the files of the model
        bare.mkdir()
        for file in description.sha256:
            (bare / file).symlink_to((model / file).resolve())
        tools = dict.fromkeys(description.segmenters, segmenter)
        write_json(bare / "model.json", {**description.written, "segmenters": tools})
        for each in (model, bare):
            evaluate_by_hand(experiment, [name], Path(folder), data, str(each), name="exported")
            scores = read_score_file(Path(folder) / f"{name}.json", name, "P@1")
            means = {}
            for label, ways in scores.labelled().items():
                language = scores.languages.get(label, ENGLISH)
                means[language] = sum(row.value for row in ways.values()) / len(ways)
            values.append(means)
    both = {code: (values[0][code], values[1][code]) for code in values[0] if code != ENGLISH}
    return Loss(name, both)
