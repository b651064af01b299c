"""The file formats of the demo's mirror: plain lines, and Moses zips in OPUS' layout.

OPUS: https://opus.nlpl.eu. The same texts give the same bytes, zips too.
"""

import io
import zipfile
from collections.abc import Sequence

from ems.config.opus import pair_name
from ems.corpora.demo.draw import Sentence

VERSION = "v1"
STAMP = (2020, 1, 1, 0, 0, 0)  # of every zip member, so that the same text is the same bytes
UNIX = 3

README = """\
Corpus:    {corpus} {version}
Languages: {a}-{b}
Pairs:     {pairs}

Made by EMS from phrases written for it: ems.corpora.demo describes how.
{note}
"""
LICENSE = "All sentences were written for EMS and come under the licence of EMS (MIT).\n"
XML_HEAD = """\
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">
<cesAlign version="1.0">
<linkGrp targType="s" fromDoc="{a}/{name}.xml" toDoc="{b}/{name}.xml">
"""
XML_TAIL = "</linkGrp>\n</cesAlign>\n"

NOTE = "For evaluation; no sentence of it is in Demo or in another set."
Pair = tuple[str, str]  # English, other language


def lines(texts: Sequence[str]) -> str:
    """Return one text per line, each with its newline."""
    return "".join(f"{text}\n" for text in texts)


def moses_name(language: str) -> str:
    """Return the name of a language's zip with English: `de-en.txt.zip`."""
    return f"{pair_name('en', language)}.txt.zip"


def moses(corpus: str, language: str, pairs: Sequence[Pair], note: str) -> bytes:
    """Return one zip in OPUS' Moses layout, with the alignment of line n to line n."""
    a, b = sorted(("en", language))
    name, count = f"{corpus}.{a}-{b}", len(pairs)
    side = {"en": [english for english, _ in pairs], language: [other for _, other in pairs]}
    links = [f'<link xtargets="{n};{n}" id="SL{n}"/>\n' for n in range(1, count + 1)]
    members = {
        "README": README.format(corpus=corpus, version=VERSION, a=a, b=b, pairs=count, note=note),
        "LICENSE": LICENSE,
        f"{name}.{a}": lines(side[a]),
        f"{name}.{b}": lines(side[b]),
        f"{name}.xml": XML_HEAD.format(a=a, b=b, name=corpus) + "".join(links) + XML_TAIL,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name, STAMP)
            info.create_system, info.external_attr = UNIX, 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text.encode("utf-8"), compresslevel=6)
    return buffer.getvalue()


def moses_zips(
    corpus: str, languages: Sequence[str], sentences: Sequence[Sentence]
) -> dict[str, str | bytes]:
    """Return the zip of each language with English, of sentences for evaluation."""
    return {
        f"moses/{moses_name(language)}": moses(
            corpus, language, [sentence.pair(language) for sentence in sentences], NOTE
        )
        for language in languages
    }
