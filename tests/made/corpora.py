"""Corpora in every form that an experiment takes, and archives, valid and malformed."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import random
import stat
import tarfile
import zipfile
from importlib import import_module

from conftest import needs

SYLLABLES = {  # of a few languages, so that a subword vocabulary has something to find
    "en": "ba ko li ne",
    "de": "schu ster gen lau",
    "fr": "eau quoi tille mon",
    "sw": "mwa nji kum tata",
}
CONCEPTS = 40
DOCUMENTS = "DOCUMENT_IDS.tsv"
PAIRS = [("Hallo Welt", "Hello world"), ("Zwei", "Two"), ("Ende", "End")]


def lexicon(code):
    """A word of a language for each concept, the same in every run; no digits to go by."""
    parts = SYLLABLES.get(code, f"{code}a {code}o {code}i {code}e").split()
    words = ["".join(word) for word in itertools.product(parts, repeat=3)]
    return random.Random(code).sample(words, CONCEPTS)


def translations(count, codes, seed, least=1, most=6):
    """`count` sentences {language: text} of `least` to `most` words, concept by concept."""
    words = {code: lexicon(code) for code in codes}
    draw = random.Random(seed)
    for _ in range(count):
        concepts = draw.choices(range(CONCEPTS), k=draw.randint(least, most))
        yield {code: " ".join(words[code][at] for at in concepts) for code in codes}


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def cut_languages(project, codes, tatoeba):
    """Cut the project's own tables to some languages and codes of Tatoeba, to make "all" little."""
    path = project.folder / "ems/config/languages/languages.tsv"
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    write_lines(path, [header, *(row for row in rows if row.split("\t")[0] in codes)])
    write_lines(project.folder / "ems/config/languages/tatoeba_v1.txt", tatoeba)


def write_opus(mirror, corpus, version, items, documents=None):
    """The zip of every language of `items` ({language: text} each) with English.

    `documents`: for a file that names the document of each line.
    """
    for code in sorted(set(items[0]) - {"en"}):
        write_zip(mirror, corpus, version, "-".join(sorted(("en", code))), items)
    folder = mirror / "opus" / corpus / version
    if documents:
        write_lines(folder / DOCUMENTS, documents)
    return folder


def write_mined(mirror, pair, items, scores):
    """LASER's mined file of a pair, whose codes are the keys of `items`."""
    path = mirror / "laser" / "WikiMatrix" / "v1" / f"WikiMatrix.{pair}.tsv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(scores, items, strict=True)
    lines = ["\t".join([str(score), *map(item.get, pair.split("-"))]) for score, item in rows]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    return path


def write_zip(mirror, corpus, version, pair, items):
    path = mirror / "opus" / corpus / version / "moses" / f"{pair}.txt.zip"
    pairs = [[item[code] for code in pair.split("-")] for item in items]
    return moses_of(path, pairs, corpus=corpus, pair=pair)


def write_tatoeba(mirror, code, items):
    """Both files of one language of LASER's Tatoeba; `items`: (sentence, English sentence)."""
    for side, at in ((code, 0), ("eng", 1)):
        path = mirror / "tatoeba" / f"tatoeba.{code}-eng.{side}"
        write_lines(path, [item[at] for item in items])


def write_flores(mirror, code, lines):
    return write_lines(mirror / "flores200" / "devtest" / f"{code}.devtest", lines)


def write_sib(mirror, code, splits):
    """The three files of one language of SIB-200; `splits`: name -> (category, sentence) each."""
    for name, examples in splits.items():
        rows = [f"{at}\t{category}\t{text}" for at, (category, text) in enumerate(examples)]
        path = mirror / "sib200" / code / f"{name}.tsv"
        write_lines(path, ["index_id\tcategory\ttext", *rows])


def zipped(members):
    """The bytes of a zip of (name, content)s, the same in every run."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members:
            archive.writestr(zip_member(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def moses(path, first, second, corpus="C", pair="de-en", extra=()):
    """A zip as OPUS has it, of the bytes of its two sides."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [f"{corpus}.{pair}.{code}" for code in pair.split("-")]
    sides = zip(names, (first, second), strict=True)
    path.write_bytes(zipped([("README", "about"), *sides, *extra]))
    return path


def moses_of(path, pairs, **more):
    sides = ["".join(f"{pair[at]}\n" for pair in pairs).encode() for at in (0, 1)]
    return moses(path, *sides, **more)


PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
FORMS = ("tsv", "two", "jsonl", "translation", "parquet", "columns")


def package_of(name, package):
    """A package of the extra `files`, or the test is skipped."""
    try:
        return import_module(package)
    except ImportError:
        needs(None, f"{name}: pip install -e '.[files]'")


def packed(content, suffix):
    zstd = suffix == ".zst"
    return (package_of("zstd", "backports.zstd").compress if zstd else PACKERS[suffix])(content)


def write_form(folder, form, codes, rows, suffix=""):
    """Write rows of two texts in a form; what stands under `files` of the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"mine.{'-'.join(codes)}"
    if form in ("parquet", "columns"):
        return str(_parquet(folder / name, form, codes, rows))
    files = {f"{name}.tsv": map("\t".join, rows)}
    if form == "two":
        files = {f"mine.{c}": side for c, side in zip(codes, zip(*rows, strict=True), strict=True)}
    elif form != "tsv":
        items = [dict(zip(codes, row, strict=True)) for row in rows]
        items = [{"translation": item} for item in items] if form == "translation" else items
        files = {f"{name}.jsonl": [json.dumps(item, ensure_ascii=False) for item in items]}
    for file, lines in files.items():
        content = "".join(f"{line}\n" for line in lines).encode()
        (folder / f"{file}{suffix}").write_bytes(packed(content, suffix))
    paths = [str(folder / f"{file}{suffix}") for file in files]
    return paths if form == "two" else paths[0]


def _parquet(folder, form, codes, rows):
    """A folder as the Hugging Face hub has it: two files to train on, one to test."""
    pyarrow, parquet = (package_of("parquet", name) for name in ("pyarrow", "pyarrow.parquet"))
    half = len(rows) // 2
    parts = {"train-0": rows[:half], "train-1": rows[half:], "test-0": [("no", "no")]}
    (folder / "data").mkdir(parents=True)
    for name, part in parts.items():
        values = [dict(zip(codes, row, strict=True)) for row in part]
        if form == "parquet":
            values = [{"id": at, "translation": value} for at, value in enumerate(values)]
        table = pyarrow.Table.from_pylist(values)
        parquet.write_table(table, folder / "data" / f"{name}-of-00002.parquet")
    return folder


def read_pairs(folder):
    return {
        path.stem: [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]
        for path in sorted(folder.glob("*.tsv"))
    }


# --- archives


TARS = {"tar": "w", "tar.gz": "w:gz", "tar.bz2": "w:bz2"}
SINGLES = ("gz", "bz2")


def pack(path, members, kind=None):
    """An archive of (name, bytes) whose kind is the path's suffix, unless it is given."""
    kind = kind or next(kind for kind in ("zip", *TARS, *SINGLES) if path.name.endswith(f".{kind}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "zip":
        path.write_bytes(zipped(members))
    elif kind in TARS:
        with tarfile.open(path, TARS[kind], format=tarfile.PAX_FORMAT) as archive:
            for name, content in members:
                archive.addfile(*tar_member(name, content))
    else:
        path.write_bytes(packed(members[0][1], f".{kind}"))
    return path


def zip_member(name, kind=stat.S_IFREG):
    info = zipfile.ZipInfo("")
    info.filename = name  # as it is: ZipInfo would tidy it
    info.external_attr = (kind | 0o644) << 16
    return info


def tar_member(name, content=b"", kind=tarfile.REGTYPE, **pax):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.pax_headers = len(content), kind, pax
    info.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    return info, io.BytesIO(content)


def spoilt(content):
    """The content with one byte changed, for each of its bytes."""
    for at, byte in enumerate(content):
        yield content[:at] + bytes([byte ^ 0x5A]) + content[at + 1 :]
