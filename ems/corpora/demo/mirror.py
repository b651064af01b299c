"""Writes the demo corpus as a mirror: a folder with the layout of OPUS and of LASER's Tatoeba v1.

    opus/Demo/v1/moses/<a>-<b>.txt.zip        training pairs, a < b in string order
    opus/DemoDev/v1/moses/<a>-<b>.txt.zip     validation pairs
    tatoeba/tatoeba.<iso3>-eng.<iso3|eng>     benchmark
    manifest.json                             counts and checksums; written last

OPUS: https://opus.nlpl.eu; Tatoeba v1: https://github.com/facebookresearch/LASER (data/tatoeba/v1).
"""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from ems.corpora.demo.build import OTHERS, SEED, Demo, build
from ems.corpora.demo.draw import Sentence, shuffled
from ems.corpora.demo.leak import LEAKED_PAIRS
from ems.files import atomic_path, sha256_file, write_json, write_text
from ems.progress import Progress

ISO3 = {"de": "deu", "fr": "fra", "es": "spa", "ru": "rus", "zh": "cmn", "ja": "jpn", "ar": "ara"}
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
NOTE = {
    "Demo": f"{LEAKED_PAIRS} of the pairs match the demo benchmark on purpose; "
    "decontamination must remove them.",
    "DemoDev": "For validation; no sentence of it is in Demo or in the demo benchmark.",
}
LICENSE = "All sentences were written for EMS and come under the licence of EMS (MIT).\n"
XML_HEAD = """\
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">
<cesAlign version="1.0">
<linkGrp targType="s" fromDoc="{a}/{name}.xml" toDoc="{b}/{name}.xml">
"""
XML_TAIL = "</linkGrp>\n</cesAlign>\n"

Pair = tuple[str, str]  # English, other language


def write_mirror(root: Path) -> None:
    """Write the mirror below `root`; `manifest.json` is written last, so with it the mirror is whole.

    Raises `EmsError` when the package's data are malformed or the disk cannot take the files.
    """
    progress = Progress("demo corpus", 4 * len(OTHERS), "files")
    (root / "manifest.json").unlink(missing_ok=True)
    demo = build()
    written: list[Path] = []
    for language in OTHERS:
        train, dev = train_pairs(demo, language), pairs_of(demo.dev, language)
        written.append(write_moses(root, "Demo", language, train))
        written.append(write_moses(root, "DemoDev", language, dev))
        written += write_tatoeba(root, language, pairs_of(demo.benchmark, language))
        progress.add(4)
    sums = {path.relative_to(root).as_posix(): sha256_file(path) for path in written}
    counts = {language: count(demo, language) for language in OTHERS}
    write_json(root / "manifest.json", {"counts": counts, "seed": SEED, "sha256": sums})
    progress.close()


def count(demo: Demo, language: str) -> dict[str, int]:
    """Return the manifest's counts of one language; `train` includes `leaked`."""
    leaked = len(demo.leak[language])
    return {
        "train": len(demo.train[language]) + leaked,
        "leaked": leaked,
        "dev": len(demo.dev),
        "benchmark": len(demo.benchmark),
    }


def train_pairs(demo: Demo, language: str) -> list[Pair]:
    """Return one language's training pairs with its leak among them."""
    leaked = [(leak.english, leak.other) for leak in demo.leak[language]]
    random = Random(f"{SEED} {language}")
    return shuffled([*pairs_of(demo.train[language], language), *leaked], random)


def pairs_of(sentences: Sequence[Sentence], language: str) -> list[Pair]:
    """Return the sentences as (English, `language`)."""
    return [(sentence.texts["en"], sentence.texts[language]) for sentence in sentences]


def write_moses(root: Path, corpus: str, language: str, pairs: Sequence[Pair]) -> Path:
    """Write one zip in OPUS' Moses layout. Returns its path."""
    a, b = sorted(("en", language))
    name = f"{corpus}.{a}-{b}"
    side = {"en": [english for english, _ in pairs], language: [other for _, other in pairs]}
    readme = README.format(
        corpus=corpus, version=VERSION, a=a, b=b, pairs=len(pairs), note=NOTE[corpus]
    )
    members = {
        "README": readme,
        "LICENSE": LICENSE,
        f"{name}.{a}": lines(side[a]),
        f"{name}.{b}": lines(side[b]),
        f"{name}.xml": alignment(a, b, corpus, len(pairs)),
    }
    path = root / "opus" / corpus / VERSION / "moses" / f"{a}-{b}.txt.zip"
    with atomic_path(path) as temporary:
        temporary.write_bytes(zipped(members))
    return path


def write_tatoeba(root: Path, language: str, pairs: Sequence[Pair]) -> list[Path]:
    """Write the benchmark of one language as two plain files. Returns their paths."""
    stem = f"tatoeba.{ISO3[language]}-eng"
    sides = {"eng": [english for english, _ in pairs], ISO3[language]: [o for _, o in pairs]}
    for code, texts in sides.items():
        write_text(root / "tatoeba" / f"{stem}.{code}", lines(texts))
    return [root / "tatoeba" / f"{stem}.{code}" for code in sides]


def lines(texts: Sequence[str]) -> str:
    """Return one text per line, each with its newline."""
    return "".join(f"{text}\n" for text in texts)


def alignment(a: str, b: str, corpus: str, pairs: int) -> str:
    """Return the cesAlign XML that goes with a Moses pair of files: line n with line n."""
    links = [f'<link xtargets="{n};{n}" id="SL{n}"/>\n' for n in range(1, pairs + 1)]
    return XML_HEAD.format(a=a, b=b, name=corpus) + "".join(links) + XML_TAIL


def zipped(members: dict[str, str]) -> bytes:
    """Return a zip of these members; the same members give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name, STAMP)
            info.create_system, info.external_attr = UNIX, 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text.encode("utf-8"), compresslevel=6)
    return buffer.getvalue()
