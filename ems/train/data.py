"""Inputs of a training run: shards, which are verified on the way, and weights to start from. If
more than an hour is left, by the median of the first steps, every byte is compared with the
checksums before the first checkpoint; sizes are checked before anything is saved. Several
processes verify a share each and all raise the same error.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from ems.base.errors import EmsError, check, mistake
from ems.base.files import ENCODER, HEADS, VOCABULARY, check_sha256, read_json, sha256_file
from ems.base.progress import clock, log
from ems.config.experiment import Experiment
from ems.model.devices import read_tensors
from ems.model.folder import DESCRIPTION, read_model
from ems.model.objectives.system import Parts, System
from ems.shards.documents import DocumentStore, MinedStore
from ems.shards.index import TRAIN, LanguageList, shards_of
from ems.shards.reader import PairStore
from ems.shards.shard import Shard, check_sizes, verify_shards
from ems.train.distributed import World

Index = dict[str, list[Path]]  # role -> folders of shards
VALIDATION = "validation"  # role of shards, like TRAIN
LONG = 3600.0  # seconds of a run that is worth verifying every byte
TIMED = 20  # steps to time first


@dataclass
class Data:
    """The pairs or documents of a training run, and the vocabulary of their shards."""

    training: PairStore
    validation: PairStore | None
    vocabulary: Path
    held_out: PairStore | None = None  # documents to validate on, if it learns from documents

    def stores(self) -> dict[str, PairStore]:
        roles = {"train": self.training, "validation": self.validation, "held out": self.held_out}
        return {role: store for role, store in roles.items() if store is not None}


def training_data(
    settings: Parts, languages: list[str], index: Index, vocabulary: Path, mined: Path | None = None
) -> Data:
    """Open the shards of an index, or the pairs `mined` in them."""
    objectives, limit = settings.objectives, settings.model.max_tokens
    share, held_out = settings.train.corpus_share, None
    held = validation_pairs(settings, languages, index)
    needed, given = bool(objectives.coherence.weight), mined is not None
    check({"no mined pairs": needed > given, "unused mined pairs": needed < given}, mined=mined)
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


def validation_pairs(settings: Parts, languages: list[str], index: Index) -> PairStore | None:
    """Open the validation pairs of an index; None if it has none."""
    folders = shards_of(index[VALIDATION], languages)
    return PairStore(folders, languages, settings.model.max_tokens) if folders else None


class Verification:
    """Verifies the sizes of shards at each save, and all bytes once per start of a long run."""

    def __init__(
        self, stores: Iterable[PairStore], world: World, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.shards = [shard for store in stores for shard in store.shards]
        self.world, self.now = world, now
        self.starts: list[float] = []  # times at which steps began
        self.left, self.due = 0, True

    def step(self, left: int) -> None:
        """Time the start of a step, `left` steps before the end; verify after TIMED steps."""
        if not self.due:
            return
        self.left = left
        if len(self.starts) == TIMED:
            self.settle()
        self.starts.append(self.now())

    def settle(self) -> None:
        """Verify all that is due. Call before saving. Raises `EmsError` in all processes."""
        self._share(check_sizes)
        if not self.due or not self.starts:
            return
        seconds = self.left * float(np.median(np.diff([*self.starts, self.now()])))
        if self.world.any(seconds > LONG):
            log.info("%s of training are left: verifying every byte of the shards", clock(seconds))
            self._share(verify_shards)
        self.due = False

    def _share(self, check: Callable[[Sequence[Shard]], None]) -> None:
        fault = ""
        try:
            check(self.shards[self.world.rank :: self.world.size])
        except EmsError as error:
            fault = str(error)
        if faults := list(filter(None, self.world.gather(fault))):
            raise EmsError(faults[0])


@dataclass(frozen=True)
class Start:
    """The model folder that a training run starts from."""

    folder: Path
    languages: list[str]  # of its heads
    sha256: str

    def load(self, system: System, languages: list[str]) -> None:
        """Load the encoder, plus every head that fits. Raises `EmsError` for other sizes."""
        encoder, heads = (read_tensors(self.folder / name) for name in (ENCODER, HEADS))
        if other := _difference(system.encoder, encoder):
            raise mistake("sizes of the start", this=self, other=other)
        system.encoder.load_state_dict(encoder)
        anew = []
        for name, head in system.heads.items():
            own = {key[len(name) + 1 :]: heads[key] for key in heads if key.startswith(f"{name}.")}
            if languages != self.languages or _difference(head, own):
                anew.append(name)
            else:
                head.load_state_dict(own)
        new = f"; new heads: {', '.join(anew)}" if anew else ""
        log.info("train: starts from the weights in %s%s", self.folder, new)


def start_of(
    experiment: Experiment, name: str, folder: Path | None, store: PairStore
) -> Start | None:
    """Check the model folder that system `name` starts from; None: random weights. Raises
    `EmsError` if only one of `folder` and `train.start_from` is set, and if the folder's vocabulary
    is not the one of the shards of `store`.
    """
    setting = experiment.systems[name].train.start_from
    if setting and folder is None:
        raise mistake("no folder to start from", name=name, setting=setting)
    if folder is None:
        return None
    if not setting:
        raise mistake("no system to start from", name=name, folder=folder)
    description = read_model(folder)
    languages = read_json(folder / DESCRIPTION, LanguageList).languages  # keeps the heads
    store.check_vocabulary(folder / VOCABULARY, f"give the model of {setting}")
    check_sha256(folder / ENCODER, description.sha256[ENCODER], DESCRIPTION)
    sha256 = " ".join(sha256_file(folder / file) for file in (ENCODER, HEADS))
    return Start(folder, languages, sha256)


def _difference(module: nn.Module, tensors: dict[str, Tensor]) -> str:
    """Describe the first tensor that is missing or has another shape in one of the two, or ""."""
    own = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    saved = {key: tuple(value.shape) for key, value in tensors.items()}
    for key in sorted(own.keys() | saved.keys()):
        if own.get(key) != saved.get(key):
            return f"{key}: {saved.get(key, 'none')}, but {own.get(key, 'none')} here"
    return ""
