"""The demo's lexicon, frames and free sentences, and drawing new sentences from them.

A category is one TSV of `lexicon/`: a row is a word, a column a language. The head names the forms
that the column's cells list between slashes (`de:nom,acc,dat`, `mein Vater/meinen Vater/...`); the
last one of a cell serves for those that it lacks. The form `g` is the word's gender in that
language; a column `g` holds in all of them (people). `train.yaml` explains the notation of frames.

A sentence is taken only if its key is new in every language, so training cannot meet the benchmark
by chance. Only `Random.random()` is used, whose sequence Python guarantees.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

import regex

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.config.load import parse_yaml

T = TypeVar("T")

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es", "ru", "zh", "ja", "ar")
OTHERS = LANGUAGES[1:]
BENCHMARK_ONLY = ("it",)  # of no corpus, so that a system meets a language it was not trained on
GENDER, GENDERS = "g", ("m", "f", "n")
LARGEST_SHARE = 0.6  # of a template's combinations that may be drawn
NOISE = regex.compile(r"[^\p{L}\p{N}\p{M}]+")
SLOT = re.compile(
    r"\{(?P<slot>[a-z]+\d?)"
    r"(?:\.(?P<form>[a-z]+))?(?:@(?P<agree>[a-z]+\d?))?(?:\?(?P<choices>[^{}]*))?\}"
)


@dataclass(frozen=True)
class Category:
    """One kind of word: the rows of its table."""

    name: str
    rows: list[dict[str, str]]

    @property
    def size(self) -> int:
        return len(self.rows)

    def column(self, language: str, form: str | None = None) -> list[str]:
        """Return one form of every word, by default the first one that is no gender."""
        head = next(head for head in self.rows[0] if head.partition(":")[0] == language)
        forms = head.partition(":")[2].split(",")
        at = forms.index(form) if form else int(forms[0] == GENDER)
        cells = [row[head].split("/") for row in self.rows]
        return [cell[min(at, len(cell) - 1)] for cell in cells]

    def genders(self, language: str) -> list[str]:
        in_all = GENDER in self.rows[0]
        return self.column(GENDER) if in_all else self.column(language, GENDER)


@cache
def read_lexicon() -> dict[str, Category]:
    paths = sorted(HERE.glob("lexicon/*.tsv"))
    return {path.stem: Category(path.stem, read_table(path)) for path in paths}


@dataclass(frozen=True)
class DemoSentence:
    """One meaning in all its languages; `template` is None for a free sentence."""

    texts: dict[str, str]
    template: "Template | None" = None
    fillers: tuple[int, ...] = ()

    def pair(self, language: str) -> tuple[str, str]:
        return self.texts["en"], self.texts[language]


class Frame(NamedTuple):
    """A text with `{}` for each of its words: (slot, agree, table), where `table[j][k]` is the text
    for the k-th word of the slot and the j-th of the slot it agrees with, maybe itself.
    """

    text: str
    words: list[tuple[int, int, list[list[str]]]]


@dataclass(frozen=True)
class Template:
    """One meaning with slots, and its frame in each language that it has."""

    name: str
    heldout: bool
    slots: tuple[Category, ...]
    frames: dict[str, Frame]

    @property
    def space(self) -> int:
        return prod(slot.size for slot in self.slots)

    def random_fillers(self, random: Random) -> list[int]:
        """Return one of the combinations, drawn by a single number."""
        index, fillers = below(random, self.space), []
        for slot in self.slots:
            index, filler = divmod(index, slot.size)
            fillers.append(filler)
        return fillers

    def sentence(self, fillers: Sequence[int]) -> DemoSentence:
        """Return the sentence with these fillers, the first letter in upper case, after ¿ ¡ too."""
        texts = {}
        for language, frame in self.frames.items():
            words = (table[fillers[agree]][fillers[slot]] for slot, agree, table in frame.words)
            text = frame.text.format(*words)
            first = 0 if text[0].isalpha() else 1
            texts[language] = text[:first] + text[first].upper() + text[first + 1 :]
        return DemoSentence(texts, self, tuple(fillers))


def read_frames(path: Path, heldout: bool = True) -> dict[str, Template]:
    """Return the templates of a file of frames by name, in its order."""
    templates = {}
    for name, texts in parse_yaml(path.read_text("utf-8")).items():
        names = sorted({match["slot"] for match in SLOT.finditer(texts["en"])})
        slots = {name: read_lexicon()[name.rstrip("2")] for name in names}
        frames = {code: _frame(text, code, slots) for code, text in texts.items()}
        templates[name] = Template(name, heldout, tuple(slots.values()), frames)
    return templates


def _frame(text: str, language: str, slots: dict[str, Category]) -> Frame:
    names, words = list(slots), []
    for match in SLOT.finditer(text):
        name, agree, form = match["slot"], match["agree"] or match["slot"], match["form"]
        category = slots[name]
        if match["choices"]:
            by_gender = dict(zip(GENDERS, match["choices"].split("|"), strict=False))
            texts = [[by_gender[gender] for gender in category.genders(language)]] * category.size
        elif match["agree"]:
            prefix = f"{form}_" if form else ""
            genders = slots[agree].genders(language)
            texts = [category.column(language, prefix + gender) for gender in genders]
        else:
            texts = [category.column(language, form)] * category.size
        words.append((names.index(name), names.index(agree), texts))
    return Frame(SLOT.sub("{}", text), words)


def read_free() -> list[dict[str, str]]:
    return read_table(HERE / "free.tsv")


def key(text: str) -> str:
    """Return what decontamination compares: NFKC, lower case, only letters, digits and marks."""
    return NOISE.sub("", unicodedata.normalize("NFKC", text).lower())


class Drawer:
    """Draws sentences whose keys are all new, each combination at most once."""

    def __init__(self, random: Random) -> None:
        self.random, self.seen = random, set[str]()

    def admit(self, sentence: DemoSentence) -> bool:
        """True if the sentence is new in every language; it is remembered then."""
        keys = [key(text) for text in sentence.texts.values()]
        is_new = self.seen.isdisjoint(keys)
        if is_new:
            self.seen.update(keys)
        return is_new

    def find(
        self, template: Template, choose: Callable[[], Sequence[int]], tries: int
    ) -> DemoSentence | None:
        """Return the first new sentence, of different words, of the fillers that `choose` draws."""
        for _ in range(tries):
            fillers = choose()
            words = {(slot.name, at) for slot, at in zip(template.slots, fillers, strict=True)}
            if len(words) == len(fillers) and self.admit(new := template.sentence(fillers)):
                return new
        return None

    def new(
        self, template: Template, choose: Callable[[], Sequence[int]], tries: int = 1000
    ) -> DemoSentence:
        """Return what `find` does. Raises `EmsError` if it finds nothing."""
        if sentence := self.find(template, choose, tries):
            return sentence
        raise EmsError(f"template {template.name}: no unused sentence in {tries:,} tries")

    def draw_evenly(self, templates: Sequence[Template], total: int) -> list[DemoSentence]:
        """Draw `total` sentences, as equally many of each template as its space allows; shuffled."""
        capacities = [int(template.space * LARGEST_SHARE) for template in templates]
        drawn: list[DemoSentence] = []
        for template, count in zip(templates, quotas(capacities, total), strict=True):
            choose = partial(template.random_fillers, self.random)
            drawn += [self.new(template, choose, 50 * count) for _ in range(count)]
        return shuffled(drawn, self.random)

    def neighbour(self, sentence: DemoSentence) -> DemoSentence:
        """Return a new sentence of the same template with the filler of one slot exchanged."""
        template = sentence.template

        def exchanged() -> list[int]:
            fillers = list(sentence.fillers)
            slot = below(self.random, len(fillers))
            fillers[slot] = below(self.random, template.slots[slot].size)
            return fillers

        return self.new(template, exchanged)


def quotas(capacities: Sequence[int], total: int) -> list[int]:
    """Share `total` out equally, none beyond its capacity; the rest goes to larger ones."""
    shares = [0] * len(capacities)
    smallest_first = sorted(range(len(capacities)), key=capacities.__getitem__)
    for done, index in enumerate(smallest_first):
        shares[index] = min(capacities[index], total // (len(capacities) - done))
        total -= shares[index]
    if total:
        raise EmsError(f"the templates' spaces are too small: {total} sentences are missing")
    return shares


def below(random: Random, limit: int) -> int:
    return int(random.random() * limit)


def shuffled(items: Sequence[T], random: Random) -> list[T]:
    order = [random.random() for _ in items]
    return [items[index] for index in sorted(range(len(items)), key=order.__getitem__)]
