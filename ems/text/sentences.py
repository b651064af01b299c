"""Paragraphs -> sentences: the Moses splitter in Perl, and a rule for 。！？.

The package mosestokenizer carries the script. It splits where a sentence ends in `.`, `?` or `!`
before a space and a capital, and knows the abbreviations of some languages (others have those of
English). It has no rule for the full-width marks, after which no space stands: there a sentence
ends, in any language, behind the quotes and brackets that close it.
"""

import re
from collections.abc import Callable
from importlib.resources import files

from ems.base.errors import EmsError
from ems.text.normalise import tidy_lines
from ems.text.segmenters.base import Need, package, run_filter
from ems.text.segmenters.moses import PERL

NEEDS: tuple[Need, ...] = (PERL, package("mosestokenizer"))
_END = re.compile(r"[。！？]+[”’」』）》】〉\"')\]]*")
_MARKUP = re.compile("<.+>")  # a line that the script takes for a tag
BREAK = "<P>"  # what it writes after a paragraph

Split = Callable[[list[str]], list[list[str]]]  # paragraphs -> the sentences of each


def splitter(language: str) -> Split:
    """Return the function from paragraphs to their sentences."""
    script = files("mosestokenizer").joinpath("split-sentences.perl")
    command = ["perl", str(script), "-q", "-l", language]

    def split(paragraphs: list[str]) -> list[list[str]]:
        parts = [_parts(paragraph) for paragraph in tidy_lines(paragraphs)]
        plain = [part for each in parts for part in each if not _MARKUP.fullmatch(part)]
        by_script = iter(_grouped(command, plain))
        return [
            [s for part in each for s in ([part] if _MARKUP.fullmatch(part) else next(by_script))]
            for each in parts
        ]

    return split


def _parts(paragraph: str) -> list[str]:
    """Cut a tidy paragraph after each full-width mark."""
    cut = _END.sub(lambda end: end[0] + "\n", paragraph)
    return [part for part in map(str.strip, cut.split("\n")) if part]


def _grouped(command: list[str], parts: list[str]) -> list[list[str]]:
    """Run the script; return the sentences of each part."""
    groups: list[list[str]] = [[]]
    lines = [line for part in parts for line in (part, "")]
    for line in run_filter(command, lines, "moses sentences") if lines else []:
        if line == BREAK:
            groups.append([])
        elif line:
            groups[-1].append(line)
    if len(groups) != len(parts) + 1:
        raise EmsError(
            f"the Moses sentence splitter: expected {len(parts):,} paragraphs, found "
            f"{len(groups) - 1:,}; is its script (split-sentences.perl) another one?"
        )
    return groups[:-1]
