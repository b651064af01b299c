"""SentencePiece: a seeded sample, BPE training, and the subword model of an encoder (EMS v2 IV-B).

The sample is drawn here, since SentencePiece's own is not reproducible (0.2.3) and knows no
languages: a language's share is p_l ~ n_l^(1/temperature), as for training batches. The pieces are
`<pad>` 0, `<unk>` 1, `<mask>` 2, then one control symbol `<2xx>` per language, as in the authors'
vocabulary (no bos, no eos). Training takes about twice the bytes of the sample in memory and 0.3 GB
for its table of distinct words, however large the corpus is.
"""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import sentencepiece

from ems.config import Experiment
from ems.damaged import Damaged
from ems.errors import EmsError
from ems.files import atomic_path, reading_text
from ems.progress import Progress
from ems.text.tsv import codes_of, count_lines, count_texts, read_tsv

PAD, UNK, MASK = 0, 1, 2
MODEL = "*.model"  # the name of such a file


def language_token(code: str) -> str:
    """Return the control symbol of a language, like `<2en>`."""
    return f"<2{code}>"


def quotas(counts: dict[str, int], total: int, temperature: float) -> dict[str, int]:
    """Return how many of `total` lines each language gives: p_l ~ n_l^(1/temperature), at most n_l.

    What a small language cannot fill goes to the others in the same proportions.
    """
    left, open_ = min(total, sum(counts.values())), dict(counts)
    chosen = dict.fromkeys(counts, 0)
    while left and open_:
        weights = {code: count ** (1 / temperature) for code, count in open_.items()}
        shares = {code: left * weight / sum(weights.values()) for code, weight in weights.items()}
        full = [code for code, share in shares.items() if share >= open_[code]]
        if not full:
            return {**chosen, **_rounded(shares, left)}
        for code in full:
            chosen[code] = open_.pop(code)
            left -= chosen[code]
    return chosen


def _rounded(shares: dict[str, float], total: int) -> dict[str, int]:
    """Return whole numbers that add up to `total`: largest remainders first, ties by name."""
    whole = {code: int(share) for code, share in shares.items()}
    order = sorted(shares, key=lambda code: (whole[code] - shares[code], code))
    for code in order[: total - sum(whole.values())]:
        whole[code] += 1
    return whole


def write_sample(experiment: Experiment, sources: list[Path], out: Path) -> dict[str, int]:
    """Draw the training sample of the vocabulary from segmented files: pairs `.../<a>-<b>.tsv`,
    documents `.../<a>.tsv`.

    Returns the number of lines per language. Lines are drawn in their order while they stream by
    (Knuth's algorithm S). The file `languages_of(out)` has the language of each line.
    """
    settings = experiment.vocabulary
    lines = {path: count_texts(path) for path in sources}
    counts: dict[str, int] = {}
    for path, count in lines.items():
        for code in codes_of(path):
            counts[code] = counts.get(code, 0) + count
    quota = quotas(counts, settings.sample_lines, settings.temperature)
    draw = random.Random(f"{experiment.seed}/vocabulary")
    progress = Progress("sample for the vocabulary", sum(lines.values()), "pairs")
    needed, left = dict(quota), dict(counts)
    with (
        atomic_path(out) as texts,
        atomic_path(languages_of(out)) as codes,
        open(texts, "w", encoding="utf-8") as text_writer,
        open(codes, "w", encoding="utf-8") as code_writer,
    ):
        for path in sources:
            for code, line in _drawn(path, needed, left, draw):
                text_writer.write(f"{line}\n")
                code_writer.write(f"{code}\n")
            progress.add(lines[path])
    progress.close(f"{sum(quota.values()):,} lines drawn")
    return quota


def languages_of(sample: Path) -> Path:
    """Return the file beside a sample that holds the language of each of its lines."""
    return sample.with_suffix(".languages")


def count_sample(sample: Path) -> int:
    """Return the lines of a sample. Raises `Damaged` when its languages have another number."""
    lines, codes = count_lines(sample), count_lines(languages_of(sample))
    if lines != codes:
        raise Damaged(sample, f"{lines:,} lines, but {languages_of(sample)} has {codes:,}")
    return lines


def _drawn(
    path: Path, needed: dict[str, int], left: dict[str, int], draw: random.Random
) -> Iterator[tuple[str, str]]:
    codes = codes_of(path)
    for *texts, _ in read_tsv(path, len(codes)):
        for code, text in zip(codes, texts, strict=True):
            if draw.random() * left[code] < needed[code]:
                needed[code] -= 1
                yield code, text
            left[code] -= 1


def train_vocabulary(experiment: Experiment, sample: Path, out: Path) -> int:
    """Train the BPE model of an experiment and write it to `out`; return its size in pieces.

    Raises `EmsError` when the sample is too small for the size.
    """
    settings = experiment.vocabulary
    count = (count_sample if languages_of(sample).is_file() else count_lines)(sample)
    progress = Progress(f"train BPE of {settings.size:,} pieces", count, "lines")
    model = io.BytesIO()
    try:
        with reading_text(sample) as lines:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(line.rstrip("\n") for line in lines),
                model_writer=model,
                model_type="bpe",
                vocab_size=settings.size,
                character_coverage=settings.character_coverage,
                byte_fallback=settings.byte_fallback,
                input_sentence_size=0,
                num_threads=1,  # more gain nothing, and the file records their number
                pad_id=PAD,
                unk_id=UNK,
                bos_id=-1,
                eos_id=-1,
                control_symbols=["<mask>", *map(language_token, experiment.languages)],
                minloglevel=2,
            )
    except (RuntimeError, OSError) as error:
        with reading_text(sample) as lines:
            for _ in lines:  # is it UTF-8?
                pass
        raise EmsError(
            f"vocabulary.size: SentencePiece cannot make {settings.size:,} pieces from "
            f"{sample}: {' '.join(str(error).split())}. Lower vocabulary.size or raise "
            "vocabulary.sample_lines"
        ) from None
    progress.add(progress.total or 0)
    with atomic_path(out) as temporary:
        temporary.write_bytes(model.getvalue())
    progress.close()
    return load_vocabulary(out).get_piece_size()


def load_vocabulary(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Load the subword model at `path`. Raises `Damaged` when it is none."""
    if not path.is_file():
        raise Damaged(path, "no such file", MODEL)
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise Damaged(path, f"not a SentencePiece model ({error})", MODEL) from None
