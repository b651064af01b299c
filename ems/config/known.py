"""What the entries of an experiment file name, and the checks of languages and parts that corpora
and evaluation sets share.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ems.base.errors import EmsError
from ems.config.corpus_entries import CorpusEntry, Split
from ems.config.evalsets import EvalsetEntry
from ems.config.languages import Language, load_languages


@dataclass(frozen=True)
class Known:
    """What the entries of a file name: its languages, where data come from, divided corpora."""

    languages: dict[str, Language]
    sources: dict[str, str]
    splits: dict[str, Split]


def check_languages(key: str, codes: Iterable[str], known: Collection[str]) -> None:
    for code in sorted(codes):
        if code not in known:
            raise EmsError(
                f"{key}: unknown language {code!r}; allowed: {', '.join(known)} "
                "(a language of your own is an entry `{code: xx, tatoeba_v1: xxx}`)"
            )


def with_table(languages: Iterable[str]) -> list[str]:
    """Return the languages of the table, then these, each once."""
    return list(dict.fromkeys([*load_languages(), *languages]))


def chosen_languages(
    key: str, entry: CorpusEntry | EvalsetEntry, every: list[str], known: Collection[str]
) -> list[str]:
    """`languages` of an entry (`every` if absent, or a word for all), less its `without`."""
    codes = entry.languages if isinstance(entry.languages, list) else every
    check_languages(f"{key}.languages", codes, known)
    check_languages(f"{key}.without", entry.without, with_table(known))
    return [code for code in codes if code not in entry.without]


def check_left(
    key: str, entry: CorpusEntry | EvalsetEntry, chosen: Collection[str], otherwise: str
) -> None:
    """Raise `EmsError` when no language is chosen, because of `without` or `otherwise`."""
    if not chosen and entry.without:
        names = ", ".join(entry.without)
        raise EmsError(f"{key}.without: no language is left without {names}; take one out of it")
    if not chosen:
        raise EmsError(f"{key}.languages: {otherwise}")


def check_part(key: str, corpus: str, part: str, splits: dict[str, Split]) -> None:
    """Raise `EmsError` for a part that no split makes, and for a whole beside its own parts."""
    if part and corpus not in splits:
        raise EmsError(f"{key}: {part}, but splits does not say how {corpus} is divided")
    if part and part not in splits[corpus].names:
        allowed = ", ".join(splits[corpus].names)
        where = f"splits.{corpus}" + ("" if splits[corpus].first else ".parts")
        raise EmsError(f"{key}: found {part!r}; allowed values: {allowed} ({where})")
    if not part and corpus in splits:
        raise EmsError(f"{key}: this key is missing; {corpus} is divided by splits.{corpus}")
