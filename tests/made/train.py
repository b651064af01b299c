"""Shards, a vocabulary and an experiment to train on in seconds, and runs that die on the way."""

import json
import signal

import pytest
from made.corpora import translations, write_lines
from made.experiments import MINIMAL, Settings, changed
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.shards.index import read_index, shards_in, write_index
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards
from ems.text.subwords import train_vocabulary
from ems.train import checkpoint, journal
from ems.train.data import Data, training_data
from ems.train.job import train
from ems.train.step import Trainer

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
        self.documents = {"training": [], "validation": []}  # folders (made/documents.py)
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
        """The experiment with `key={...}` laid over it."""
        return self.settings.changed(**changes)

    def shards(self, part):
        return [shard for pair in PAIRS for shard in shards_in(self.folder / part / pair)]

    def index(self):
        """The list of its shards, as the workflow makes it."""
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
        """Train into `folder`/model, state and times beside it; the model folder."""
        data = self.data(held_out, **changes)
        places = folder / "model", folder / "state", folder / "times.jsonl"
        train(self.experiment(**changes), "ems", data, *places, afresh=afresh)
        return folder / "model"


class Killed(BaseException):
    """What no `except` of the library catches."""


def train_until(toy, folder, step, **changes):
    """Train until the checkpoint of `step` is there, then die; the state folder of the run."""
    save = checkpoint.save_checkpoint

    def save_and_die(state, modules, optimizer, done, keep):
        save(state, modules, optimizer, done, keep)
        if done.step == step:
            raise Killed

    return _killed(toy, folder, (journal, "save_checkpoint", save_and_die), changes)


def train_into(toy, folder, step, **changes):
    """Train and die within `step`, some steps after a checkpoint; the state folder of the run."""
    one = Trainer.step

    def step_or_die(trainer, batch):
        if batch.step == step:
            raise Killed
        return one(trainer, batch)

    return _killed(toy, folder, (Trainer, "step", step_or_die), changes)


def signal_in_step(monkeypatch, step):
    """SIGTERM comes within `step` of a training."""
    one = Trainer.forward

    def forward(trainer, batch):
        if batch.step == step:
            signal.raise_signal(signal.SIGTERM)
        return one(trainer, batch)

    monkeypatch.setattr(Trainer, "forward", forward)


def train_stopped(toy, folder, step, **changes):
    """Train until SIGTERM comes within `step`, after which it ends with a checkpoint."""
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


def contents(folder):
    """Every byte of the files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def weights_of(folder):
    """The weights of a model folder by the names that they have in a checkpoint."""
    files = {"encoder.": "model", "heads.": "heads"}
    return {
        part + name: value
        for part, file in files.items()
        for name, value in load_file(folder / f"{file}.safetensors").items()
    }


def json_rows(path):
    """The objects of a .jsonl file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows(folder, part):
    """The rows of the loss log of a model folder that are of "train" or "validation"."""
    return [row for row in json_rows(folder / "losses.jsonl") if row["part"] == part]
