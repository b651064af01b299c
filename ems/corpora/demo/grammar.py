"""The demo corpus' lexicon and frames: reading them, and turning slot fillers into sentences.

A category is one TSV of `lexicon/`: a row is a word, a column a language. The head names the forms
that the column's cells list between slashes (`de:nom,acc,dat`, `mein Vater/meinen Vater/...`); a
cell with one form serves for all. The form `g` is the word's gender in that language; a column `g`
is a gender that holds in all of them (people). The notation of frames is explained in `train.yaml`.

Some held-out frames, and the words in them, are in the languages of BENCHMARK_ONLY too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

import yaml

from ems.base.errors import EmsError

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es", "ru", "zh", "ja", "ar")
BENCHMARK_ONLY = ("it",)  # of no corpus, so that a system meets a language it was not trained on
GENDER = "g"
GENDERS = ("m", "f", "n")
SLOT = re.compile(
    r"\{(?P<slot>[a-z]+\d?)"
    r"(?:\.(?P<form>[a-z]+))?(?:@(?P<agree>[a-z]+\d?))?(?:\?(?P<choices>[^{}]*))?\}"
)


@dataclass(frozen=True)
class Category:
    """One kind of word; `columns[language, form][k]` is that form of its k-th word."""

    name: str
    size: int
    columns: dict[tuple[str, str], list[str]]
    default: dict[str, str]  # language -> the form of `{slot}` without a form

    def column(self, language: str, form: str | None) -> list[str]:
        """Return one form of every word. Raises `KeyError` for a form that the head lacks."""
        return self.columns[language, self.default[language] if form is None else form]

    def genders(self, language: str) -> list[str]:
        """Return the gender of every word in `language`. Raises `KeyError` if it has none."""
        common = self.columns.get(("", GENDER))
        return common if common is not None else self.columns[language, GENDER]


@dataclass(frozen=True)
class Part:
    """A piece of a frame: `texts[j][k]` for the k-th word of `slot` and the j-th of slot `agree`.

    Without agreement j is 0.
    """

    slot: int
    texts: list[list[str]]
    agree: int | None = None

    def text(self, fillers: tuple[int, ...]) -> str:
        """Return the piece for these fillers (one word number per slot)."""
        agreed = 0 if self.agree is None else fillers[self.agree]
        return self.texts[agreed][fillers[self.slot]]


@dataclass(frozen=True)
class Template:
    """One meaning with slots, and its frame in each language that it has."""

    name: str
    heldout: bool
    slots: tuple[Category, ...]
    frames: dict[str, tuple[str | Part, ...]]

    @cached_property
    def space(self) -> int:
        """Number of combinations of fillers."""
        return prod(slot.size for slot in self.slots)

    def fillers(self, index: int) -> tuple[int, ...] | None:
        """Return combination `index` of `space`; None if one word would fill two slots."""
        chosen = []
        for slot in self.slots:
            index, filler = divmod(index, slot.size)
            chosen.append(filler)
        return tuple(chosen) if self.distinct(chosen) else None

    def distinct(self, fillers: Sequence[int]) -> bool:
        """True if no word fills two slots."""
        named = {(slot.name, filler) for slot, filler in zip(self.slots, fillers, strict=True)}
        return len(named) == len(fillers)

    def render(self, language: str, fillers: tuple[int, ...]) -> str:
        """Return the sentence, its first letter in upper case, after an opening mark too (¿ ¡)."""
        parts = self.frames[language]
        sentence = "".join(p if isinstance(p, str) else p.text(fillers) for p in parts)
        first = 0 if sentence[0].isalpha() else 1
        return sentence[:first] + sentence[first].upper() + sentence[first + 1 :]


def read_lexicon(folder: Path = HERE / "lexicon") -> dict[str, Category]:
    """Read every category of `folder`, by name."""
    return {path.stem: read_category(path) for path in sorted(folder.glob("*.tsv"))}


def read_category(path: Path) -> Category:
    """Read one category. Raises `EmsError` for a cell with a wrong number of forms."""
    head, *rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    fields = [_head_cell(cell) for cell in head]
    columns: dict[tuple[str, str], list[str]] = {
        (language, form): [] for language, forms in fields for form in forms
    }
    for number, row in enumerate(rows, start=2):
        if len(row) != len(head):
            raise EmsError(f"{path}, line {number}: expected {len(head)} cells, found {len(row)}")
        for (language, forms), cell in zip(fields, row, strict=True):
            for form, text in zip(forms, _forms(cell, forms, path, number), strict=True):
                columns[language, form].append(text)
    default = {
        language: next(form for form in forms if form != GENDER)
        for language, forms in fields
        if language
    }
    return Category(path.stem, len(rows), columns, default)


def _head_cell(cell: str) -> tuple[str, list[str]]:
    """`de:nom,acc` -> ("de", ["nom", "acc"]); `ja` -> ("ja", [""]); `g` -> ("", ["g"])."""
    if cell == GENDER:
        return "", [GENDER]
    language, _, forms = cell.partition(":")
    return language, forms.split(",")


def _forms(cell: str, names: list[str], path: Path, number: int) -> list[str]:
    forms = cell.split("/")
    if GENDER in names and len(names) > 1 and len(forms) == 2:
        forms = [forms[0], *forms[1:] * (len(names) - 1)]
    elif len(forms) == 1:
        forms = forms * len(names)
    if len(forms) != len(names) or not all(forms):
        raise EmsError(
            f"{path}, line {number}: expected the forms {', '.join(names)}, found {cell!r}"
        )
    return forms


def read_templates(lexicon: dict[str, Category]) -> list[Template]:
    """Read the training templates, then the held-out ones."""
    files = {"train.yaml": False, "heldout.yaml": True}
    return [
        t for name, heldout in files.items() for t in read_frames(HERE / name, heldout, lexicon)
    ]


def read_frames(
    path: Path,
    heldout: bool,
    lexicon: dict[str, Category],
    languages: Sequence[str] = LANGUAGES,
) -> list[Template]:
    """Read the templates of one file of frames in these languages."""
    frames = yaml.safe_load(path.read_text("utf-8"))
    return [
        compile_template(name, heldout, texts, lexicon, languages) for name, texts in frames.items()
    ]


def compile_template(
    name: str,
    heldout: bool,
    texts: dict[str, str],
    lexicon: dict[str, Category],
    languages: Sequence[str] = LANGUAGES,
) -> Template:
    """Turn one entry of a frame file into a `Template`.

    Raises `EmsError` if one of `languages` lacks a frame or a slot, or a frame names an unknown form.
    """
    if [code for code in texts if code not in BENCHMARK_ONLY] != list(languages):
        raise EmsError(
            f"template {name}: expected {', '.join(languages)}, found {', '.join(texts)}"
        )
    slots = sorted({match["slot"] for match in SLOT.finditer(texts["en"])})
    try:
        categories = tuple(lexicon[slot.rstrip("2")] for slot in slots)
        frames = {
            language: _compile(texts[language], slots, categories, language) for language in texts
        }
    except (KeyError, ValueError) as error:
        raise EmsError(f"template {name}: no such slot or form: {error}") from None
    for language, parts in frames.items():
        shown = {part.slot for part in parts if not isinstance(part, str)}
        if len(shown) != len(slots) or any("{" in p for p in parts if isinstance(p, str)):
            raise EmsError(
                f"template {name}, {language}: slots {slots} do not all appear, or a typo"
            )
    return Template(name, heldout, categories, frames)


def _compile(
    text: str, slots: list[str], categories: tuple[Category, ...], language: str
) -> tuple[str | Part, ...]:
    parts: list[str | Part] = []
    end = 0
    for match in SLOT.finditer(text):
        parts += [text[end : match.start()], _part(match, slots, categories, language)]
        end = match.end()
    return tuple(part for part in [*parts, text[end:]] if part)


def _part(
    match: re.Match[str], slots: list[str], categories: tuple[Category, ...], language: str
) -> Part:
    slot = slots.index(match["slot"])
    category = categories[slot]
    if match["choices"] is not None:
        by_gender = dict(zip(GENDERS, match["choices"].split("|"), strict=False))
        return Part(slot, [[by_gender[gender] for gender in category.genders(language)]])
    if match["agree"] is None:
        return Part(slot, [category.column(language, match["form"])])
    agree = slots.index(match["agree"])
    prefix = f"{match['form']}_" if match["form"] else ""
    genders = categories[agree].genders(language)
    return Part(slot, [category.column(language, prefix + gender) for gender in genders], agree)
