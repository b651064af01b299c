"""Made-up translations, and small mirrors of them in the formats that corpora and benchmarks have.

A mirror is a folder: `opus/` in OPUS layout, `laser/`, `tatoeba/`, `flores200/` and `sib200/` as
published.
"""

import gzip
import io
import itertools
import random
import zipfile

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
    """A text file, one line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def cut_languages(project, codes, tatoeba):
    """Cut the project's own tables to some languages and codes of Tatoeba, to make "all" little."""
    path = project.folder / "ems/config/languages/languages.tsv"
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    write_lines(path, [header, *(row for row in rows if row.split("\t")[0] in codes)])
    write_lines(project.folder / "ems/config/languages/tatoeba_v1.txt", tatoeba)


def write_opus(mirror, corpus, version, items):
    """The zip of every language of `items` ({language: text} each) with English."""
    for code in sorted(set(items[0]) - {"en"}):
        write_zip(mirror, corpus, version, "-".join(sorted(("en", code))), items)
    return mirror / "opus" / corpus / version


def write_mined(mirror, pair, items, scores):
    """LASER's mined file of a pair, whose codes are the keys of `items`."""
    folder = mirror / "laser" / "WikiMatrix" / "v1"
    folder.mkdir(parents=True, exist_ok=True)
    first, second = pair.split("-")
    rows = zip(scores, items, strict=True)
    text = "".join(f"{score}\t{item[first]}\t{item[second]}\n" for score, item in rows)
    path = folder / f"WikiMatrix.{pair}.tsv.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def write_zip(mirror, corpus, version, pair, items):
    """The zip of one file of a corpus, whose codes are the keys of `items`."""
    first, second = pair.split("-")
    path = mirror / "opus" / corpus / version / "moses" / f"{pair}.txt.zip"
    pairs = [(item[first], item[second]) for item in items]
    return moses_of(path, pairs, corpus=corpus, pair=pair)


def write_divided(mirror, corpus, version, items, documents):
    """The same, and the file that names the document of each line."""
    folder = write_opus(mirror, corpus, version, items)
    write_lines(folder / DOCUMENTS, documents)
    return folder


def write_tatoeba(mirror, code, items):
    """Both files of one language of LASER's Tatoeba; `items`: (sentence, English sentence)."""
    for side, at in ((code, 0), ("eng", 1)):
        path = mirror / "tatoeba" / f"tatoeba.{code}-eng.{side}"
        write_lines(path, [item[at] for item in items])


def write_flores(mirror, code, lines):
    """The devtest file of one language of FLORES-200."""
    return write_lines(mirror / "flores200" / "devtest" / f"{code}.devtest", lines)


def write_sib(mirror, code, splits):
    """The three files of one language of SIB-200; `splits`: name -> (category, sentence) each."""
    for name, examples in splits.items():
        rows = [f"{at}\t{category}\t{text}" for at, (category, text) in enumerate(examples)]
        path = mirror / "sib200" / code / f"{name}.tsv"
        write_lines(path, ["index_id\tcategory\ttext", *rows])


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """The bytes of a zip of (name, content)s, the same in every run."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
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
