"""The key `primary`: letters and numbers at the primary strength of Unicode's collation (UCA).

In this order:

1. Entities are undone, escaped once or more, also as tokenisers write them (`&amp; apos ;`).
2. Code points that are ignorable by default are removed (joiners, variation selectors, fillers).
3. NFKC; a raised digit or fraction after a digit becomes a separate number (10², 1½). A tone of
   Thai or Lao goes before the sign for -am, as in the usual order of typing.
4. Case is folded. Marks go (accents, stress, harakat, niqqud, nukta), with tatweel and modifier
   letters that stand for apostrophes. `FOLDED` has letters that do not decompose, by the default
   table of the UCA or, in Turkish, Arabic, Thai and Lao, by usage. Vowel signs, virama and й stay,
   and unlike in the UCA also voiced and small kana and the tones of Thai and Lao.
5. Digits of all scripts become ASCII. Numbers stay apart: of what stood between two digits a point,
   slash or space remains, and a minus before a number. Groups of three digits are joined (1,000).
6. Everything else is removed, spaces included.

Most lines need only a table; steps 1-3 are for lines with code points that depend on neighbours.
"""

import re
import unicodedata
from functools import cache, partial
from html import unescape
from html.entities import html5

import numpy as np

_NAME, _NUMBER = "amp|lt|gt|quot|apos|nbsp", r"# ?\d{1,7}|# ?x[0-9a-f]{1,6}"
# Moses and others split its escapes with spaces, and some text has lost the semicolons
_ENTITY = re.compile(
    rf"&(?: ?amp ?;)*(?: ?({_NAME}|{_NUMBER}) ?;|(\w+);|({_NUMBER}|(?:{_NAME})\b))", re.I
)
# also 1,00,000 as in India
_GROUPS = re.compile(r"(?<![\d. ])[1-9]\d{0,2}([. ])(?:\d\d\1)*\d{3}(?:\1\d{3})*(?!\d)")
_TONES = re.compile("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb])")  # typed inside of ำ, ຳ
FOLDED = str.maketrans("ðđħıłøךםןףץٱکیىہۃەँ", "ddhiloכמנפצاكييهةهं") | str.maketrans(
    {
        **{"æ": "ae", "œ": "oe", "װ": "וו", "ױ": "וי", "ײ": "יי", "แ": "เเ", "ແ": "ເເ"},
        **{"ൺ": "ണ്", "ൻ": "ന്", "ർ": "ര്", "ൽ": "ല്", "ൾ": "ള്", "ൿ": "ക്", "ৎ": "ত্"},  # Unicode 5.1
        **{chr(code): chr(code - 0x60) for code in range(0x30A1, 0x30F7)},  # katakana
        **{chr(code): chr(code - 0x1C30) for code in range(0x2D00, 0x2D2E)},  # Georgian capitals
        **dict.fromkeys([*range(0x2B9, 0x300), *map(ord, "ـꞋꞌߴߵ")], ""),
    }
)
_BETWEEN = str.maketrans(".,．，·٫٬/／⁄∕", ".......////")
_MINUS = frozenset(map(ord, "-－﹣−–‐‑"))
LF, SPACE, SEVERAL = ord("\n"), ord(" "), 0x110000


def primary_keys(texts: list[str]) -> list[str]:
    """Return the primary key of each text; "" for text without letters and digits."""
    keys, odd = _keys(texts)
    if odd:
        normalised = _normalised([texts[at] for at in odd])
        for at, key in zip(odd, _keys(normalised)[0], strict=True):
            keys[at] = key
    joined = partial(_GROUPS.sub, lambda number: number[0].replace(number[1], ""))
    return [joined(key) if "." in key or " " in key else key for key in keys]


def _normalised(texts: list[str]) -> list[str]:
    """Undo entities, and return NFKC without ignorable code points."""
    ignorable, raised = _properties()
    lines = (_without_entities(text) if "&" in text or "＆" in text else text for text in texts)
    block = raised.sub(r" \g<0>", ignorable.sub("", "\n".join(lines)))
    return _TONES.sub(r"\2\1", unicodedata.normalize("NFKC", block)).split("\n")


def _without_entities(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)  # ＆
    for _ in range(4):
        text = _ENTITY.sub(_unescaped, text)
    return text.replace("\n", " ")


def _unescaped(entity: re.Match[str]) -> str:
    name = next(filter(None, entity.groups())).replace(" ", "")
    names = [each for each in (name, name.lower()) if each[0] == "#" or f"{each};" in html5]
    return unescape(f"&{names[0]};") if names else entity[0]


def _keys(texts: list[str]) -> tuple[list[str], list[int]]:
    """Return the key of each text, and the places of texts to normalise before."""
    block = "".join([f"\n{text}" for text in texts])
    codes = np.frombuffer(block.encode("utf-32-le", "surrogatepass"), np.uint32)
    table, odd, several = _letters()
    new = table[codes]
    kept = np.flatnonzero(new > 0)
    new = np.insert(new[kept], *_signs(codes, new[kept], kept))
    both = np.flatnonzero(new >= SEVERAL)
    first, second = several[new[both] - SEVERAL].T
    new[both] = first
    new = np.insert(new, both + 1, second)
    keys = new.tobytes().decode("utf-32-le", "surrogatepass").split("\n")[1:]
    lines = np.logical_or.reduceat(odd[codes], np.flatnonzero(codes == LF)) if texts else odd[:0]
    return keys, np.flatnonzero(lines).tolist()


def _signs(codes: np.ndarray, new: np.ndarray, kept: np.ndarray) -> tuple[list[int], list[int]]:
    """Return the places in `new`, made of codes[kept], where a sign goes before a digit."""
    signs = {}
    digits = np.flatnonzero((new >= ord("0")) & (new <= ord("9")))
    for at in digits[kept[digits] - kept[digits - 1] > 1].tolist():
        between = codes[kept[at - 1] + 1 : kept[at]].tolist()
        alone = len(between) == 1
        if between[-1] in _MINUS and (new[at - 1] == LF if alone else between[-2] not in _MINUS):
            signs[at] = ord("-")
        elif ord("0") <= new[at - 1] <= ord("9"):
            signs[at] = _BETWEEN.get(between[0], SPACE) if alone else SPACE
    return list(signs), list(signs.values())


@cache
def _properties() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of ignorable code points, and of numerals that NFKC would join to digits."""
    import regex  # not at the top: using a model must not require it

    return regex.compile(r"\p{Default_Ignorable_Code_Point}"), regex.compile(r"\p{No}")


@cache
def _letters() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return tables of all code points, [0x110000]: what each becomes, uint32 (0: nothing;
    SEVERAL + n: row n of the third table, uint32[n, 2]), and whether its text is to be normalised.
    """
    table, odd, several = np.zeros(0x110000, "<u4"), np.zeros(0x110000, bool), []
    every = "".join(map(chr, range(0x110000)))
    table[LF] = LF
    for letter in every[:0x40000]:  # above there is none
        letters = _primary(letter)
        if len(letters) == 1:
            table[ord(letter)] = ord(letters)
        elif letters:
            table[ord(letter)] = SEVERAL + len(several)
            several.append([ord(letters[0]), ord(letters[1])])
        odd[ord(letter)] = bool(letters) and _depends(letters)
    for pattern in _properties():
        odd[list(map(ord, pattern.findall(every)))] = True
    composed = [pair.split() for pair in map(unicodedata.decomposition, every[:0x40000]) if pair]
    seconds = {int(pair[1], 16) for pair in composed if len(pair) == 2 and pair[0][0] != "<"}
    odd[[code for code in seconds if table[code]]] = True
    odd[list(map(ord, "&＆\u0306"))] = True
    return table, odd, np.array(several, "<u4")


def _depends(letters: str) -> bool:
    """Return whether a code point that becomes these letters is to be seen with its neighbours."""
    first, place = letters[0], unicodedata.combining(letters[0])
    some = len(letters) > 2 or (len(letters) == 2 and any(map(str.isdigit, letters)))
    return some or place not in (0, 9) or "\u1100" <= first <= "\u11ff"  # 9: virama; jamo


def _primary(letter: str) -> str:
    """Return what the key keeps of a code point."""
    if letter.isdigit():
        return str(unicodedata.digit(letter))
    if unicodedata.category(letter) in ("Cn", "Lo") and not unicodedata.decomposition(letter):
        return letter.translate(FOLDED) if letter.isalnum() else ""
    letters = letter if letter in "йЙ" else unicodedata.normalize("NFKD", letter)
    letters = "".join(each for each in letters if each.isalnum() or _is_own(each))
    return unicodedata.normalize("NFC", letters.casefold().translate(FOLDED))


def _is_own(mark: str) -> bool:
    """Return whether a mark makes another letter or word, unlike an accent."""
    place = unicodedata.combining(mark)  # 10 to 36: Hebrew and Arabic; from 200: accents
    if unicodedata.category(mark) not in ("Mn", "Mc") or place == 1 or 10 <= place <= 36:
        return False
    return place < 200 and "NUKTA" not in unicodedata.name(mark, "")
