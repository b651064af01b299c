"""Small evaluation sets in the layouts and archives of their publishers."""

import json
from itertools import product

from made import corpora
from made.corpora import write_lines

from ems.base.files import sha256_file

XNLI_COLUMNS = ["language", "gold_label", "sentence1_binary_parse", "sentence1", "sentence2"]
XNLI_COLUMNS += ["promptID", "pairID", "genre", "match"]
XNLI_TRAIN = "XNLI-MT-1.0/multinli/multinli.train.en.tsv"
XNLI_CODES = ("ar", "de", "en", "zh")
PAWSX_CODES = ("de", "en", "es", "fr", "ja", "ko", "zh")
DOMAINS = ("books", "dvd", "music")

BUCC = {  # kind -> lines, of de-en.training
    "de": ["de-1\tHallo Welt", 'de-2\tSie sagte: "Ja', "de-3\tnichts\tdavon"],
    "en": ["en-7\tHello world", 'en-8\tShe said: "yes', "en-9\tsomething else"],
    "gold": ["de-1\ten-7", "de-2\ten-8"],
}

TATOEBA = {"tatoeba.deu-eng.deu": "a\u2028b\nc\n".encode(), "tatoeba.deu-eng.eng": b"d\ne\n"}
FLORES_LINES = ['Er sagte: "Nein".', "Zwei\u2028drei", "vier"]
FLORES = {"devtest/deu_Latn.devtest": "".join(f"{line}\n" for line in FLORES_LINES).encode()}
SIB_SPLITS = {
    "train": [("travel", 'Sie sagte: "Ja'), ("politics", "b")],
    "dev": [("science/technology", "c")],
    "test": [("health", "d\u2028e"), ("travel", "f")],
}
SIB = {
    f"deu_Latn/{split}.tsv": b"index_id\tcategory\ttext\n"
    + "".join(f"{at}\t{topic}\t{text}\n" for at, (topic, text) in enumerate(rows)).encode()
    for split, rows in SIB_SPLITS.items()
}


WMT_ROWS = [  # is_bad_source, source, target
    (True, "CANARY", "CANARY"),
    (False, "One. Two.", "Eins.\n\nZwei."),
    (False, "Three", "Drei\u2028vier"),
]
WMT = {
    "en-de_DE.jsonl": "".join(
        json.dumps({"is_bad_source": bad, "source": source, "target": target}) + "\n"
        for bad, source, target in WMT_ROWS
    ).encode()
}


def bucc(code="de", part="training", lines=None):
    """name in the archive -> content, of one archive of BUCC."""
    stem, kinds = f"bucc2018/{code}-en/{code}-en.{part}", {"de": code}
    lines = (lines or BUCC).items()
    return {f"{stem}.{kinds.get(kind, kind)}": text(own) for kind, own in lines}


def xnli_files(splits, train=()):
    """The published files; splits: name -> (language, label, premise, hypothesis) each.

    train: (label, premise, hypothesis) each, in English.
    """
    files = {}
    for name, rows in splits.items():
        rows = [[*row[:2], "( x )", *row[2:], "1", "2", "face", "True"] for row in rows]
        files[f"XNLI-1.0/xnli.{name}.tsv"] = text(map("\t".join, [XNLI_COLUMNS, *rows]))
    known = {"contradiction": "contradictory"}  # the label's name in this part
    lines = ["\t".join([*pair, known.get(label, label)]) for label, *pair in train]
    return files | ({XNLI_TRAIN: text(["premise\thypo\tlabel", *lines])} if train else {})


def xnli():
    """The archive of dev and test, two pairs of each language, and what a Mac left in it."""
    rows = list(product(XNLI_CODES, ("neutral", "contradiction")))
    splits = {
        split: [(c, label, f'{c} {split} "premise', f"{c} {split} {label}") for c, label in rows]
        for split in ("dev", "test")
    }
    left = ("XNLI-1.0/.DS_Store", "__MACOSX/XNLI-1.0/._xnli.dev.tsv")
    return xnli_files(splits) | dict.fromkeys(left, b"\0")


def xnli_mt():
    """The archive of the training part: English, and another language that nobody reads."""
    pairs = [("contradiction", "One .", "Two ."), ("entailment", "Three .", "Four .")]
    return xnli_files({}, pairs) | {XNLI_TRAIN.replace(".en.", ".de."): b"never read"}


def pawsx_lines(code, split):
    """A table of PAWS-X: a paraphrase, none, and two that were not translated."""
    rows = [f'{code} {split} "a\t{code} {split} b\t1', f"{code} {split} c\t{code} {split} d\t0"]
    rows += ["NS\tonly one\t1", "only one\t\t0"]
    return ["id\tsentence1\tsentence2\tlabel", *(f"{at}\t{row}" for at, row in enumerate(rows))]


def pawsx():
    parts = product(PAWSX_CODES, ("dev", "test"))
    files = {f"x-final/{c}/{split}_2k.tsv": text(pawsx_lines(c, split)) for c, split in parts}
    return {**files, "x-final/de/translated_train.tsv": b"never read"}


NEGATIVES = {
    "It has 3 wheels.": {"errtype": "number_replacement", "src": "It has 2 wheels."},
    "It has no wheels.": {"errtype": "causality_alternation", "src": "It has wheels."},
}


def xsimpp(negatives=NEGATIVES, others=("unknown to the other file",)):
    return {
        "eng_Latn_augmented.devtest": text([*negatives, *others]),
        "eng_Latn_errtype.devtest.json": json.dumps(negatives).encode(),
    }


def review(rating, summary, body):
    return (
        f"<item><category>books</category><rating>{rating}</rating><asin>1</asin>\n"
        f"<text>{body}</text><summary>{summary}</summary></item>"
    )


def cls_file(code, domain, split):
    reviews = [
        review("5.0", f"{code} {domain} {split} Toll!", "Ein Buch. Ich las &amp; lachte!\nDoch."),
        review("1.0", "", f"{code} {domain} {split} kein Titel"),
    ]
    return text(['<?xml version="1.0" encoding="UTF-8"?>', "<items>", *reviews, "</items>"])


def cls():
    parts = product(("en", "de", "fr", "jp"), DOMAINS, ("train", "test", "unlabeled"))
    return {f"cls-acl10-unprocessed/{'/'.join(part)}.review": cls_file(*part) for part in parts}


def marc_lines(code):
    for stars in (1, 3, 5):
        own = {"review_id": f"{code}_{stars}", "stars": str(stars), "language": code}
        own |= {"product_category": "book", "review_title": f"{stars} Sterne"}
        yield json.dumps(own | {"review_body": f"{code} sagt {stars}. Mehr nicht."})


def marc(code="de"):
    splits = ("train", "dev", "test")
    return {f"{split}/dataset_{code}_{split}.json": text(marc_lines(code)) for split in splits}


def news(number, labels, headline, paragraphs):
    topics = "".join(f'<code code="{label}"><editdetail/></code>' for label in labels)
    body = "".join(f"<p>{paragraph}</p>\n" for paragraph in paragraphs)
    return (
        '<?xml version="1.0" encoding="iso-8859-1" ?>\n'
        f'<newsitem itemid="{number}" id="root" date="1996-08-20" xml:lang="de">\n'
        f"<title>DE: {headline}</title>\n<headline>{headline}</headline>\n<text>\n{body}</text>\n"
        '<metadata><codes class="bip:countries:1.0"><code code="GCAT"/></codes>\n'
        f'<codes class="bip:topics:1.0">{topics}</codes></metadata>\n</newsitem>\n'
    ).encode("iso-8859-1")


ITEMS = {  # place -> (classes, headline, paragraphs)
    "RCV2_Multilingual_Corpus/german/REUTDE1/11.xml": (
        ("CCAT", "C15"),
        "Größe zählt.",
        ("Ein Satz. Noch einer.", "Zweiter Absatz &amp; Schluß"),
    ),
    "RCV2_Multilingual_Corpus/german/REUTDE1/12.xml": (("MCAT",), "Markt", ("Kurse fielen.",)),
    "RCV2_Multilingual_Corpus/german/REUTDE2/13.xml": (("GCAT", "ECAT"), "Zwei", ("Beides.",)),
    "RCV2_Multilingual_Corpus/german/REUTDE2/14.xml": (("GCAT",), "", ("Ohne Titel.",)),
    "rcv1/19960820/2286newsML.xml": (("ECAT",), "Recovery", ("Mexico grew.",)),
}
INDICES = {
    "german.dev": ["REUTDE1-11"],
    "german.test": ["REUTDE1-12"],
    "german.train.1000": ["REUTDE1-12", "REUTDE1-11"],
    "english.dev": ["19960820-2286newsML"],
    "english.test": ["19960820-2286newsML"],
}


def write_reuters(folder):
    for at, (place, item) in enumerate(ITEMS.items()):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(news(at, *item))
    for name, lines in INDICES.items():
        write_lines(folder / "mldoc-indices" / name, lines)
    return folder


# --- archives


def text(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def write_files(folder, files, strip=0):
    """Files by name below a folder, without the first `strip` parts of their names."""
    for name, content in files.items():
        path = folder.joinpath(*name.split("/")[strip:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_sets(folder):
    """One language or more of each set, as it lies once it is unpacked."""
    inside = {"bucc2018": bucc() | bucc(part="sample"), "pawsx": pawsx(), "cls": cls()}
    plain = {"xnli": xnli() | xnli_mt(), "xsimpp": xsimpp(), "marc": marc()}
    plain |= {"tatoeba": TATOEBA, "flores200": FLORES, "sib200": SIB, "wmt24pp": WMT}
    for strip, sets in ((1, inside), (0, plain)):
        for name, files in sets.items():
            write_files(folder / name, files, strip)
    for name in ("mldoc", "rcv2"):
        write_reuters(folder / name)
    return folder


def pack(path, files):
    """An archive of what its name says (.zip, .tar.gz, .tar.bz2); the sha256 of its bytes."""
    return sha256_file(corpora.pack(path, list(files.items())))
