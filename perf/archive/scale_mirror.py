"""A mirror of OPUS with the names and relative sizes of NLLB v1 and CCMatrix v1, of made-up text.

A language has 60,000 words of letters of its script, drawn as Zipf says, in sentences of 20 words
on average (Chinese, Japanese and Thai without spaces). Of every 2,000 pairs 600 are in both corpora
with the same text, 40 are repetitions within the corpus, and two have an evaluation sentence on
their foreign side. A block of 2,000 is made from its own seed, and written before the next one.
"""

import unicodedata
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import chain
from pathlib import Path
from zlib import crc32

import numpy as np

from ems.config.languages import load_languages
from ems.config.languages import opus_files
from ems.config.languages import pair_name

NLLB, CCMATRIX = "NLLB", "CCMatrix"
VERSION = "v1"
SEED = 20
WORDS, LETTERS = 60_000, 36  # of a language
LENGTH, SPREAD, LONGEST = 20, 0.5, 80  # words of a sentence: mean, sigma of its logarithm, most
BLOCK, SHARED, REPEATED, PLANTED = 2_000, 600, 40, 2  # pairs of a block, by kind
EVALUATION = 1_000  # sentences of a language, as in Tatoeba
UNSPACED = ("ja", "th", "zh")
NAMES = {  # of characters in Unicode, by script, where they are not "<SCRIPT> LETTER"
    "Latin": ("LATIN SMALL LETTER",),
    "Cyrillic": ("CYRILLIC SMALL LETTER",),
    "Greek": ("GREEK SMALL LETTER",),
    "Armenian": ("ARMENIAN SMALL LETTER",),
    "Han": ("CJK UNIFIED IDEOGRAPH",),
    "Hangul": ("HANGUL SYLLABLE",),
    "Japanese": ("HIRAGANA LETTER", "CJK UNIFIED IDEOGRAPH"),
    "Thai": ("THAI CHARACTER",),
}
MANY = {"Han": 3000, "Hangul": 1000, "Japanese": 2000}  # characters of a script, else LETTERS


def pair_counts(total: int, languages: list[str]) -> dict[str, dict[str, int]]:
    """Return corpus -> language -> pairs, in all about `total`, each in proportion to OPUS's.

    OPUS's table ends before NLLB, whose files are taken to be as large as CCMatrix's; of the
    languages that CCMatrix lacks, as large as those of CCAligned.
    """
    known = opus_files(CCMATRIX, VERSION)
    own = {code: known[pair].pairs for code in languages if (pair := _pair(code)) in known}
    others = opus_files("CCAligned", VERSION)
    rest = {
        code: others[_pair({"nb": "no"}.get(code, code))].pairs
        for code in languages
        if code not in own
    }
    corpora = {NLLB: own | rest, CCMATRIX: own}
    share = total / sum(sum(counts.values()) for counts in corpora.values())
    return {
        corpus: {code: max(10, round(count * share)) for code, count in counts.items()}
        for corpus, counts in corpora.items()
    }


def _pair(code: str) -> str:
    return pair_name("en", code)


# --- text


@cache
def lexicon(language: str) -> tuple[list[str], np.ndarray]:
    """Return the words of a language, and their cumulative probabilities."""
    script = load_languages()[language].script
    letters = np.array(_letters(script))
    random = np.random.default_rng([SEED, crc32(language.encode())])
    longest = 2 if script in ("Han", "Hangul", "Japanese") else 12
    lengths = np.log2(np.arange(WORDS) + 2) * random.uniform(0.3, 0.9, WORDS)
    lengths = np.clip(lengths, 1, longest).astype(int)
    weights = 1 / (np.arange(len(letters)) + 3)  # of letters
    drawn = random.choice(letters, lengths.sum(), p=weights / weights.sum())
    ends = np.cumsum(lengths).tolist()
    starts = [0, *ends[:-1]]
    words = ["".join(drawn[start:end]) for start, end in zip(starts, ends, strict=True)]
    frequency = 1 / (np.arange(WORDS) + 2.7)
    return words, np.cumsum(frequency / frequency.sum())


def _letters(script: str) -> list[str]:
    names = NAMES.get(script, (f"{script.upper()} LETTER",))
    many = MANY.get(script, LETTERS)
    return [character for name in names for character in _named(name)[: many // len(names)]]


@cache
def _named(name: str) -> list[str]:
    """Return the letters whose name in Unicode begins so, in the order of their codes."""
    usual = chain(range(0x61, 0x3400), range(0x4E00, 0xD7A4))  # without rare ideographs
    every = map(chr, usual)
    lower = (one for one in every if unicodedata.category(one) in ("Ll", "Lo"))
    return [one for one in lower if unicodedata.name(one, "").startswith(name)]


def sentences(language: str, count: int, *key: str | int) -> list[str]:
    """Return `count` sentences of a language, a function of `key`."""
    numbers = [crc32(part.encode()) if isinstance(part, str) else part for part in key]
    random = np.random.default_rng([SEED, *numbers])
    words, cumulated = lexicon(language)
    lengths = np.exp(random.normal(np.log(LENGTH) - SPREAD**2 / 2, SPREAD, count))
    ends = np.cumsum(np.clip(lengths, 2, LONGEST).astype(int)).tolist()
    drawn = [words[at] for at in np.searchsorted(cumulated, random.random(ends[-1])).tolist()]
    space = "" if language in UNSPACED else " "
    starts = [0, *ends[:-1]]
    return [space.join(drawn[s:e]).capitalize() + "." for s, e in zip(starts, ends, strict=True)]


@cache
def evaluation(pair: str, language: str) -> list[str]:
    """Return the evaluation sentences of one side of a pair, as Tatoeba has a thousand."""
    return sentences(language, EVALUATION, "evaluation", pair, language)


def blocks(corpus: str, pair: str, language: str, count: int) -> Iterator[list[str]]:
    """Yield one side of the pairs of a corpus in blocks."""
    for number, start in enumerate(range(0, count, BLOCK)):
        place = (pair, number)
        order = np.random.default_rng([SEED, crc32(pair.encode()), number]).permutation(BLOCK)
        own = BLOCK - SHARED - REPEATED
        lines = sentences(language, SHARED, "both", language, *place)
        lines += sentences(language, own, corpus, language, *place)
        lines += lines[:REPEATED]
        if language != "en":
            for at in range(PLANTED):
                planted = evaluation(pair, language)
                lines[SHARED + at] = planted[(number * PLANTED + at) % EVALUATION]
        yield [lines[at] for at in order[: count - start].tolist()]


# --- files


def write_mirror(
    folder: Path, total: int, languages: list[str], workers: int = 2
) -> dict[str, int]:
    """Write `opus/` with the zips of both corpora and `tatoeba/` with the evaluation sentences.

    Returns pair file -> pairs. `languages` are those beside English.
    """
    counts = pair_counts(total, languages)
    tasks = [
        (corpus, code, count) for corpus, each in counts.items() for code, count in each.items()
    ]
    tasks.sort(key=lambda task: -task[2])  # the largest first
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(partial(_write_zip, folder / "opus"), tasks))
    for code in languages:
        _write_evaluation(folder / "tatoeba", code)
    return {f"{corpus} {_pair(code)}": count for corpus, code, count in tasks}


def _write_zip(root: Path, task: tuple[str, str, int]) -> None:
    corpus, code, count = task
    pair = _pair(code)
    path = root / corpus / VERSION / "moses" / f"{pair}.txt.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(zipfile.ZipInfo("README"), "made up: perf/scale_mirror.py\n")
        for language in pair.split("-"):
            info = zipfile.ZipInfo(f"{corpus}.{pair}.{language}")
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                for lines in blocks(corpus, pair, language, count):
                    member.write("".join(f"{line}\n" for line in lines).encode())


def _write_evaluation(folder: Path, code: str) -> None:
    """Write the files of a language of LASER's Tatoeba, if that has it."""
    name = load_languages()[code].tatoeba_v1
    if not name:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for language, side in ((code, name), ("en", "eng")):
        text = "".join(f"{line}\n" for line in evaluation(_pair(code), language))
        (folder / f"tatoeba.{name}-eng.{side}").write_text(text, encoding="utf-8")
