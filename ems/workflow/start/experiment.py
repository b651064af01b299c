"""`ems init`: choose corpora for some languages, say why, and write a valid experiment."""

import re
import tempfile
from itertools import combinations
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import write_text
from ems.base.schema import check_name
from ems.config.languages.opus import opus_date
from ems.config.load import load_experiment, load_site
from ems.corpora.catalogue import check_corpora, licence_of
from ems.workflow.downloads import aligned
from ems.workflow.start.choice import Pair, Pick, choose
from ems.workflow.start.names import Named, find_language
from ems.workflow.start.search import PIVOT, nearest
from ems.workflow.start.write import experiment_text

UNITS = {"": 1, "k": 1000, "m": 1_000_000}
LEAST, MOST = 1000, 1_000_000_000  # sentence pairs of a budget


def read_budget(text: str) -> int:
    """Return the sentence pairs of "5M", "800k" or "250000". Raises `EmsError` for another text."""
    match = re.fullmatch(r"(\d{1,10}(?:\.\d{1,6})?)([km]?)", text.strip().lower(), re.ASCII)
    pairs = round(float(match[1]) * UNITS[match[2]]) if match else 0
    if not LEAST <= pairs <= MOST:
        raise EmsError(
            f"--budget {text[:40]}: expected sentence pairs from {LEAST:,} to {MOST:,}, like 800k "
            "or 5M"
        )
    return pairs


def read_languages(text: str) -> list[Named]:
    """Return the languages of "cy,uk,Polish", each once, English first.

    Raises `EmsError` for an unknown one and for fewer than two.
    """
    words = [word for word in text.split(",") if word.strip()]
    try:
        languages = list(dict.fromkeys(find_language(word) for word in words))
    except EmsError as error:
        raise EmsError(f"--languages: {error}") from None
    if len(languages) < 2:
        raise EmsError(f"--languages {text}: expected two or more, like en,cy,uk")
    return sorted(languages, key=lambda language: language.code != PIVOT)


def language_pairs(languages: list[Named]) -> list[Pair]:
    """Return the pairs with English if it is one of the languages, else all of them."""
    codes = [language.code for language in languages]
    if PIVOT in codes:
        return [(PIVOT, code) for code in codes if code != PIVOT]
    return list(combinations(codes, 2))


def make_experiment(languages: list[Named], budget: int, out: Path, command: str) -> str:
    """Write an experiment to `out`; return the reasons for its corpora, for the terminal.

    Raises `EmsError` for a name that no experiment can have, a file that is there already, and a
    language that OPUS has nothing of.
    """
    check_name("--out", out.stem)
    pairs = language_pairs(languages)
    picks = choose(pairs, budget)
    _check_covered(languages, picks)
    text = experiment_text(out.stem, languages, picks, command)
    if out.exists() and out.read_bytes() != text.encode():
        raise EmsError(f"--out {out}: another one is there; choose another name, or delete it")
    _check(out.stem, text)
    write_text(out, text)
    return _reasons(languages, pairs, picks, budget)


def _check_covered(languages: list[Named], picks: list[Pick]) -> None:
    """Raise `EmsError` for a language without any text, with the nearest that has some."""
    covered = {code for pick in picks if pick.most for code in pick.pair}
    for language in languages:
        if language.code not in covered:
            others = ", ".join(each.code for each in languages if each != language)
            raise EmsError(
                f"--languages: OPUS has no text of {language} with {others}, as of {opus_date()}"
                f"{nearest(language)}; leave it out, or bring text of your own (docs/languages.md)"
            )


def _check(name: str, text: str) -> None:
    """Raise `EmsError` if the pipeline would not take the experiment."""
    with tempfile.TemporaryDirectory() as folder:
        write_text(Path(folder) / f"{name}.yaml", text)
        site = load_site(Path("config.yaml"), {"experiment": name})
        check_corpora(load_experiment(name, site, Path(folder)))


def _reasons(languages: list[Named], pairs: list[Pair], picks: list[Pick], budget: int) -> str:
    """Return a table of the picks, pair by pair, and what a user may want to do about it."""
    names = {language.code: language.name for language in languages}
    lines = []
    for pair in pairs:
        own = [pick for pick in picks if pick.pair == pair]
        used = sum(pick.most for pick in own)
        lines += [f"{names[pair[0]]} and {names[pair[1]]}: {used:,} sentence pairs", ""]
        shown = [pick for pick in own if pick.most or (pick.offer.pairs or 0) * 100 > used]
        head = ("", "corpus", "version", "takes", "of", "MB", "why", "licence")
        lines += aligned([head, *map(_cells, shown)], "lllrrrll")
        if small := len(own) - len(shown):
            lines.append(f"-  {small} more, each with less than a hundredth, or not counted")
        lines.append("")
    taken = [pick for pick in picks if pick.most]
    total = sum(pick.most for pick in taken)
    megabytes = sum(pick.offer.kilobytes for pick in taken) / 1000
    lines.append(f"{total:,} sentence pairs, budget {budget:,}; {megabytes:,.0f} MB to fetch")
    if PIVOT not in names:
        lines.append("without English; most languages have more text with it (--languages en,...)")
    return "\n".join(lines) + "\n"


def _cells(pick: Pick) -> tuple[str, ...]:
    offer = pick.offer
    known = "?" if offer.pairs is None else f"{offer.pairs:,}"
    mark, size = ("+", f"{offer.kilobytes / 1000:,.1f}") if pick.most else ("-", "")
    place = (mark, offer.corpus, offer.version, f"{pick.most:,}" if pick.most else "")
    return (*place, known, size, pick.reason, licence_of(offer.corpus))
