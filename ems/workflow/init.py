"""`ems init`: choose OPUS corpora for some languages, with reasons, and write a valid experiment.

docs/data.md ("How `ems init` chooses") states the rule. experiment.yaml.jinja is the template of
the experiment, with a comment on each value to change.
"""

import json
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from ems.base.errors import EmsError, mistake
from ems.base.files import read_table, write_text
from ems.base.progress import log
from ems.base.schema import check_name
from ems.base.templates import rendered
from ems.config.languages import opus_date
from ems.config.load import load_experiment, load_site
from ems.config.plugins import benchmarks
from ems.corpora import catalogue
from ems.corpora.catalogue import NOISE, catalogue_entry, licence_of
from ems.corpora.split import shares
from ems.tables.declarations import words_of
from ems.workflow.own_pairs import OwnFile, read_files
from ems.workflow.search import PIVOT, Named, Offer, find_language, language_of, nearest, offers

USUAL = "5M"  # pairs of OPUS, where nothing else is asked for
UNITS = {"": 1, "k": 1000, "m": 1_000_000}
LEAST_BUDGET, MOST_BUDGET = 1000, 1_000_000_000  # sentence pairs
LEAST_PAIRS = 500  # pairs that are worth an entry
LEAST_UNRATED = 5000
HUGE = 10  # a corpus with 10 times its share is not fetched if the others suffice
STRINGS = 10  # labels of programs are at most a tenth of a share
RELIGIOUS = 10  # and so is religious text, if there is enough of other text
BYTES = 256  # pieces of a vocabulary with `byte_fallback`
HELD_OUT = 500  # validation pairs per language
WORTH = 4  # a file has at least 4 times the pairs held out of it
FAR_TOO_LARGE = 100  # the same for text that programs found, whose corpora are larger
REPEATS = 0.5  # share of a corpus in another one, from which it is not taken
FOUND = ("filtered", "mined")
FILTERED = 0.75  # share of the text that programs found, if mined text can be the rest
DENSE = ("Han", "Japanese", "Hangul", "Hans", "Hant")  # scripts with a syllable or word per letter
FULL = "the share is full"
LanguagePair = tuple[str, str]


@dataclass(frozen=True)
class Pick:
    """A corpus for a language pair, with up to `most` of its sentence pairs (0: left out)."""

    pair: LanguagePair
    offer: Offer
    most: int
    reason: str

    @property
    def validates(self) -> bool:
        """True if enough pairs remain for training when some are held out for validation."""
        return self.most >= WORTH * HELD_OUT


@dataclass(frozen=True)
class Size:
    """A table of vectors for up to `pairs` sentence pairs, trained for `most` steps at most: a row
    of sizes.tsv, of which the second is `ems-plus` of configs/small62.yaml (docs/results.md).
    """

    pairs: int
    table: int
    ngrams: int  # rows at most
    batch: int
    epochs: int
    most: int


def read_budget(text: str) -> int:
    """Parse a number of sentence pairs: "5M", "800k", "250000". Raises `EmsError`."""
    match = re.fullmatch(r"(\d{1,10}(?:\.\d{1,6})?)([km]?)", text.strip().lower(), re.ASCII)
    pairs = round(float(match[1]) * UNITS[match[2]]) if match else 0
    if not LEAST_BUDGET <= pairs <= MOST_BUDGET:
        raise mistake("no budget", text=text[:40], least=LEAST_BUDGET, most=MOST_BUDGET)
    return pairs


def read_languages(text: str) -> list[Named]:
    """Parse "cy,uk,Polish", English first. Raises `EmsError` unless two or more are known."""
    try:
        named = {word: find_language(word) for word in text.split(",") if word.strip()}
    except EmsError as error:
        raise EmsError(f"--languages: {error}") from None
    plain = {word: (language.code, language.name.lower()) for word, language in named.items()}
    if others := [word for word in named if word.strip().lower() not in plain[word]]:
        log.info("--languages: %s", ", ".join(f"{word} is {named[word]}" for word in others))
    languages = list(dict.fromkeys(named.values()))
    if len(languages) < 2:
        raise EmsError(f"--languages {text}: expected two or more, like en,cy,uk")
    return sorted(languages, key=lambda language: language.code != PIVOT)


def language_pairs(languages: list[Named]) -> list[LanguagePair]:
    """Return the language pairs with English if it is one of the languages, else all pairs."""
    pairs = list(combinations([language.code for language in languages], 2))
    return [pair for pair in pairs if PIVOT in pair] or pairs


def make_experiment(
    named: str, most: str, out: Path, files: Sequence[str] = (), commercial: bool = False
) -> str:
    """Write an experiment of the languages `named` to `out`; return the reasons for its corpora.
    With `files` of your own, text of OPUS is only added if there is a budget, `most`.
    """
    most = most or ("" if files else USUAL)
    budget, languages = read_budget(most) if most else 0, read_languages(named)
    check_name("--out", out.stem)
    pairs = language_pairs(languages)
    codes = list(dict.fromkeys(find_language(word).code for word in named.split(",") if word))
    own, benchmark = read_files(files, codes), out.with_suffix("")
    picks = choose(pairs, budget, commercial) if most else []
    _check_covered(languages, picks, own)
    listed = codes if files else [language.code for language in languages]
    command = f"ems init --languages {','.join(listed)}"
    command += f" --files {shlex.join(files)}" if files else ""
    command += f" --budget {most}" if most else ""
    command += " --commercial" if commercial else ""
    text = experiment_text(out, languages, picks, command, own)
    made = {out: text}
    if own:
        made[benchmark / "pairs.tsv"] = "".join(line for file in own for line in file.lines())
    for path, content in made.items():
        if path.exists() and path.read_bytes() != content.encode():
            raise mistake("another file there", path=path)
    with tempfile.TemporaryDirectory() as folder:  # check that the pipeline accepts it
        write_text(Path(folder) / f"{out.stem}.yaml", text)
        site = load_site(Path("config.yaml"), {"experiment": out.stem})
        catalogue.check_corpora(load_experiment(out.stem, site, Path(folder)))
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, content)
    taken = [pick.offer for pick in picks if pick.most]
    closed = {offer.corpus for offer in taken if not catalogue_entry(offer.corpus).commercial}
    used = {(offer.corpus, code) for offer in taken for code in "-".join(offer.files).split("-")}
    merged = {(language_of(corpus, code), code) for corpus, code in used}
    return rendered(
        Path(__file__).with_name("init.txt.jinja"),
        names={language.code: language.name for language in languages},
        own=own,
        benchmark=benchmark,
        by_pair={pair: [pick for pick in picks if pick.pair == pair] for pair in pairs if most},
        budget=budget,
        total=sum(pick.most for pick in picks) + sum(file.pairs for file in own),
        megabytes=sum(offer.kilobytes or 0 for offer in taken) / 1000,
        unknown=[offer for offer in taken if offer.kilobytes is None],
        closed=sorted(closed),
        merged=sorted(each for each in merged if len({*each}) == 2),
        licence=licence_of,
        pivot=PIVOT,
    )


def _check_covered(languages: list[Named], picks: list[Pick], own: Sequence[OwnFile]) -> None:
    """Raise `EmsError` for a language without text; the message names related languages."""
    covered = {code for pick in picks if pick.most for code in pick.pair}
    covered |= {code for file in own for code in file.key.split("-")}
    for language in languages:
        if language.code not in covered and not picks:
            raise mistake("language without a file", language=language)
        if language.code not in covered:
            others = [each.code for each in languages if each != language]
            words = {"date": opus_date(), "nearest": nearest(language)}
            raise mistake("language without text", language=language, others=others, **words)


# --- which corpora


def choose(pairs: list[LanguagePair], budget: int, commercial: bool = False) -> list[Pick]:
    """Return the picks of all language pairs, with corpora left out, in the order of the rule."""
    usable: list[list[Offer]] = []
    left_out: list[list[Pick]] = []
    available = []
    for pair in pairs:
        reasons = _reasons_against(offers(*pair), commercial)
        usable.append([offer for offer, reason in reasons.items() if not reason])
        left_out.append([Pick(pair, offer, 0, why) for offer, why in reasons.items() if why])
        found = sum(offer.pairs for offer in usable[-1] if offer.noise in FOUND)
        others = sum(offer.pairs for offer in usable[-1]) - found
        # text that programs found only up to an even share
        available.append(others + min(found, max(0, budget // len(pairs) - others)))
    parts = shares(available, budget)
    picks: list[Pick] = []
    for pair, own, share, others in zip(pairs, usable, parts, left_out, strict=True):
        picks += [*_of_pair(pair, own, share), *others]
    return picks


def _reasons_against(offered: list[Offer], commercial: bool = False) -> dict[Offer, str]:
    """Return offer -> the reason to leave it out, "" for a usable one."""
    names, reasons, kept = {offer.corpus for offer in offered}, dict.fromkeys(offered, ""), []
    for offer in offered:
        known = catalogue_entry(offer.corpus)
        least = LEAST_UNRATED if offer.noise == catalogue.UNRATED else LEAST_PAIRS
        file = offer.files[0]
        shared = {each: catalogue.overlap(offer.corpus, each.corpus, file) for each in kept}
        most = max(kept, key=shared.__getitem__, default=None)
        if offer.noise == "names":
            reasons[offer] = "names, not sentences"
        elif offer.pairs is None:
            reasons[offer] = "not counted"
        elif offer.pairs < least:
            reasons[offer] = f"fewer than {least:,} pairs"
        elif defect := offer.defect:
            reasons[offer] = f"{defect.defect}: {defect.what}"
        elif commercial and not known.commercial:
            reasons[offer] = f"no commercial use: {known.licence}"
        elif known.repeats in names:
            reasons[offer] = f"repeats {known.repeats}"
        elif most and shared[most] >= REPEATS:
            reasons[offer] = f"{shared[most]:.0%} of it is in {most.corpus}"
        else:
            kept.append(offer)
    return reasons


def _of_pair(pair: LanguagePair, usable: list[Offer], share: int) -> list[Pick]:
    """Return the picks of a language pair, class by class, until its share is full."""
    picks: list[Pick] = []
    religious = [offer for offer in usable if catalogue_entry(offer.corpus).kind == "religious"]
    others = sum(offer.pairs for offer in usable if offer not in religious)
    most = shares([offer.pairs for offer in religious], max(share // RELIGIOUS, share - others))
    limits = dict(zip(religious, most, strict=True))
    for noise in NOISE:
        of_class = [offer for offer in usable if offer.noise == noise]
        left = share - sum(pick.most for pick in picks)
        if noise == "strings":
            left = min(left, share // STRINGS)
        if noise == "filtered":  # the rest is of another crawl, if there is one
            mined = sum(offer.pairs for offer in usable if offer.noise == "mined")
            left = max(round(FILTERED * left), left - mined)
        if noise in FOUND:
            picks += _found(pair, of_class, left)
        else:
            picks += _even(pair, of_class, left, limits)
    return picks


def _even(
    pair: LanguagePair, of_class: list[Offer], left: int, limits: dict[Offer, int]
) -> list[Pick]:
    small = [offer for offer in of_class if offer.pairs <= HUGE * left]
    if sum(offer.pairs for offer in small) < left:
        small = of_class
    parts = shares([limits.get(offer, offer.pairs) for offer in small], left)
    picks = [_pick(pair, offer, most) for offer, most in zip(small, parts, strict=True)]
    why = FULL if left < LEAST_PAIRS else "too large for the share"
    return [*picks, *(Pick(pair, offer, 0, why) for offer in of_class if offer not in small)]


def _found(pair: LanguagePair, of_class: list[Offer], left: int) -> list[Pick]:
    """Take the largest corpora first, but none that is huge against the rest."""
    picks = []
    for offer in of_class:
        others = sum(each.pairs for each in of_class if each.pairs <= FAR_TOO_LARGE * left)
        if offer.pairs > FAR_TOO_LARGE * left and others >= left >= LEAST_PAIRS:
            picks.append(Pick(pair, offer, 0, "too large for the share"))
            continue
        picks.append(_pick(pair, offer, min(offer.pairs, left)))
        left -= picks[-1].most
    return picks


def _pick(pair: LanguagePair, offer: Offer, most: int) -> Pick:
    if most < min(LEAST_PAIRS, offer.pairs):
        return Pick(pair, offer, 0, FULL)
    return Pick(pair, offer, most, offer.noise + (", capped" if most < offer.pairs else ""))


# --- sizes by the languages and sentence pairs, and validation


def size_for(languages: int, pairs: int) -> Size:
    """Return the size for the text, with the rows that its n-grams need: more with the languages,
    twice as many with ten times the pairs. A narrower table loses more (docs/log.md, 2026-11-28).
    """
    rows = read_table(Path(__file__).with_name("sizes.tsv"))
    sizes = (Size(**{key: int(number) for key, number in row.items()}) for row in rows)
    size = next(size for size in sizes if pairs <= size.pairs)
    return replace(size, ngrams=min(size.ngrams, round(300 * languages * pairs**0.3)))


def steps_for(size: Size, pairs: int) -> int:
    """Return the training steps, rounded to hundreds."""
    return max(300, min(size.most, round(size.epochs * pairs / size.batch / 100) * 100))


def vocabulary_size(languages: int, pairs: int) -> int:
    """Return the number of subwords: it grows with the languages and with the text."""
    return max(3000, min(8000 + 2000 * languages, 60_000, pairs // 5 // 100 * 100))


def validation_of(picks: list[Pick]) -> dict[str, list[LanguagePair]]:
    """Return corpus -> language pairs validated on its first sentence pairs. Each language pair has
    one corpus, of the cleanest class; the corpora are as few as possible.
    """
    left = {pick.pair for pick in picks if pick.most}
    chosen: dict[str, list[LanguagePair]] = {}
    while left:
        able = _by_corpus([pick for pick in picks if pick.most and pick.pair in left])
        name = max(able, key=lambda corpus: _worth(able[corpus]))
        large = [pick.pair for pick in able[name] if pick.validates]
        chosen[name] = large or [pick.pair for pick in able[name]]
        left -= set(chosen[name])
    return chosen


def _worth(picks: list[Pick]) -> tuple[int, int, int]:
    """Return the sort key of a corpus for validation: human, number of language pairs, size."""
    large = [pick for pick in picks if pick.validates]
    human = sum(pick.offer.noise in ("clean", "fair") for pick in large)
    return human, len(large), sum(pick.most for pick in picks)


def _by_corpus(picks: list[Pick]) -> dict[str, list[Pick]]:
    corpora: dict[str, list[Pick]] = {}
    for pick in picks:
        corpora.setdefault(pick.offer.corpus, []).append(pick)
    return corpora


# --- the file


def experiment_text(
    out: Path, languages: list[Named], picks: list[Pick], command: str, own: Sequence[OwnFile] = ()
) -> str:
    """Return the content of an experiment's file `out`; `own` are tested on pairs next to it."""
    taken = [pick for pick in picks if pick.most]
    pairs, corpora = sum(pick.most for pick in taken), _by_corpus(taken)
    pairs += sum(file.pairs for file in own)
    size = size_for(len(languages), pairs)
    mined = [corpus for corpus, own in corpora.items() if own[0].offer.noise in FOUND]
    dense = any(language.language.script in DENSE for language in languages)
    known = [f"{name} {licence_of(name)}" for name in corpora if "see" not in licence_of(name)]
    codes = " ".join(language.code for language in languages)
    # SentencePiece cannot make more pieces than text that repeats itself has
    most = [BYTES + max(file.words for file in own)] if own and not taken else []
    sources = [" ".join(path for file in own for path in file.paths)] if own else []
    sources += ["OPUS"] if taken else []
    about = f"An encoder for {codes}, from {pairs:,} sentence pairs of {' and '.join(sources)}."
    return rendered(
        Path(__file__).with_name("experiment.yaml.jinja"),
        name=out.stem,
        command=command,
        date=opus_date(),
        pairs=pairs,
        description=json.dumps(about, ensure_ascii=False),
        languages=languages,
        pivot=PIVOT,
        corpora=corpora,
        held=validation_of(taken),
        held_out=_held_out,
        licences=known,
        own=own,
        benchmark=json.dumps(str(out.with_suffix("")), ensure_ascii=False),
        as_yaml=partial(json.dumps, ensure_ascii=False),
        sets=_sets(languages) if taken else [],
        mined=mined,
        ratio=5 if mined and not dense else 9,  # of the lengths of both sides
        vocabulary=min([vocabulary_size(len(languages), pairs), *most]),
        size=size,
        steps=steps_for(size, pairs),
    )


def _sets(languages: list[Named]) -> list[str]:
    """Return the open multilingual benchmarks with two of the languages, in the tables' order."""
    english = any(language.code == PIVOT for language in languages)
    sets = {}
    for name, record in benchmarks().items():
        if record.by_language and record.status == "open" and isinstance(record.codes, str):
            codes = [getattr(language.language, record.codes) for language in languages]
            if sum(map(bool, codes)) >= 2 and (english or record.between == ""):
                sets[name] = min(shown.place for shown in words_of(name)["table"].values())
    return sorted(sets, key=sets.__getitem__)


def _held_out(picks: list[Pick]) -> int:
    """Return the number of pairs held out of each file of a corpus."""
    return min(HELD_OUT, *(pick.offer.pairs // len(pick.offer.files) // WORTH for pick in picks))
