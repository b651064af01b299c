"""The languages of an evaluation set by its own codes, of those that an experiment chooses."""

from ems.config.experiment import UNSEEN
from ems.errors import EmsError
from ems.languages import Language, load_languages, load_tatoeba_codes


def _same(codes: str) -> dict[str, str]:
    return {code: code for code in codes.split()}


REUTERS = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "ja": "japanese",
    "ru": "russian",
    "zh": "chinese",
}
# set -> its languages by our codes -> by its own. Those with English on one side do not name it.
OF_SET: dict[str, dict[str, str]] = {
    "bucc2018": _same("de fr ru zh"),
    "xnli": _same("ar bg de el en es fr hi ru sw th tr ur vi zh"),
    "pawsx": _same("de en es fr ja ko zh"),
    "xsimpp": {"en": "eng_Latn"},
    "cls": _same("de en fr") | {"ja": "jp"},
    "marc": _same("de en es fr ja zh"),
    "mldoc": REUTERS,
    "rcv2": REUTERS,
    "counterfactual": {"en": "EN", "de": "DE", "ja": "JP"},
    "paracrawl": _same("bg cs da de el es et fi fr hr hu it lt lv nl pl pt ro sk sl sv"),  # Table X
    "europarlxsr": _same("de es fr it"),  # Lightweight, Table 4
}


def known_codes(name: str, every: bool, languages: dict[str, Language]) -> dict[str, str]:
    """Language -> its code in the set, of those that it has: the experiment's, or `every` one.

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
    """The code of a language in a set; '' if it is not there, as English in translations."""
    if name in OF_SET:
        return OF_SET[name].get(language.iso1, "")
    if name in ("tatoeba", "ntrex") and language.iso1 == "en":
        return ""
    codes = {"tatoeba": language.tatoeba_v1, "ntrex": language.iso1}
    return codes.get(name, language.flores200)  # SIB-200 uses FLORES-200's


def by_code(name: str, chosen: list[str], codes: dict[str, str]) -> dict[str, str]:
    """Code in the set -> language. Raises `EmsError` when two languages have the same code."""
    found: dict[str, str] = {}
    for language in chosen:
        other = found.setdefault(codes[language], language)
        if other != language:
            raise EmsError(
                f"evalsets.{name}.languages: {other} and {language} are both {codes[language]} in "
                f"the benchmark; give one of them another code under `languages`, or name it in "
                f"evalsets.{name}.without"
            )
    return found


def unseen(name: str, every: bool, codes: dict[str, str]) -> dict[str, str]:
    """The languages of Tatoeba that are not among `codes`, when every one of it is chosen."""
    if name != "tatoeba" or not every:
        return {}
    return {code: UNSEEN for code in load_tatoeba_codes() if code not in codes.values()}
