"""SentencePiece: a seeded sample, BPE training, and the subword model of an encoder (EMS v2 IV-B).

Notable choices:
- we draw the sample ourselves, line for line from each language: SentencePiece's own shuffled
  sample is not reproducible (0.2.3), and it knows no languages;
- a language's share of the sample is p_l ~ n_l^(1/temperature), as for training batches;
- one thread: BPE gains nothing from more, and the model file would record their number;
- `<pad>` 0, `<unk>` 1, `<mask>` 2, then one control symbol `<2xx>` per language, all inside the
  size, as in the authors' vocabulary (no bos, no eos). A control symbol is never matched in text;
- memory is bounded by the sample, not by the corpus: training takes about twice the bytes of the
  sample (sample_lines x bytes of a segmented line; 2,000,000 lines of 100 bytes: 0.4 GB) and
  0.3 GB for its table of distinct words; drawing the sample holds one line;
- `byte_fallback` spends 256 pieces on bytes, so that no character is ever unknown (the papers have
  none);
- SentencePiece records the number of threads in the model; we take it out again, so that the same
  sample is the same bytes on any machine.
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
from ems.text.tsv import check_count, codes_of, count_lines, read_tsv

PAD, UNK, MASK = 0, 1, 2
MODEL = "*.model"  # the name of such a file


def language_token(code: str) -> str:
    """The control symbol of a language, like `<2en>`."""
    return f"<2{code}>"


def quotas(counts: dict[str, int], total: int, temperature: float) -> dict[str, int]:
    """How many of `total` lines each language gives: p_l ~ n_l^(1/temperature), at most n_l.

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
    """Whole numbers that add up to `total`: largest remainders first, ties by name."""
    whole = {code: int(share) for code, share in shares.items()}
    order = sorted(shares, key=lambda code: (whole[code] - shares[code], code))
    for code in order[: total - sum(whole.values())]:
        whole[code] += 1
    return whole


def write_sample(experiment: Experiment, sources: list[Path], out: Path) -> dict[str, int]:
    """Draw the training sample of the vocabulary from segmented pair files `.../<a>-<b>.tsv`.

    Returns the number of lines per language. Memory does not grow with the corpus: lines are drawn
    in their order while they stream by (Knuth's algorithm S). Beside `out` its `languages_of` says
    which language each line is of.
    """
    settings = experiment.vocabulary
    lines = {path: count_lines(path) for path in sources}
    for path, count in lines.items():
        check_count(path, count)
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
    """The file beside a sample that holds the language of each of its lines."""
    return sample.with_suffix(".languages")


def unequal_sample(sample: Path) -> EmsError:
    """The error for a sample with another number of lines than its languages."""
    counts = [count_lines(path) for path in (sample, languages_of(sample))]
    return Damaged(sample, f"{counts[0]:,} lines, but {languages_of(sample)} has {counts[1]:,}")


def _drawn(
    path: Path, needed: dict[str, int], left: dict[str, int], draw: random.Random
) -> Iterator[tuple[str, str]]:
    codes = codes_of(path)
    for first, second, _ in read_tsv(path):
        for code, text in zip(codes, (first, second), strict=True):
            if draw.random() * left[code] < needed[code]:
                needed[code] -= 1
                yield code, text
            left[code] -= 1


def train_vocabulary(experiment: Experiment, sample: Path, out: Path) -> int:
    """Train the BPE model of an experiment and write it to `out`; return its size in pieces.

    Raises `EmsError` when the sample is too small for the size.
    """
    settings, count = experiment.vocabulary, count_lines(sample)
    if languages_of(sample).is_file() and count_lines(languages_of(sample)) != count:
        raise unequal_sample(sample)
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
                num_threads=1,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=-1,
                eos_id=-1,
                control_symbols=["<mask>", *map(language_token, experiment.languages)],
                minloglevel=2,
            )
    except (RuntimeError, OSError) as error:
        _check_text(sample)
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


def _check_text(path: Path) -> None:
    """Raise `Damaged` for a file that is not UTF-8."""
    with reading_text(path) as lines:
        for _ in lines:
            pass


def load_vocabulary(path: Path) -> sentencepiece.SentencePieceProcessor:
    """The subword model at `path`. Raises `Damaged` when it is none."""
    if not path.is_file():
        raise Damaged(path, "no such file", MODEL)
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise Damaged(path, f"not a SentencePiece model ({error})", MODEL) from None
