"""Undo entities, escaped once or more, and drop left-over tags (`Q&amp;amp;A<br>` -> `Q&A`)."""

import re
from html import unescape
from html.entities import html5

from ems.text.repairs.base import Repair

_NUMBER = r"#\s?\d{2,7}|#\s?[xX][0-9a-fA-F]{2,6}"
_ENTITY = re.compile(
    rf"&(?:\s?amp\s?;)*(?:\s?({_NUMBER}|(?:amp|lt|gt|quot|apos|nbsp)(?=\s?;))\s?;|(\w+);|"
    rf"({_NUMBER}|(?:quot|apos|nbsp)\b))"
)
_TAGS = "a b i u p s q em strong br span font div sub sup small big tt code ul ol li td tr th table hr"
_TAGS += " img center blockquote cite h1 h2 h3 h4 h5 h6 seg doc hl strike pre label"
_VALUE = r"""\s+[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s<>"']+)"""
_TAG = re.compile(rf"</?(?:{_TAGS.replace(' ', '|')})(?:{_VALUE})*\s*/?>|\{{\\[^{{}}]*\}}", re.I)
_BREAKS = re.compile(r"</?(?:br|p|div|li|td|tr|hr|h\d)\b", re.I)


def repair(language: str) -> Repair:
    return Repair((("&", r"[\s#a-zA-Z]"), ("<", "[/a-zA-Z]"), (r"\{", r"\\")), _mended)


def _mended(text: str) -> str:
    text = _ENTITY.sub(_unescaped, text)
    return _TAG.sub(lambda tag: " " if _BREAKS.match(tag[0]) else "", text)


def _unescaped(entity: re.Match[str]) -> str:
    name = re.sub(r"\s", "", next(filter(None, entity.groups())))
    names = [each for each in (name, name.lower()) if each[0] == "#" or f"{each};" in html5]
    sign = unescape(f"&{names[0]};") if names else entity[0]
    return " " if sign in ("\n", "\t", "\r") else sign
