"""Shared by the parts of gpu.py: sizes per device, steps to measure, printing of figures."""

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from gpu_report import MARK
from pairs_made import ROOT, SIZES, store_of
from sentencepiece import SentencePieceProcessor
from train_steps import Job

from ems.config.load import load_experiment, load_site
from ems.config.systems import SystemSettings
from ems.model.objectives.system import System
from ems.train.data import Data
from ems.train.distributed import World
from ems.train.job import letters_of
from ems.train.journal import Journal
from ems.train.measures import Scalars
from ems.train.step import Trainer

RECIPE = ("small62", "gpu-ten-minutes")  # experiment and system
FOREVER = 10**7  # steps
MARGIN = 3.0  # seconds before its limit in which a part ends by itself


class Size(NamedTuple):
    """An encoder to train: its sizes, its pieces, and the pairs of a step."""

    model: dict[str, int]
    pieces: int
    batch: int


@dataclass(frozen=True)
class Scale:
    """The amounts for a device: sizes, steps of `throughput` before and on the clock, and changes
    to the settings of RECIPE.
    """

    sizes: dict[str, Size]
    precision: str
    warm: int
    steps: int
    matrix: int  # rows and columns of the timed matrix product
    changes: dict[str, dict[str, Any]]
    table: int  # pieces of the table in `training`


def _small(layers: int, width: int) -> Size:
    model = {"layers": layers, "width": width, "heads": 4, "feed_forward": 2 * width}
    return Size(model, 5_000, 16)


SCALES = {
    "cuda": Scale(
        sizes={
            "ems": Size(SIZES["ems"], 60_000, 608),
            "lightweight": Size(SIZES["lightweight"], 50_000, 1024),
            "12x512": Size(SIZES["12x512"], 32_000, 1024),
        },
        precision="bfloat16",
        warm=15,  # every shape is compiled within these
        steps=40,
        matrix=8192,
        changes={"train": {"device": "cuda"}},
        table=32_000,
    ),
    "cpu": Scale(
        sizes={"ems": _small(6, 64), "lightweight": _small(2, 32), "12x512": _small(12, 32)},
        precision="float32",
        warm=2,
        steps=4,
        matrix=1024,
        changes={
            "model": {"table": 32, "ngrams": 1000},
            "train": {"device": "cpu", "batch_pairs": 32, "precision": "float32", "threads": 2},
        },
        table=5_000,
    ),
}


def emit(**figures: Any) -> None:
    """Print figures for gpu.py; bypasses the capturing of pytest."""
    print(MARK + json.dumps(figures), file=sys.__stdout__, flush=True)


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def job_of(options: argparse.Namespace, name: str) -> Job:
    """Return the steps of `throughput` at one of its sizes."""
    scale, device = SCALES[options.device], torch.device(options.device)
    size = scale.sizes[name]
    settings, store = store_of(options.folder / "data")
    settings = settings.overridden({"model": size.model})
    if device.type == "cpu":
        torch.set_num_threads(2)
    run = (size.batch, scale.warm, scale.steps, device, scale.precision, False)
    return Job(settings, store, size.pieces, *run, options.folder / f"scratch-{name}")


class Unsaved(Journal):
    """A journal without checkpoints, which are 3.6 GB each."""

    def _save(self) -> None:
        pass


def trainer_of(options: argparse.Namespace) -> tuple[Trainer, Journal]:
    """Return the trainer of RECIPE on the pairs of `data`, and its journal.

    The table has all pieces of the true vocabulary.
    """
    scale, device = SCALES[options.device], torch.device(options.device)
    _, store = store_of(options.folder / "data")
    train = dict.fromkeys(("steps", "checkpoint_every", "validate_every"), FOREVER)
    settings = recipe().overridden(scale.changes).overridden({"train": train})
    torch.set_num_threads(settings.train.threads)
    torch.manual_seed(1)
    system = System(settings, len(store.languages), scale.table, settings.train.precision)
    vocabulary = options.folder / "data/bpe.model"
    letters = letters_of(SentencePieceProcessor(model_file=str(vocabulary)))
    system.encoder.table.ngrams.letters[: len(letters)] = letters
    state = options.folder / "state"
    trainer = Trainer(system.to(device), settings.train, 1, store, state, device, World())
    trainer.waits = False  # a CPU behaves like a GPU
    journal = Unsaved(RECIPE[1], trainer, Data(store, None, vocabulary), Scalars(None))
    journal.resume()
    return trainer, journal


def recipe() -> SystemSettings:
    """Return the settings of RECIPE as its experiment has them."""
    experiment, system = RECIPE
    site = load_site(ROOT / "config.yaml")
    return load_experiment(experiment, site, ROOT / "configs").systems[system]
