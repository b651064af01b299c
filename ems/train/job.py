"""Training one system as a job: from shards and a vocabulary to its model folder.

Notable choices:
- the state for resuming lives outside of what Snakemake and DVC delete, in a folder named by a
  hash; one process holds it;
- the number of CPU threads is a setting of the experiment, since it changes the last bits of a sum;
- of several processes the first one claims the state and writes the model.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceProcessor

from ems.config import Experiment, stage_settings
from ems.config.provenance import digest
from ems.damaged import Damaged
from ems.files import atomic_path, sha256_file, write_json, write_text
from ems.model.device import choose_device, has_bfloat16
from ems.objectives.masking import Pieces
from ems.objectives.system import System
from ems.progress import log
from ems.text.subwords import load_vocabulary
from ems.train.batches import Data
from ems.train.checkpoint import claimed, clean, json_lines, save_tensors
from ems.train.distributed import World, joined
from ems.train.fits import check_fits
from ems.train.identity import claim_identity, identity_of
from ems.train.journal import Journal
from ems.train.loop import run
from ems.train.scalars import Scalars
from ems.train.settings import TrainSettings
from ems.train.step import Trainer


@dataclass
class Places:
    """Where a run writes: the model folder, the state for resuming, the time per step, and (with
    `train.tensorboard`) the folder of its event file."""

    out: Path
    state: Path
    times: Path | None = None
    scalars: Path | None = None


def train(
    experiment: Experiment, name: str, data: Data, places: Places, afresh: bool = False
) -> None:
    """Train system `name` and write its model folder; resume from the state when possible.

    The times, {"step", "pairs", "seconds", "tokens", "wait"} for each row of the loss log, lie
    apart from the model: they differ from run to run, the model does not. Raises `EmsError` when
    the memory is too small for the model, when the state is that of other settings (unless
    `afresh`: it is deleted), when a loss is not finite, and, with the exit status for requeueing,
    after SIGTERM or SIGUSR1.
    """
    experiment = experiment.of_system(name)
    settings = experiment.systems[name]
    sha256 = _checked_vocabulary(data)
    vocabulary = load_vocabulary(data.vocabulary)
    pieces = vocabulary.get_piece_size()
    device = choose_device(settings.train.device)
    check_fits(name, settings, len(experiment.languages), pieces, device)
    for store in data.stores().values():
        store.check(pieces)
    identity = identity_of(experiment, name, data.stores(), sha256)
    seed = experiment.seed if settings.train.seed is None else settings.train.seed
    with joined(device) as world, _claimed(places.state, identity, afresh, world) as state:
        system = _untrained(experiment, name, vocabulary, seed, device)
        trainer = Trainer(system, settings.train, seed, data.training, state, device, world)
        writes = settings.train.tensorboard and world.leads
        with closing(Scalars(places.scalars if writes else None)) as scalars:
            done = run(trainer, Journal(name, trainer, data, scalars))
        if world.leads:
            if places.times:
                write_text(places.times, json_lines(done.times))
            _write_model(
                experiment, name, system, data.vocabulary, done.losses, digest(identity), places.out
            )


@contextmanager
def _claimed(folder: Path, identity: dict[str, Any], afresh: bool, world: World) -> Iterator[Path]:
    """The state folder of this identity; removed at the end, unless by an error. The first process
    holds it for all.
    """
    if not world.leads:
        world.wait()  # until it is claimed
        yield folder / digest(identity)
        world.wait()
        return
    with claimed(folder):
        state = claim_identity(folder, identity, afresh)
        clean(state)
        world.wait()
        yield state
        world.wait()  # until the others have read what they need
        shutil.rmtree(state)


def _untrained(
    experiment: Experiment,
    name: str,
    vocabulary: SentencePieceProcessor,
    seed: int,
    device: torch.device,
) -> System:
    """The system with its start values, a function of the seed; sets the number of threads."""
    settings = experiment.systems[name]
    torch.set_num_threads(settings.train.threads)
    torch.manual_seed(seed)
    _warn(settings.train, device)
    precision = settings.train.precision
    sizes = len(experiment.languages), vocabulary.get_piece_size()
    return System(settings, *sizes, precision, Pieces.of(vocabulary)).to(device)


def _warn(train: TrainSettings, device: torch.device) -> None:
    """Log settings that work, but hardly as they were meant."""
    if train.precision == "bfloat16" and not has_bfloat16(device):
        log.warning("train.precision: %s has no bfloat16 units; float32 is faster here", device)
    if 0 < train.steps < train.warmup_steps:
        log.warning(
            "train.warmup_steps: %d, but the training ends after %d, at a lower learning rate",
            train.warmup_steps,
            train.steps,
        )


def _checked_vocabulary(data: Data) -> str:
    """The sha256 of the vocabulary. Raises `Damaged` for shards that another one made."""
    expected = sha256_file(data.vocabulary)
    for store in data.stores().values():
        if store.vocabulary_sha256 != expected:
            folder = store.shards[0].folder.parent
            raise Damaged(data.vocabulary, f"the shards in {folder} were made with another one")
    return expected


def _write_model(
    experiment: Experiment,
    name: str,
    system: System,
    vocabulary: Path,
    losses: list[dict[str, Any]],
    identity: str,
    out: Path,
) -> None:
    """Write the model folder of a trained system: its weights first, model.json last."""
    for file, module in (
        ("model.safetensors", system.encoder),
        ("heads.safetensors", system.heads),
    ):
        with atomic_path(out / file) as temporary:
            save_tensors(module.state_dict(), temporary)
    with atomic_path(out / "vocabulary.model") as temporary:
        shutil.copyfile(vocabulary, temporary)
    write_text(out / "losses.jsonl", json_lines(losses))
    settings = stage_settings(experiment, "train", system=name)
    description = {
        "experiment": experiment.name,
        "name": name,
        "identity": identity,
        "model": settings["system"]["model"],
        "training": settings,
        "languages": list(experiment.languages),
        "segmenters": experiment.segmenters,
        "format_characters": experiment.clean.format_characters,
        "sha256": {
            file: sha256_file(out / file) for file in ("model.safetensors", "vocabulary.model")
        },
    }
    write_json(out / "model.json", description)
