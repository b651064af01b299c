"""The texts of use_static.py: FLORES-200, Tatoeba v1, a million lines of ten languages; the demo's.

The million has equally many lines of each of the TEN languages: all of Wikipedia and NTREX, 20,000
of Tatoeba, then the same ones again, each with one word changed to a word of a random place
in the text of its language (in Chinese and Japanese a character), so that frequent words stay as
frequent as they are. The lines are shuffled over the languages, which is hardest for a cache.
"""

import random
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

from measured import demo_lines
from pairs_made import SHARED

from ems.base.texts import read_lines
from ems.config.languages import load_languages, pair_name
from ems.corpora.moses import read_pairs

TEN = ("ar", "de", "en", "es", "fi", "fr", "ja", "ru", "tr", "zh")
TATOEBA = 20_000  # its lines in the million, of each language
DEMO = 300


def write_texts(folder: Path, names: Iterable[str], lines: int, demo: bool) -> None:
    """Write the texts with these names to <name>.txt, the million with `lines` lines."""
    texts = {"flores": _flores, "tatoeba": _tatoeba, "million": lambda: million(lines)}
    for name in names:
        text = changed([first for first, _ in demo_lines("de")], DEMO) if demo else texts[name]()
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in text), "utf-8")


def _flores() -> Iterator[str]:
    for language in load_languages().values():
        path = SHARED / f"flores200/flores200_dataset/devtest/{language.flores200}.devtest"
        if language.flores200 and path.is_file():
            yield from read_lines(path)


def _tatoeba() -> Iterator[str]:
    for path in sorted((SHARED / "tatoeba_v1").glob("tatoeba.*-eng.*")):
        yield from read_lines(path)


def million(lines: int) -> list[str]:
    """Return so many lines of the TEN languages."""
    texts = [changed(list(_of_language(code)), lines // len(TEN)) for code in TEN]
    mixed = [line for text in texts for line in text]
    random.Random(1).shuffle(mixed)
    return mixed


def _of_language(code: str) -> Iterator[str]:
    path = SHARED / f"wiki_mono/{code}.txt"
    yield from filter(None, read_lines(path) if path.is_file() else ())
    other = "de" if code == "en" else code
    pair = pair_name("en", other)
    side = pair.split("-").index(code)
    for corpus, most in (("NTREX", None), ("Tatoeba", TATOEBA)):
        for version in sorted((SHARED / "opus" / corpus).iterdir())[-1:]:
            pairs = read_pairs(version / f"moses/{pair}.txt.zip", corpus, pair)
            yield from (sides[side] for sides in islice(pairs, most))


def changed(lines: list[str], wanted: int) -> Iterator[str]:
    """Yield so many lines: these, then these again with one word changed, and so on."""
    spaced = sum(line.count(" ") for line in lines) > len(lines)
    joint, cut = (" ", str.split) if spaced else ("", list)
    drawn, words = random.Random(1), [word for line in lines for word in cut(line)]
    for at in islice(count(), wanted):
        line = lines[at % len(lines)]
        if at >= len(lines) and (own := cut(line)):
            own[drawn.randrange(len(own))] = words[drawn.randrange(len(words))]
            line = joint.join(own)
        yield line
