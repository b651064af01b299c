"""Shards, documents and an experiment to train on in seconds; runs that die; Wikipedia dumps."""

import bz2
import json
import random
import signal
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from xml.sax.saxutils import escape

import pytest
from conftest import ROOT
from made.corpora import lexicon, translations, write_lines
from made.experiments import MINIMAL, Settings, changed
from made.shards import sentence
from made.text import clean_alone, tiny
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.config.corpus_entries import Split
from ems.config.experiment import Corpus
from ems.shards.index import read_index, shards_in, write_index
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards
from ems.text.clean import CleanSource
from ems.text.evalkeys import write_keys
from ems.text.subwords import train_vocabulary
from ems.train import checkpoint, journal
from ems.train.data import Data, training_data
from ems.train.job import train
from ems.train.step import Trainer

_script = spec_from_file_location("validate", ROOT / "perf/validate.py")
_validate = module_from_spec(_script)
_script.loader.exec_module(_validate)
validate_model = _validate.validate_model

PAIRS = {"de-en": 160, "en-fr": 60}  # sentence pairs
LANGUAGES = ["en", "de", "fr"]
MAX_TOKENS = 20
MODEL = {"layers": 1, "width": 16, "heads": 2, "feed_forward": 24, "max_tokens": MAX_TOKENS}
TRAIN = {"steps": 30, "batch_pairs": 8, "learning_rate": 0.01, "warmup_steps": 5}
TRAIN |= {"schedule": "linear", "sampling_alpha": 0.5, "validate_every": 10, "checkpoint_every": 5}
TRAIN |= {"threads": 1, "device": "cpu"}
BASE = changed(
    MINIMAL,
    {
        "seed": 3,
        "languages": LANGUAGES,
        "vocabulary": {"size": 300, "character_coverage": 1.0},
        "model": {**MODEL, "dropout": 0.2, "attention_dropout": 0.2},
        "objectives": {"head": {"language_width": 4}, "contrastive": {"width": 8}},
        "train": TRAIN,
    },
)


class Toy:
    """Shards, a vocabulary and the settings of an experiment in one folder."""

    def __init__(self, folder, shard_pairs=1000):
        self.folder, self.settings = folder, Settings(folder, BASE)
        self.shard_pairs = shard_pairs
        self.documents = {"training": [], "validation": []}  # folders (`add_documents`)
        self.vocabulary, self.sample = folder / "vocabulary.model", folder / "sample.txt"
        lines = [line for item in translations(200, LANGUAGES, 1) for line in item.values()]
        train_vocabulary(self.experiment(), write_lines(self.sample, lines), self.vocabulary)
        for part, share in (("training", 1), ("validation", 8)):
            for seed, (pair, count) in enumerate(PAIRS.items()):
                self._shard(part, pair, count // share, seed + 10 * share)

    def _shard(self, part, pair, count, seed):
        first, second = pair.split("-")
        lines = [f"{i[first]}\t{i[second]}\t1" for i in translations(count, LANGUAGES, seed)]
        source = write_lines(self.folder / part / f"{pair}.tsv", lines)
        out = source.with_suffix("")
        write_shards(source, self.vocabulary, out, pairs=self.shard_pairs)

    def experiment(self, **changes):
        return self.settings.changed(**changes)

    def shards(self, part):
        return [shard for pair in PAIRS for shard in shards_in(self.folder / part / pair)]

    def index(self):
        path = self.folder / "index.json"
        roles = {"train": "training", "validation": "validation"}
        folders = {r: self.shards(part) + self.documents[part] for r, part in roles.items()}
        write_index(folders, path)
        return path

    def store(self, part, share=1.0):
        return PairStore(self.shards(part), LANGUAGES, MAX_TOKENS, share)

    def data(self, held_out=True, **changes):
        system = self.experiment(**changes).systems["ems"]
        if system.objectives.documents:
            index = read_index(self.index())
            return training_data(system, LANGUAGES, index, self.vocabulary)
        pairs = self.store("validation") if held_out else None
        return Data(self.store("training"), pairs, self.vocabulary)

    def train(self, folder, held_out=True, afresh=False, **changes):
        """Train into `folder`/model, with state, times and scalars next to it; return that one."""
        data, experiment = self.data(held_out, **changes), self.experiment(**changes)
        places = folder / "model", folder / "state", folder / "times.jsonl"
        train(experiment, "ems", data, *places, afresh=afresh, scalars=folder / "scalars")
        return folder / "model"


class Killed(BaseException):
    """A kill that no `except` of the library catches."""


def train_until(toy, folder, step, **changes):
    """Train until the checkpoint of `step` is saved, then die; return the state folder."""
    save = checkpoint.save_checkpoint

    def save_and_die(state, modules, optimizer, done, keep):
        save(state, modules, optimizer, done, keep)
        if done.step == step:
            raise Killed

    return _killed(toy, folder, (journal, "save_checkpoint", save_and_die), changes)


def train_into(toy, folder, step, **changes):
    """Train and die within `step`; return the state folder."""
    one = Trainer.step

    def step_or_die(trainer, batch):
        if batch.step == step:
            raise Killed
        return one(trainer, batch)

    return _killed(toy, folder, (Trainer, "step", step_or_die), changes)


def signal_in_step(monkeypatch, step):
    """Raise SIGTERM within `step` of a training."""
    one = Trainer.backward

    def backward(trainer, batch):
        if batch.step == step:
            signal.raise_signal(signal.SIGTERM)
        return one(trainer, batch)

    monkeypatch.setattr(Trainer, "backward", backward)


def train_stopped(toy, folder, step, **changes):
    """Train until SIGTERM arrives within `step`; the run then saves and ends."""
    with pytest.MonkeyPatch.context() as patch:
        signal_in_step(patch, step)
        with pytest.raises(EmsError, match=f"after step {step + 1}"):
            toy.train(folder, **changes)


def _killed(toy, folder, patched, changes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*patched)
        with pytest.raises(Killed):
            toy.train(folder, **changes)
    (state,) = (path for path in (folder / "state").iterdir() if path.is_dir())
    return state


def weights_of(folder):
    """The weights of a model folder by their names in a checkpoint."""
    files = {"encoder.": "model", "heads.": "heads"}
    return {
        part + name: value
        for part, file in files.items()
        for name, value in load_file(folder / f"{file}.safetensors").items()
    }


def json_rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows(folder, part):
    """The rows of the loss log for `part`, "train" or "validation"."""
    return [row for row in json_rows(folder / "losses.jsonl") if row["part"] == part]


# --- documents of one language, raw and segmented, and pairs mined from them


CORPUS = Corpus("Own", "v1", "own", True, ("en",), None, kind="documents")


def raw(documents, ending=b"\n\n"):
    """The bytes of a file: documents of lines, which are bytes, each followed by a blank line."""
    return b"".join(b"\n".join(lines) + ending for lines in documents)


def cleaned(folder, content, evaluation=(), corpus=CORPUS, splits=None, name="en", **changes):
    """(the clean documents as (text, line), the report) of a file `en.txt` with this content."""
    experiment = tiny(replace(corpus), **changes)
    if splits:
        experiment = replace(experiment, splits={corpus.name: Split(parts=splits)})
    path, keys = folder / f"{name}.txt", folder / "keys.tsv"
    path.write_bytes(content)
    write_keys(dict.fromkeys(evaluation, ("tatoeba/deu",)), keys)
    source = CleanSource(corpus.label, corpus.version, "en", (path,))
    out = folder / corpus.label / "en.tsv"
    report = clean_alone(experiment, source, keys, out)
    return read_clean(out), report


def read_clean(path):
    """The documents of a clean or segmented file: (text, line) of each sentence."""
    *documents, rest = path.read_text(encoding="utf-8").split("\n\n")
    assert rest == ""
    rows = [[line.split("\t") for line in each.split("\n")] for each in documents]
    return [[(text, int(line)) for text, line in each] for each in rows]


def write_random(path, sizes, seed):
    """Segmented documents of so many sentences each."""
    draw = random.Random(seed)
    return write_documents(path, [[sentence(draw, path.stem) for _ in range(n)] for n in sizes])


# --- Wikipedia

DUMP = "dewiki/20260101/dewiki-20260101-pages-articles-multistream.xml.bz2"
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename><dbname>dewiki</dbname>
    <namespaces>
      <namespace key="0" /><namespace key="1">Diskussion</namespace>
    </namespaces>
  </siteinfo>
"""
PAGE = """  <page>
    <title>Page {number}</title><ns>{namespace}</ns><id>{number}</id>
{redirect}    <revision>
      <id>{number}</id>
      <contributor><username>A</username><id>1</id></contributor><comment>/* x */</comment>
      <text bytes="1" sha1="x" xml:space="preserve">{text}</text>
    </revision>
  </page>
"""
END = "</mediawiki>\n"


def page(number, text, namespace=0, redirect=False):
    target = '    <redirect title="Other" />\n' if redirect else ""
    return PAGE.format(number=number, namespace=namespace, redirect=target, text=escape(text))


def write_dump(path, pages, per_stream):
    """A dump in the published format: the head, so many pages a stream, the end."""
    groups = [pages[at : at + per_stream] for at in range(0, len(pages), per_stream)]
    texts = [HEAD, *("".join(group) for group in groups), END]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(bz2.compress(text.encode()) for text in texts))
    return path


# --- the whole way

WIKIPEDIA = {"name": "Wikipedia", "version": "20260101", "kind": "documents"}
XTR_OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}
CORPUS_MINING = {"sample": 80, "keep": 20, "pairs": 40_000}  # four blocks of rounds


def of_documents(tiny, sources):
    """Return the settings of an experiment that learns from documents and then from mined pairs.

    `tiny` are those of configs/tiny.yaml, `sources` the folders of documents and of dumps.
    """
    tiny = {key: value for key, value in tiny.items() if key != "sweep"}
    coherent = {"context": {"weight": 0}, "coherence": {"weight": 1, "mining": CORPUS_MINING}}
    start = {"start_from": "context"}
    return tiny | {
        "languages": ["en", "de"],
        "segmenters": {"default": "sacremoses"},
        "vocabulary": tiny["vocabulary"] | {"size": 600},
        "sources": tiny["sources"] | sources,
        "corpora": [
            {"name": "DemoDocuments", "version": "v1", "kind": "documents"},
            WIKIPEDIA | {"languages": ["de"]},
        ],
        "objectives": XTR_OFF | {"context": {"weight": 1}},
        "systems": {
            "context": {},
            "coherent": {"objectives": coherent, "train": start, "iterations": 1},
        },
    }


def write_articles(dumps, count=120):
    """Write a German dump of articles of three sentences into the layout of the publisher."""
    text = "Das Haus {0} ist alt. Der Hund {0} sieht das Haus. Ein Kind kommt am Abend {0}."
    write_dump(dumps / DUMP, [page(at, text.format(at)) for at in range(count)], per_stream=5)


CODES = ("en", "de")  # languages that have documents
OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0, "width": 8}}
OWN = {"name": "Own", "version": "v1", "kind": "documents", "source": "nowhere"}
CONTEXT = {  # settings of a system that learns from documents
    "model": {"pooling": "mean-max", "max_tokens": 30, "dropout": 0.1, "attention_dropout": 0.1},
    "objectives": {**OFF, "context": {"weight": 1, "k": 2}},
    "corpora": [{**OWN, "languages": [*CODES]}],
}


def write_documents(path, documents):
    """A segmented file of documents, `<a>.tsv`, lists of texts; its lines count the blank ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for document in documents:
        lines += [f"{text}\t{at}\n" for at, text in enumerate(document, len(lines) + 1)]
        lines.append("\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def topical(count, code, seed):
    """`count` documents of 2 to 6 sentences, each with the words of one of four topics."""
    draw, words = random.Random(f"{seed} {code}"), lexicon(code)
    for _ in range(count):
        own = words[draw.randrange(4) :: 4]
        length = draw.randint(2, 6)
        yield [" ".join(draw.choices(own, k=draw.randint(1, 5))) for _ in range(length)]


def add_documents(toy):
    for part, count in (("training", 80), ("validation", 12)):
        for code in CODES:
            source = toy.folder / part / f"{code}.tsv"
            write_documents(source, topical(count, code, part))
            write_shards(source, toy.vocabulary, source.with_suffix(""), pairs=100)
            toy.documents[part].append(source.with_suffix(""))
    return toy
