"""What an experiment downloads from OPUS, under the same names, of other text; and a plain server.

`python tests/served_made.py EXPERIMENT FOLDER` writes the mirror of an experiment from ../shared.
`python -m http.server --directory FOLDER` serves it; `sources` of config.yaml then has the address:
{opus: http://localhost:8000, tatoeba: http://localhost:8000/tatoeba, ...}.
"""

import itertools
import shutil
import sys
import zipfile
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from conftest import ROOT
from experiments_made import shipped
from https_made import serving
from mirror_made import moses_of, translations

from ems.start.names import language_of

SHARED = ROOT.parent / "shared" / "data"


def write_served(folder, experiment, text):
    """The zip of every file of every corpus, at OPUS's names; `text` gives the pairs of two
    languages."""
    for _, corpus in experiment.all_corpora():
        for file in (file for pair in corpus.pairs for file in corpus.files(pair)):
            path = folder / f"OPUS-{corpus.name}/{corpus.version}/moses/{file}.txt.zip"
            languages = [language_of(corpus.name, code) for code in file.split("-")]
            moses_of(path, text(corpus.name, *languages), corpus=corpus.name, pair=file)
    return folder


def made_up(count, corpus, first, second):
    """Pairs of made-up sentences of two languages, other ones for each corpus."""
    items = translations(count, (first, second), f"{corpus} {first}", least=3)
    return [(item[first], item[second]) for item in items]


def shared_pairs(most, corpus, first, second):
    """Up to `most` pairs of two languages, all from ../shared/data/opus; through English where
    neither is English."""
    if "en" in (first, second):
        pairs = with_english(second if first == "en" else first)[:most]
        return pairs if second == "en" else [pair[::-1] for pair in pairs]
    known = {english: text for text, english in with_english(second)}
    own = [(text, known[english]) for text, english in with_english(first) if english in known]
    return own[:most]


@cache
def with_english(language):
    """(sentence, English sentence) of a language in ../shared/data/opus."""
    pair = "-".join(sorted((language, "en")))
    pairs = []
    for path in sorted(SHARED.glob(f"opus/*/*/moses/{pair}.txt.zip")):
        with zipfile.ZipFile(path) as archive:
            names = [f"{path.parts[-4]}.{pair}.{code}" for code in (language, "en")]
            sides = [archive.read(name).decode().split("\n")[:-1] for name in names]
        pairs += zip(*sides, strict=True)
    return list(dict.fromkeys(pairs))


def server(folder):
    """A plain web server of a folder, to be used with `with`; its address is `.address`."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    http.address = f"http://127.0.0.1:{http.server_port}"
    return http, serving(http)


def main(name, folder):
    """Write the mirror of an experiment with up to 40,000 pairs of ../shared in each file."""
    folder = Path(folder)
    write_served(folder, shipped(name), partial(shared_pairs, 40_000))
    for benchmark, own in (
        ("tatoeba", "tatoeba_v1"),
        ("flores200", "flores200/flores200_dataset"),
        ("sib200", "sib200"),
    ):
        shutil.copytree(SHARED / own, folder / benchmark, dirs_exist_ok=True)
    size = sum(path.stat().st_size for path in folder.rglob("*.zip"))
    count = len(list(itertools.chain(folder.rglob("*.zip"))))
    print(f"{folder}: {count} zips, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
