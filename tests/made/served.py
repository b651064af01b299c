"""A mirror of OPUS with an experiment's files, filled with other text, and an https server for it.

`PYTHONPATH=tests python -m made.served EXPERIMENT FOLDER` writes the mirror from ../shared and
serves it until Ctrl-C. It prints the settings that make EMS download from it.
"""

import shutil
import ssl
import sys
import time
import zipfile
from collections import defaultdict
from contextlib import contextmanager, suppress
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from conftest import ROOT
from made.experiments import shipped
from made.https import CERTIFICATES, Server, certificate, serving
from made.mirror import moses_of, translations

from ems.workflow.search import language_of

SHARED = ROOT.parent / "shared" / "data"
BENCHMARKS = {
    "tatoeba": "tatoeba_v1",
    "flores200": "flores200/flores200_dataset",
    "sib200": "sib200",
}


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


def shared_text(experiment, most):
    """A function for `write_served`: up to `most` pairs of ../shared for each file, and none of
    them in two corpora.
    """
    holders = defaultdict(list)  # the languages of a pair -> corpora
    for _, corpus in experiment.all_corpora():
        for pair in corpus.pairs:
            names = holders[frozenset(pair.split("-"))]
            names += [corpus.name] * (corpus.name not in names)

    def text(corpus, *languages):
        names = holders[frozenset(languages)]
        return shared_pairs(*languages)[names.index(corpus) :: len(names)][:most]

    return text


def shared_pairs(first, second):
    """The pairs of two languages in ../shared/data/opus; through English where neither is it."""
    if "en" in (first, second):
        pairs = with_english(second if first == "en" else first)
        return pairs if second == "en" else [pair[::-1] for pair in pairs]
    known = {english: text for text, english in with_english(second)}
    return [(text, known[english]) for text, english in with_english(first) if english in known]


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


class Folder(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def served(folder, port=0):
    """Serve a folder over https; gives the address, and the certificate that clients must trust."""
    tls = folder.with_name(f"{folder.name}-tls")
    tls.mkdir(exist_ok=True)
    server = Server(("127.0.0.1", port), partial(Folder, directory=folder))
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(*certificate(tls))
    with serving(server):
        yield f"https://127.0.0.1:{server.server_port}", tls / "cert.pem"


def sources(address):
    """The `sources` of config.yaml that fetch everything from there."""
    return {"opus": address, **{name: f"{address}/{name}" for name in BENCHMARKS}}


def main(name, folder, port="8443"):
    """Write the mirror of an experiment with up to 40,000 pairs of ../shared in each file, and
    serve it.
    """
    folder, experiment = Path(folder).absolute(), shipped(name)
    write_served(folder, experiment, shared_text(experiment, 40_000))
    for benchmark, own in BENCHMARKS.items():
        shutil.copytree(SHARED / own, folder / benchmark, dirs_exist_ok=True)
    zips = list(folder.rglob("*.zip"))
    print(f"{folder}: {len(zips)} zips, {sum(path.stat().st_size for path in zips) / 1e6:.1f} MB")
    with served(folder, int(port)) as (address, trusted), suppress(KeyboardInterrupt):
        named = ", ".join(f"{key}: {value}" for key, value in sources(address).items())
        print(
            f"export {CERTIFICATES}={trusted}\nsources: {{{named}}}  # in config.yaml", flush=True
        )
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
