"""The languages of an evaluation set by its own codes, of those that an experiment chooses."""

from ems.base.errors import EmsError
from ems.config.languages import Language, load_languages
from ems.config.plugins import benchmark


def known_codes(name: str, every: bool, languages: dict[str, Language]) -> dict[str, str]:
    """Return language -> code in the set: the experiment's languages, or `every` one of the table.

    A language of the table that the experiment does not have gives way to one of its own with the
    same code.
    """
    known = {**load_languages(), **languages} if every else languages
    codes = {code: code_of(name, language) for code, language in known.items()}
    taken = {codes[code] for code in languages}
    return {
        code: of_set
        for code, of_set in codes.items()
        if of_set and (code in languages or of_set not in taken)
    }


def code_of(name: str, language: Language) -> str:
    """Return the code of a language in a set; '' if it is not there, as English in translations."""
    record = benchmark(name)
    if not isinstance(record.codes, str):
        return record.codes.get(language.iso1, "")
    return getattr(language, record.codes) if record.english or language.iso1 != "en" else ""


def by_code(name: str, chosen: list[str], codes: dict[str, str]) -> dict[str, str]:
    """Return code in the set -> language. Raises `EmsError` when two languages share a code."""
    languages: dict[str, str] = {}
    for language in chosen:
        other = languages.setdefault(codes[language], language)
        if other != language:
            raise EmsError(
                f"evalsets.{name}.languages: {other} and {language} are both {codes[language]} in "
                f"the benchmark; give one of them another code under `languages`, or name it in "
                f"evalsets.{name}.without"
            )
    return languages
