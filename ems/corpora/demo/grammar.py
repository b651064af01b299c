"""The demo's lexicon, frames and free sentences, and drawing new sentences from them.

A category is one TSV of `lexicon/`: a row is a word, a column a language. The head names the forms
that the column's cells list between slashes (`de:nom,acc,dat`, `mein Vater/meinen Vater/...`); a
cell with one form serves for all. The form `g` is the word's gender in that language; a column `g`
is a gender that holds in all of them (people). The notation of frames is explained in `train.yaml`;
`free.tsv` has a line per sentence. Some held-out frames, and the words in them, are in the
languages of BENCHMARK_ONLY too. That all of this is well-formed is a test's to say.

A sentence is taken only if its key is new in every language, so training cannot meet the benchmark
by chance. Only `Random.random()` is used, whose sequence Python guarantees.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from math import prod
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

import regex

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.config.yaml import parse_yaml

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


# --- words and frames


@dataclass(frozen=True)
class Category:
    """One kind of word; `columns[language, form][k]` is that form of its k-th word."""

    name: str
    size: int
    columns: dict[tuple[str, str], list[str]]

    def column(self, language: str, form: str | None = None) -> list[str]:
        """Return one form of every word, by default the first one that is no gender."""
        if form is None:
            forms = (form for code, form in self.columns if code == language)
            form = next(form for form in forms if form != GENDER)
        return self.columns[language, form]

    def genders(self, language: str) -> list[str]:
        """Return the gender of every word in `language`."""
        return self.columns.get(("", GENDER)) or self.columns[language, GENDER]


@cache
def read_lexicon() -> dict[str, Category]:
    """Return every category by name."""
    return {path.stem: _read_category(path) for path in sorted(HERE.glob("lexicon/*.tsv"))}


def _read_category(path: Path) -> Category:
    head, *rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    columns = {}
    for cell, words in zip(head, zip(*rows, strict=True), strict=True):
        language, _, names = ("", "", GENDER) if cell == GENDER else cell.partition(":")
        forms = names.split(",")
        table = zip(*(_forms(word, forms) for word in words), strict=True)
        columns |= {(language, form): list(of) for form, of in zip(forms, table, strict=True)}
    return Category(path.stem, len(rows), columns)


def _forms(word: str, names: list[str]) -> list[str]:
    """Return the forms of a word; one form, or a gender and one form, stands for all of them."""
    forms = word.split("/")
    given = 2 if GENDER in names and len(names) > 1 else 1
    if len(forms) == given:
        forms += forms[-1:] * (len(names) - given)
    return forms


class Piece(NamedTuple):
    """A piece of a frame: `texts[j][k]` for the k-th word of `slot` and the j-th of slot `agree`;
    without agreement j is 0.
    """

    slot: int
    texts: list[list[str]]
    agree: int | None = None


@dataclass(frozen=True)
class Sentence:
    """One meaning in all its languages; `template` is None for a free sentence."""

    texts: dict[str, str]
    template: "Template | None" = None
    fillers: tuple[int, ...] = ()

    def pair(self, language: str) -> tuple[str, str]:
        """Return it as (English, `language`)."""
        return self.texts["en"], self.texts[language]


@dataclass(frozen=True)
class Template:
    """One meaning with slots, and its frame in each language that it has."""

    name: str
    heldout: bool
    slots: tuple[Category, ...]
    frames: dict[str, tuple[str | Piece, ...]]

    @cached_property
    def space(self) -> int:
        """Number of combinations of fillers."""
        return prod(slot.size for slot in self.slots)

    def random_fillers(self, random: Random) -> list[int]:
        """Return one of the combinations, drawn by a single number."""
        index, fillers = below(random, self.space), []
        for slot in self.slots:
            index, filler = divmod(index, slot.size)
            fillers.append(filler)
        return fillers

    def distinct(self, fillers: Sequence[int]) -> bool:
        """True if no word fills two slots."""
        named = {(slot.name, filler) for slot, filler in zip(self.slots, fillers, strict=True)}
        return len(named) == len(fillers)

    def sentence(self, fillers: Sequence[int]) -> Sentence:
        """Return the sentence with these fillers, in all its languages."""
        texts = {language: self._render(language, fillers) for language in self.frames}
        return Sentence(texts, self, tuple(fillers))

    def _render(self, language: str, fillers: Sequence[int]) -> str:
        """Return the text, its first letter in upper case, after an opening mark too (¿ ¡)."""
        text = ""
        for piece in self.frames[language]:
            if isinstance(piece, str):
                text += piece
            else:
                agreed = 0 if piece.agree is None else fillers[piece.agree]
                text += piece.texts[agreed][fillers[piece.slot]]
        first = 0 if text[0].isalpha() else 1
        return text[:first] + text[first].upper() + text[first + 1 :]


def read_frames(path: Path, heldout: bool = True) -> dict[str, Template]:
    """Return the templates of a file of frames by name, in its order."""
    frames: dict[str, dict[str, str]] = parse_yaml(path.read_text("utf-8"))
    return {name: _template(name, heldout, texts) for name, texts in frames.items()}


def _template(name: str, heldout: bool, texts: dict[str, str]) -> Template:
    names = sorted({match["slot"] for match in SLOT.finditer(texts["en"])})
    slots = tuple(read_lexicon()[name.rstrip("2")] for name in names)
    by_name = dict(zip(names, slots, strict=True))
    frames = {code: tuple(_pieces(text, code, by_name)) for code, text in texts.items()}
    return Template(name, heldout, slots, frames)


def _pieces(text: str, language: str, slots: dict[str, Category]) -> Iterator[str | Piece]:
    end = 0
    for match in SLOT.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        yield _piece(match, language, slots)
        end = match.end()
    if text[end:]:
        yield text[end:]


def _piece(match: re.Match[str], language: str, slots: dict[str, Category]) -> Piece:
    category, names = slots[match["slot"]], list(slots)
    slot = names.index(match["slot"])
    if match["choices"] is not None:
        by_gender = dict(zip(GENDERS, match["choices"].split("|"), strict=False))
        return Piece(slot, [[by_gender[gender] for gender in category.genders(language)]])
    if match["agree"] is None:
        return Piece(slot, [category.column(language, match["form"])])
    prefix = f"{match['form']}_" if match["form"] else ""
    genders = slots[match["agree"]].genders(language)
    texts = [category.column(language, prefix + gender) for gender in genders]
    return Piece(slot, texts, names.index(match["agree"]))


def read_free() -> list[dict[str, str]]:
    """Return the free sentences as {language: sentence}."""
    return read_table(HERE / "free.tsv")


# --- drawing


def key(text: str) -> str:
    """Return what decontamination compares: NFKC, lower case, only letters, digits and marks."""
    return NOISE.sub("", unicodedata.normalize("NFKC", text).lower())


class Drawer:
    """Draws sentences whose keys are all new, each combination at most once."""

    def __init__(self, random: Random) -> None:
        self.random, self.seen = random, set[str]()

    def admit(self, sentence: Sentence) -> bool:
        """True if the sentence is new in every language; it is remembered then."""
        keys = [key(text) for text in sentence.texts.values()]
        if not self.seen.isdisjoint(keys):
            return False
        self.seen.update(keys)
        return True

    def find(
        self, template: Template, choose: Callable[[], Sequence[int]], tries: int
    ) -> Sentence | None:
        """Return the first new sentence among those of the fillers that `choose` draws."""
        for _ in range(tries):
            fillers = choose()
            if template.distinct(fillers) and self.admit(new := template.sentence(fillers)):
                return new
        return None

    def new(
        self, template: Template, choose: Callable[[], Sequence[int]], tries: int = 1000
    ) -> Sentence:
        """Return what `find` does. Raises `EmsError` if it finds nothing."""
        if sentence := self.find(template, choose, tries):
            return sentence
        raise EmsError(f"template {template.name}: no unused sentence in {tries:,} tries")

    def draw_evenly(self, templates: Sequence[Template], total: int) -> list[Sentence]:
        """Draw `total` sentences, equally many of each template as far as its space allows;
        shuffled.
        """
        capacities = [int(template.space * LARGEST_SHARE) for template in templates]
        drawn: list[Sentence] = []
        for template, count in zip(templates, quotas(capacities, total), strict=True):
            choose = partial(template.random_fillers, self.random)
            drawn += [self.new(template, choose, 50 * count) for _ in range(count)]
        return shuffled(drawn, self.random)

    def neighbour(self, sentence: Sentence) -> Sentence:
        """Return a new sentence of the same template with the filler of one slot exchanged."""
        template = sentence.template
        if template is None:
            raise EmsError("a free sentence has no neighbour; take one that a template made")

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
    """Return a random number of 0 ... limit - 1."""
    return int(random.random() * limit)


def shuffled(items: Sequence[T], random: Random) -> list[T]:
    """Return the items in random order."""
    order = [random.random() for _ in items]
    return [items[index] for index in sorted(range(len(items)), key=order.__getitem__)]
