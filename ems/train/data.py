"""What a training is made from: shards, which are verified as it goes, and weights to start from.

The sizes of shards are looked at again before anything is saved. In a long run (more than an hour
is left by the median of its first steps) every byte is read once, before the first checkpoint, and
compared with the checksums. Several processes verify a share each and end with the same error.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ems.base.errors import Damaged, EmsError
from ems.base.files import ENCODER, HEADS, VOCABULARY, read_json, sha256_file
from ems.base.progress import clock, log
from ems.config.experiment import Experiment
from ems.model.folder import DESCRIPTION, read_model
from ems.model.objectives.system import Parts, System
from ems.shards.documents import DocumentStore, MinedStore
from ems.shards.index import TRAIN, Spoken, shards_of
from ems.shards.reader import PairStore
from ems.shards.shard import Shard, check_sizes, verify_shards
from ems.train.distributed import World

VALIDATION = "validation"  # the role of shards besides TRAIN
LONG = 3600.0  # seconds of training that are left
TIMED = 20  # steps that are timed


@dataclass
class Data:
    """The pairs of a training run, and the vocabulary that their shards were made with."""

    training: PairStore
    validation: PairStore | None
    vocabulary: Path
    held_out: PairStore | None = None  # documents to validate on besides, if it learns from some

    def stores(self) -> dict[str, PairStore]:
        roles = {"train": self.training, "validation": self.validation, "held out": self.held_out}
        return {role: store for role, store in roles.items() if store is not None}

    @property
    def validated(self) -> list[PairStore]:
        return [store for store in (self.validation, self.held_out) if store]


def training_data(
    settings: Parts,
    languages: list[str],
    index: dict[str, list[Path]],
    vocabulary: Path,
    mined: Path | None = None,
) -> Data:
    """Open the shards of an index (role -> folders), or the pairs that were `mined` in them."""
    objectives, limit = settings.objectives, settings.model.max_tokens
    share, held_out = settings.train.corpus_share, None
    held = validation_pairs(settings, languages, index)
    if bool(objectives.coherence.weight) != (mined is not None):
        found = "found none" if mined is None else f"found {mined}"
        expected = "mined pairs, for" if mined is None else "no mined pairs without"
        raise EmsError(f"--mined: expected {expected} objectives.coherence, {found}")
    folders = shards_of(index[TRAIN], languages, 1 if objectives.documents else 2)
    if not objectives.documents:
        training = PairStore(folders, languages, limit, share)
    elif mined:
        own = objectives.coherence
        training = MinedStore(mined, folders, languages, limit, own.k, own.target)
    else:
        k = objectives.context.k
        training = DocumentStore(folders, languages, limit, k, share)
        if others := shards_of(index[VALIDATION], languages, 1):
            held_out = DocumentStore(others, languages, limit, k)
    return Data(training, held, vocabulary, held_out)


def validation_pairs(
    settings: Parts, languages: list[str], index: dict[str, list[Path]]
) -> PairStore | None:
    """Open the pairs of an index to validate on; None where there are none."""
    folders = shards_of(index[VALIDATION], languages)
    return PairStore(folders, languages, settings.model.max_tokens) if folders else None


class Verification:
    """Verifies every byte of the shards once per start of a long run, and sizes at each save."""

    def __init__(
        self, stores: Iterable[PairStore], world: World, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.shards = [shard for store in stores for shard in store.shards]
        self.world, self.now = world, now
        self.starts: list[float] = []  # of steps
        self.left, self.due = 0, True

    def step(self, left: int) -> None:
        """Time a step that starts, the first of `left`; verify once TIMED steps are timed."""
        if not self.due:
            return
        self.left = left
        if len(self.starts) == TIMED:
            self.settle()
        self.starts.append(self.now())

    def settle(self) -> None:
        """Verify what is due, before anything is saved. Raises `EmsError` in all processes."""
        self._share(check_sizes)
        if not self.due or not self.starts:
            return
        seconds = self.left * float(np.median(np.diff([*self.starts, self.now()])))
        if self.world.any(seconds > LONG):
            log.info("%s of training are left: every byte of the shards is read", clock(seconds))
            self._share(verify_shards)
        self.due = False

    def _share(self, check: Callable[[Sequence[Shard]], None]) -> None:
        fault = ""
        try:
            check(self.shards[self.world.rank :: self.world.size])
        except EmsError as error:
            fault = str(error)
        if faults := list(filter(None, self.world.gathered(fault))):
            raise EmsError(faults[0])


@dataclass(frozen=True)
class Start:
    """The model folder that a training starts from."""

    folder: Path
    languages: list[str]  # of its heads
    sha256: str

    def load(self, system: System, languages: list[str]) -> None:
        """Load the encoder, plus every head that fits. Raises `EmsError` for other sizes."""
        encoder, heads = (_tensors(self.folder / name) for name in (ENCODER, HEADS))
        if other := _difference(system.encoder, encoder):
            raise EmsError(
                f"train.start_from: the encoder in {self.folder} has other sizes, {other}; set "
                "the same layers, width, heads, feed_forward and max_tokens"
            )
        system.encoder.load_state_dict(encoder)
        anew = []
        for name, head in system.heads.items():
            own = {key[len(name) + 1 :]: heads[key] for key in heads if key.startswith(f"{name}.")}
            if languages != self.languages or _difference(head, own):
                anew.append(name)
            else:
                head.load_state_dict(own)
        new = f"; these heads begin anew: {', '.join(anew)}" if anew else ""
        log.info("train: starts from the weights in %s%s", self.folder, new)


def start_of(
    experiment: Experiment, name: str, folder: Path | None, store: PairStore
) -> Start | None:
    """Return what the training of system `name` starts from; None for its own start values.

    Raises `EmsError` if only one of `folder` and `train.start_from` is set, and for a folder with
    another vocabulary than the shards of `store`.
    """
    setting = experiment.systems[name].train.start_from
    if setting and folder is None:
        advice = "give its model folder, `ems train --start`"
        raise EmsError(f"systems.{name}.train.start_from: {setting}; {advice}")
    if folder is None:
        return None
    if not setting:
        problem = f"systems.{name} has no train.start_from; set it to a system"
        raise EmsError(f"--start {folder}: {problem}")
    description = read_model(folder)
    languages = read_json(folder / DESCRIPTION, Spoken).languages  # without, heads would begin anew
    store.check_vocabulary(folder / VOCABULARY, f"give the model of {setting}")
    if sha256_file(folder / ENCODER) != description.sha256[ENCODER]:
        raise Damaged(folder / ENCODER, "its sha256 is not the one in model.json beside it")
    sha256 = " ".join(sha256_file(folder / file) for file in (ENCODER, HEADS))
    return Start(folder, languages, sha256)


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise Damaged(path, " ".join(str(error).split())) from None


def _difference(module: nn.Module, tensors: dict[str, Tensor]) -> str:
    """Return the first tensor that a module and a file do not share in the same shape, or ""."""
    own = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    given = {key: tuple(value.shape) for key, value in tensors.items()}
    for key in sorted(own.keys() | given.keys()):
        if own.get(key) != given.get(key):
            return f"{key}: {given.get(key, 'none')}, but {own.get(key, 'none')} here"
    return ""
