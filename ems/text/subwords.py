"""SentencePiece: a seeded sample, training, and the subword model of an encoder (EMS v2 IV-B).

The sample is drawn here because SentencePiece's own sampling is not reproducible (0.2.3) and does
not balance languages. The pieces are `<pad>` 0, `<unk>` 1, `<mask>` 2, one control symbol `<2xx>`
per language, as in the authors' vocabulary (no bos, no eos), and `<characters:xx>` for each
language whose pieces are single characters. Training takes about twice the bytes of the sample in
memory plus 0.3 GB for distinct words, for any size of the corpus.
"""

import io
import random
from array import array
from collections import Counter, deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sentencepiece import SentencePieceNormalizer, SentencePieceProcessor, SentencePieceTrainer

from ems.base.errors import Damaged, mistake
from ems.base.files import atomic_path, check_unchanged, reading_text
from ems.base.progress import Progress
from ems.text.segmenters.base import RULE, SPACE
from ems.text.tsv import codes_of, count_lines, count_texts, read_tsv

if TYPE_CHECKING:
    from ems.config.experiment import Experiment

PAD, UNK, MASK = 0, 1, 2
BYTE = "<0x{:02X}>"  # SentencePiece's name of a byte piece
LANGUAGE, CHARACTERS = "<2{}>", "<characters:{}>"  # control symbols of a language
MODEL = "*.model"  # file name of a subword model
KEPT = 1_000_000  # characters of words that an encoder caches, about 25 MB


def quotas(counts: dict[str, int], total: int, temperature: float) -> dict[str, int]:
    """Divide `total` lines among languages with p_l ~ n_l^(1/temperature), at most n_l each; a
    language with fewer lines than its share passes the rest on in proportion.
    """
    left, open_ = min(total, sum(counts.values())), dict(counts)
    chosen = dict.fromkeys(counts, 0)
    while left and open_:
        weights = {code: count ** (1 / temperature) for code, count in open_.items()}
        shares = {code: left * weight / sum(weights.values()) for code, weight in weights.items()}
        full = [code for code, share in shares.items() if share >= open_[code]]
        if not full:  # round: largest remainders up, ties by name
            whole = {code: int(share) for code, share in shares.items()}
            order = sorted(shares, key=lambda code: (whole[code] - shares[code], code))
            for code in order[: left - sum(whole.values())]:
                whole[code] += 1
            return chosen | whole
        for code in full:
            chosen[code] = open_.pop(code)
            left -= chosen[code]
    return chosen


def write_sample(experiment: "Experiment", sources: list[Path], out: Path) -> dict[str, int]:
    """Draw the vocabulary's sample and the language of each line; return lines per language."""
    quota, sample = draw_sample(experiment, sources, "sample for the vocabulary")
    with (
        atomic_path(out) as texts,
        atomic_path(languages_of(out)) as codes,
        open(texts, "w", encoding="utf-8") as text_writer,
        open(codes, "w", encoding="utf-8") as code_writer,
    ):
        for code, line in sample:
            text_writer.write(f"{line}\n")
            code_writer.write(f"{code}\n")
    return quota


def draw_sample(
    experiment: "Experiment", sources: list[Path], title: str
) -> tuple[dict[str, int], Iterator[tuple[str, str]]]:
    """Return lines per language, and the stream of (language, line) in the order of the files."""
    settings = experiment.vocabulary
    lines = {path: count_texts(path) for path in sources}
    counts = Counter[str]()
    for path, count in lines.items():
        counts.update(dict.fromkeys(codes_of(path), count))
    quota = quotas(counts, settings.sample_lines, settings.temperature)
    draw = random.Random(f"{experiment.seed}/vocabulary")

    def stream() -> Iterator[tuple[str, str]]:
        progress = Progress(title, sum(lines.values()), "pairs")
        needed, left = dict(quota), dict(counts)
        for path, count in lines.items():
            codes = codes_of(path)
            for *texts, _ in read_tsv(path, len(codes)):
                for code, text in zip(codes, texts, strict=True):
                    if draw.random() * left[code] < needed[code]:  # Knuth's algorithm S
                        needed[code] -= 1
                        yield code, text
                    left[code] -= 1
            progress.add(count)
        progress.close(f"{sum(quota.values()):,} lines drawn")

    return quota, stream()


def languages_of(sample: Path) -> Path:
    return sample.with_suffix(".languages")


def count_sample(sample: Path) -> int:
    """Count the lines of a sample. Raises `Damaged` if its file of languages has other lines."""
    lines, codes = count_lines(sample), count_lines(languages_of(sample))
    if lines != codes:
        raise Damaged(sample, f"{lines:,} lines, but {languages_of(sample)} has {codes:,}")
    return lines


def train_vocabulary(experiment: "Experiment", sample: Path, out: Path) -> int:
    """Train the vocabulary; return its size; raise `EmsError` if the sample is small or changes."""
    settings = experiment.vocabulary
    marked = [code for code in experiment.languages if code in settings.characters]
    known = marked or languages_of(sample).is_file()
    count = (count_sample if known else count_lines)(sample)
    size = sample.stat().st_size
    symbols = [*map(LANGUAGE.format, experiment.languages), *map(CHARACTERS.format, marked)]
    what = f"train {settings.type.upper()} of {settings.size:,} pieces"
    progress = Progress(what, count, "lines")
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_texts(sample, marked),
            model_writer=model,
            model_type=settings.type,
            **_required(sample, marked, settings.character_coverage),
            vocab_size=settings.size,
            character_coverage=settings.character_coverage,
            byte_fallback=settings.byte_fallback,
            input_sentence_size=0,
            num_threads=1,  # more are no faster, and the model file records their number
            pad_id=PAD,
            unk_id=UNK,
            bos_id=-1,
            eos_id=-1,
            control_symbols=["<mask>", *symbols],
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        with reading_text(sample) as lines:
            deque(lines, 0)  # raises an error that names the line if it is not UTF-8
        words = {"size": settings.size, "sample": sample, "reason": " ".join(str(error).split())}
        raise mistake("vocabulary too large", **words) from None
    check_unchanged(sample, size)
    progress.add(progress.total or 0)
    with atomic_path(out) as temporary:
        temporary.write_bytes(model.getvalue())
    progress.close()
    return load_vocabulary(out).get_piece_size()


def _texts(sample: Path, marked: list[str], inside: bool = False) -> Iterator[str]:
    """Yield the lines of a sample in the languages `marked` (`inside`), or in all others."""
    with reading_text(sample) as lines:
        if not marked:
            yield from (line.rstrip("\n") for line in lines if not inside)
            return
        with reading_text(languages_of(sample)) as codes:
            for code, line in zip(codes, lines, strict=True):
                if (code.rstrip("\n") in marked) == inside:
                    yield line.rstrip("\n")


def _required(sample: Path, marked: list[str], coverage: float) -> dict[str, str]:
    """Name the characters that must be pieces: the share `coverage` of the text in `marked`."""
    normalise = SentencePieceNormalizer(rule_name=RULE).normalize
    texts = _texts(sample, marked, True)
    counts = Counter(character for text in texts for character in normalise(text))
    del counts[SPACE]
    left, frequent = coverage * counts.total(), []
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if left > 0:
            frequent.append(character)
        left -= count
    return {"required_chars": "".join(frequent)} if marked else {}


def encode_lines(
    processor: SentencePieceProcessor, lines: list[str], language: str, threads: int = 1
) -> list[list[int]]:
    """Return the token ids of each line, one per character if the vocabulary marks the language. A
    space is a character, without one at the start. The ids do not depend on `threads`.
    """
    if not by_characters(processor, language):
        return processor.encode(lines, num_threads=threads)
    fallback = processor.is_byte(processor.piece_to_id(BYTE.format(0)))
    encoded = []
    for line in lines:
        text = processor.normalize(line).removeprefix(SPACE)
        ids = processor.piece_to_id(list(text))
        if fallback and UNK in ids:
            parts = (
                [one] if at != UNK else map(BYTE.format, one.encode())
                for at, one in zip(ids, text, strict=True)
            )
            ids = processor.piece_to_id(list(chain.from_iterable(parts)))
        encoded.append(ids)
    return encoded


def by_characters(processor: SentencePieceProcessor, language: str) -> bool:
    return bool(language) and processor.piece_to_id(CHARACTERS.format(language)) != UNK


def load_vocabulary(path: Path) -> SentencePieceProcessor:
    """Load a subword model. Raises `Damaged` if the file is missing or not one."""
    if not path.is_file():
        raise Damaged(path, "no such file", MODEL)
    try:
        return SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise Damaged(path, f"not a SentencePiece model ({error})", MODEL) from None


class WordEncoder:
    """Encodes lines of a language into packed token ids, each distinct word once. SentencePiece
    splits at spaces before it merges, and words repeat (Zipf), so a cache of words takes a third of
    the time. Exceptions: a vocabulary with pieces across spaces (never trained here), a unigram
    model (its sums of scores may round differently), a language of characters.
    """

    def __init__(self, processor: SentencePieceProcessor, language: str = "") -> None:
        self.processor, self.language = processor, language
        self.by_words = has_words(processor) and not by_characters(processor, language)
        self.known: dict[str, bytes] = {}
        self.size = 0  # characters in `known`

    def encode(self, lines: tuple[str, ...]) -> list[bytes]:
        """Return the ids of each line, equal to `processor.encode`, packed as uint16."""
        if not self.by_words:
            return self._pack(list(lines))
        if self.size > KEPT:
            self.known, self.size = {}, 0
        words = [line.split(" ") for line in lines]
        new = list(set(chain.from_iterable(words)).difference(self.known))
        self.known.update(zip(new, self._pack(new), strict=True))
        self.size += sum(map(len, new))
        return [b"".join(map(self.known.__getitem__, line)) for line in words]

    def _pack(self, texts: list[str]) -> list[bytes]:
        encoded = encode_lines(self.processor, texts, self.language)
        return [array("H", ids).tobytes() for ids in encoded]


@lru_cache(maxsize=1)
def has_words(processor: SentencePieceProcessor) -> bool:
    """Return whether no piece has a space inside, and scores are the numbers of BPE's merges."""
    ids = [*range(processor.get_piece_size())]
    inside = any(SPACE in piece[1:] for piece in processor.id_to_piece(ids))
    return not inside and not any(score % 1 for score in processor.get_score(ids))
