"""The training of one system as a job: from shards and a vocabulary to a model folder.

The state for resuming is in a folder that neither Snakemake nor DVC deletes. The first of several
processes locks it and writes the model. Checkpoints are in a folder named by the hash of the run's
identity: all that a model depends on. A run that finds ones of another identity stops and says why.
"""

import fcntl
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

import torch
from anyascii import anyascii
from sentencepiece import SentencePieceProcessor
from torch import Tensor

from ems.base import files
from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import ENCODER, VOCABULARY, read_json, sha256_file, write_json, write_text
from ems.base.progress import log
from ems.base.provenance import digest, source_hash
from ems.base.records import Json
from ems.config.experiment import Experiment
from ems.config.file import AFRESH
from ems.config.stages import differences, stage_settings
from ems.model.devices import check_precision, choose_device, has_bfloat16, save_model
from ems.model.objectives.masking import Pieces
from ems.model.objectives.system import Parts, System
from ems.model.table import GAP, LONGEST
from ems.text.subwords import load_vocabulary
from ems.train.checkpoint import checkpoints, json_lines, step_of
from ems.train.data import Data, start_of
from ems.train.distributed import World, process_group
from ems.train.journal import Journal
from ems.train.measures import LogRow, Scalars
from ems.train.memory import check_fits, keep_freed
from ems.train.step import Trainer

IDENTITY = "identity.json"
OTHER = re.compile("[^a-z0-9]+")


def train(
    experiment: Experiment,
    name: str,
    data: Data,
    out: Path,
    state: Path,
    times: Path | None = None,
    scalars: Path | None = None,
    start: Path | None = None,
    afresh: bool = False,
) -> None:
    """Train system `name` and write its model folder `out`; resume from `state` if possible.

    `times`: log of times, which differ from run to run; `scalars`: folder of TensorBoard's event
    file; `start`: model folder to start from; `afresh` (or the variable AFRESH): delete the state
    of other settings. Raises `EmsError` for too little memory, a state of other settings, a loss
    that is not finite and, with the status for requeueing, after SIGTERM or SIGUSR1.
    """
    experiment = experiment.of_system(name)
    settings = experiment.systems[name]
    sha256 = _checked_vocabulary(data)
    vocabulary = load_vocabulary(data.vocabulary)
    pieces = vocabulary.get_piece_size()
    device = choose_device(settings.train.device)
    check_precision(settings.train.precision, device)
    check_fits(name, settings, len(experiment.languages), pieces, device)
    keep_freed()
    for store in data.stores().values():
        store.check(pieces)
    weights = start_of(experiment, name, start, data.training)
    identity = {
        "settings": stage_settings(experiment, "train", system=name),
        "shards": {role: store.contents for role, store in data.stores().items()},
        "vocabulary": sha256,
        "source": source_hash("ems.train.job"),
        **({"start": weights.sha256} if weights else {}),
    }
    seed = experiment.seed if settings.train.seed is None else settings.train.seed
    afresh = afresh or bool(os.environ.get(AFRESH))
    with process_group(device) as world, _claimed(state, identity, afresh, world) as folder:
        torch.set_num_threads(settings.train.threads)  # changes the last bits of sums
        torch.manual_seed(seed)
        system = _untrained(settings, len(experiment.languages), vocabulary, device)
        if weights:
            weights.load(system, list(experiment.languages))
        trainer = Trainer(system, settings.train, seed, data.training, folder, device, world)
        writes = settings.train.tensorboard and world.leads
        with closing(Scalars(scalars if writes else None)) as events:
            journal = Journal(name, trainer, data, events)
            journal.run()
        if world.leads:
            if times:
                write_text(times, json_lines(journal.done.times))
            save_model(out, system.encoder.state_dict(), system.heads.state_dict(), data.vocabulary)
            write_text(out / "losses.jsonl", json_lines(journal.done.losses))
            _describe(experiment, name, digest(identity), journal.best(), out)


def _checked_vocabulary(data: Data) -> str:
    """Return the sha256 of the vocabulary. Raises `Damaged` if the shards have another one."""
    expected = sha256_file(data.vocabulary)
    for store in data.stores().values():
        if store.vocabulary_sha256 != expected:
            folder = store.shards[0].folder.parent
            raise Damaged(data.vocabulary, f"the shards in {folder} were made with another one")
    return expected


@contextmanager
def _claimed(folder: Path, identity: Json, afresh: bool, world: World) -> Iterator[Path]:
    """Lock the state folder of this identity for all processes; delete it after success."""
    state = folder / digest(identity)
    with claimed(folder) if world.leads else nullcontext():
        if world.leads:
            claim_identity(folder, identity, afresh)
        world.wait()  # for the lock
        yield state
        world.wait()  # for processes that still read
        if world.leads:
            shutil.rmtree(state)


@contextmanager
def claimed(state: Path) -> Iterator[None]:
    """Lock the state folder of a system; at the end, remove it if it is empty. The lock ends with
    the process, since the kernel holds it (flock). Raises `EmsError` if another process has it.
    """
    files.claim_state(state)
    with open(state / "lock", "a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = os.fstat(handle.fileno()).st_ino == (state / "lock").stat().st_ino
        except (BlockingIOError, FileNotFoundError):  # the latter: its owner has just finished
            locked = False
        except OSError as error:
            log.warning("%s: no locks in this file system (%s); going on without", state, error)
            locked = True
        if not locked:
            raise mistake("trained elsewhere", state=state)
        yield
        if {path.name for path in state.iterdir()} <= {"lock", files.MARK}:
            files.drop_state(state)


def claim_identity(state: Path, identity: Json, afresh: bool = False) -> Path:
    """Return the folder of this identity in a locked state folder, without leftovers of a kill.
    Raises `EmsError` if there are checkpoints of another identity; `afresh` deletes them instead.
    """
    own = state / digest(identity)
    for other in sorted(path for path in state.iterdir() if path.is_dir() and path != own):
        if checkpoints(other):
            if not afresh:
                saved: Json = {}
                with suppress(EmsError):
                    saved = read_json(other / IDENTITY, Json)
                step, changes = step_of(checkpoints(other)[-1]), differences(saved, identity)
                raise mistake("unfinished run", other=other, step=step, changes="; ".join(changes))
            log.warning("%s: deleted checkpoints of other settings, because of `afresh`", other)
        shutil.rmtree(other)
    for path in own.glob(".*.part"):
        log.info("%s: removed an unfinished file of a killed run", path)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not (own / IDENTITY).exists():
        write_json(own / IDENTITY, identity)
    return own


def _untrained(
    settings: Parts, languages: int, vocabulary: SentencePieceProcessor, device: torch.device
) -> System:
    train = settings.train
    if train.precision == "bfloat16" and not has_bfloat16(device):
        log.warning("train.precision: %s has no bfloat16 units; float32 is faster here", device)
    if 0 < train.steps < train.warmup_steps:
        message = "train.warmup_steps: %d, but training ends after %d steps, below the full rate"
        log.warning(message, train.warmup_steps, train.steps)
    pieces = vocabulary.get_piece_size()
    system = System(settings, languages, pieces, train.precision, Pieces.classify(vocabulary))
    if settings.model.ngrams:
        system.encoder.table.ngrams.letters.copy_(letters_of(vocabulary))
    return system.to(device)


def letters_of(vocabulary: SentencePieceProcessor) -> Tensor:
    """Spell each piece, uint8[pieces, LONGEST]: letters, digits and gaps, padded with 0."""
    letters = torch.zeros(vocabulary.get_piece_size(), LONGEST, dtype=torch.uint8)
    for i in range(len(letters)):
        symbol = vocabulary.is_control(i) or vocabulary.is_unknown(i) or vocabulary.is_byte(i)
        spelling = " " if symbol else "".join(map(_spell, vocabulary.id_to_piece(i)))
        codes = list(spelling.encode()[:LONGEST])
        letters[i, : len(codes)] = torch.tensor(codes, dtype=torch.uint8)
    return letters


def _spell(character: str) -> str:
    """Romanise a character: punctuation is a gap, a soft sign is nothing."""
    letters = OTHER.sub("", anyascii(character).lower())
    mute = unicodedata.category(character)[0] in "LM"  # a letter or mark
    return letters if letters or mute else chr(GAP)


def _describe(
    experiment: Experiment, name: str, identity: str, best: LogRow | None, out: Path
) -> None:
    """Write model.json, which completes the folder; `best`: the validation of the kept step."""
    settings = stage_settings(experiment, "train", system=name)
    description = {
        "experiment": experiment.name,
        "name": name,
        "identity": identity,
        **({"step": best["step"]} if best else {}),
        "model": settings["system"]["model"],
        "training": settings,
        "languages": list(experiment.languages),
        "segmenters": experiment.segmenters,
        "format_characters": experiment.clean.format_characters,
        "sha256": {name: sha256_file(out / name) for name in (ENCODER, VOCABULARY)},
    }
    write_json(out / "model.json", description)
