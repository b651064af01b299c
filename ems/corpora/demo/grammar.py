"""Read the demo's lexicon, frames and free sentences, and draw new sentences from them.

A category is one TSV in `lexicon/` with a row per word and a column per language. The column head
names the forms that the cells list between slashes (`de:nom,acc,dat`, `mein Vater/meinen
Vater/...`); the last form of a cell stands for any missing ones. The form `g` is the word's gender
in that language; a column `g` holds for all languages (people). `train.yaml` explains frames.

A sentence is accepted only if its key is new in every language, so that training cannot contain the
benchmark by chance. Only `Random.random()` is used, because Python guarantees its sequence.
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
from ems.corpora.split import shares

T = TypeVar("T")
Choice = Callable[[], Sequence[int]]  # returns the index of a word for each slot

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es", "ru", "zh", "ja", "ar")
OTHERS = LANGUAGES[1:]
BENCHMARK_ONLY = ("it",)  # in no corpus, to evaluate a language without training data
GENDER, GENDERS = "g", ("m", "f", "n")
LARGEST_SHARE = 0.6  # of a template's combinations, which may be drawn
NOISE = regex.compile(r"[^\p{L}\p{N}\p{M}]+")
SLOT = re.compile(
    r"\{(?P<slot>[a-z]+\d?)"
    r"(?:\.(?P<form>[a-z]+))?(?:@(?P<agree>[a-z]+\d?))?(?:\?(?P<choices>[^{}]*))?\}"
)


@dataclass(frozen=True)
class Category:
    name: str
    rows: list[dict[str, str]]

    @property
    def size(self) -> int:
        return len(self.rows)

    def column(self, language: str, form: str | None = None) -> list[str]:
        """Return one form of every word; default: the first form except the gender."""
        head = next(head for head in self.rows[0] if head.partition(":")[0] == language)
        forms = head.partition(":")[2].split(",")
        index = forms.index(form) if form else int(forms[0] == GENDER)
        cells = [row[head].split("/") for row in self.rows]
        return [cell[min(index, len(cell) - 1)] for cell in cells]

    def genders(self, language: str) -> list[str]:
        return self.column(GENDER) if GENDER in self.rows[0] else self.column(language, GENDER)


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
    """Text with a `{}` for each of `words`, (slot, agree, table): `table[j][k]` is the text of word
    k of `slot` with word j of `agree`, the slot (perhaps the same) with which it agrees.
    """

    text: str
    words: list[tuple[int, int, list[list[str]]]]


@dataclass(frozen=True)
class Template:
    name: str
    heldout: bool
    slots: tuple[Category, ...]
    frames: dict[str, Frame]

    @property
    def space(self) -> int:
        return prod(slot.size for slot in self.slots)

    def random_fillers(self, random: Random) -> list[int]:
        """Draw a word index for each slot; uses one random number."""
        index, fillers = below(random, self.space), []
        for slot in self.slots:
            index, filler = divmod(index, slot.size)
            fillers.append(filler)
        return fillers

    def sentence(self, fillers: Sequence[int]) -> DemoSentence:
        """Fill the slots and capitalise the first letter, also after ¿ and ¡."""
        texts = {}
        for language, frame in self.frames.items():
            words = (table[fillers[agree]][fillers[slot]] for slot, agree, table in frame.words)
            text = frame.text.format(*words)
            first = 0 if text[0].isalpha() else 1
            texts[language] = text[:first] + text[first].upper() + text[first + 1 :]
        return DemoSentence(texts, self, tuple(fillers))


def read_frames(path: Path, heldout: bool = True) -> dict[str, Template]:
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
    """Return a sentence's key for decontamination: NFKC, lower case, letters, digits and marks."""
    return NOISE.sub("", unicodedata.normalize("NFKC", text).lower())


class Drawer:
    """Draws sentences with new keys; each combination of words is drawn at most once."""

    def __init__(self, random: Random) -> None:
        self.random, self.seen = random, set[str]()

    def admit(self, sentence: DemoSentence) -> bool:
        """Return True and remember the sentence if it is new in every language."""
        keys = [key(text) for text in sentence.texts.values()]
        if is_new := self.seen.isdisjoint(keys):
            self.seen.update(keys)
        return is_new

    def find(self, template: Template, choose: Choice, tries: int) -> DemoSentence | None:
        """Return the first new sentence with distinct words among the fillers from `choose`."""
        for _ in range(tries):
            fillers = choose()
            words = {(slot.name, word) for slot, word in zip(template.slots, fillers, strict=True)}
            if len(words) == len(fillers) and self.admit(new := template.sentence(fillers)):
                return new
        return None

    def new(self, template: Template, choose: Choice, tries: int = 1000) -> DemoSentence:
        """Call `find`. Raises `EmsError` if it returns None."""
        if sentence := self.find(template, choose, tries):
            return sentence
        raise EmsError(f"template {template.name}: no unused sentence in {tries:,} tries")

    def draw_evenly(self, templates: Sequence[Template], total: int) -> list[DemoSentence]:
        """Draw `total` sentences in random order, shared evenly among the templates."""
        counts = shares([int(each.space * LARGEST_SHARE) for each in templates], total)
        if missing := total - sum(counts):
            raise EmsError(f"the templates' spaces are too small: {missing} sentences are missing")
        drawn: list[DemoSentence] = []
        for template, count in zip(templates, counts, strict=True):
            choose = partial(template.random_fillers, self.random)
            drawn += [self.new(template, choose, 50 * count) for _ in range(count)]
        return shuffled(drawn, self.random)

    def neighbour(self, sentence: DemoSentence) -> DemoSentence:
        """Return a new sentence of the same template with one slot changed."""
        template = sentence.template

        def exchanged() -> list[int]:
            fillers = list(sentence.fillers)
            slot = below(self.random, len(fillers))
            fillers[slot] = below(self.random, template.slots[slot].size)
            return fillers

        return self.new(template, exchanged)


def below(random: Random, limit: int) -> int:
    return int(random.random() * limit)


def shuffled(items: Sequence[T], random: Random) -> list[T]:
    order = [random.random() for _ in items]
    return [items[index] for index in sorted(range(len(items)), key=order.__getitem__)]
