"""Start a training from the final weights of another system (`train.start_from`)."""

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ems.base.errors import Damaged, EmsError
from ems.base.files import ENCODER, HEADS, VOCABULARY, read_json, sha256_file
from ems.base.progress import log
from ems.base.schema import Below, Record, Text
from ems.config.experiment import Experiment
from ems.model.objectives.system import System
from ems.shards.reader import PairStore


class _Model(Record):
    """Of the model.json that a training starts from."""

    languages: list[Text]
    sha256: dict[Below, Text]


@dataclass(frozen=True)
class Start:
    """The model folder that a training starts from; `languages` are those of its heads."""

    folder: Path
    languages: list[str]
    sha256: str

    def load(self, system: System, languages: list[str]) -> None:
        """Give a system with these languages the encoder of the folder, and those of its heads that
        have the same sizes and languages. Raises `EmsError` for an encoder of other sizes.
        """
        encoder, heads = (_tensors(self.folder / name) for name in (ENCODER, HEADS))
        if other := _others(system.encoder, encoder):
            raise EmsError(
                f"train.start_from: the encoder in {self.folder} has other sizes, {other[0]}; set "
                "the same layers, width, heads, feed_forward and max_tokens"
            )
        system.encoder.load_state_dict(encoder)
        anew = []
        for name, head in system.heads.items():
            own = {
                key.removeprefix(f"{name}."): value
                for key, value in heads.items()
                if key.startswith(f"{name}.")
            }
            if languages != self.languages or _others(head, own):
                anew.append(name)
            else:
                head.load_state_dict(own)
        new = f"; these heads begin anew: {', '.join(anew)}" if anew else ""
        log.info("train: starts from the weights in %s%s", self.folder, new)


def start_of(
    experiment: Experiment, name: str, folder: Path | None, store: PairStore
) -> Start | None:
    """Return what the training of system `name` starts from; None for its own start values.

    `store` has its shards. Raises `EmsError` unless `folder` is given where `train.start_from` is
    set, and there alone, and for a folder with another vocabulary than theirs.
    """
    setting = experiment.systems[name].train.start_from
    if setting and folder is None:
        raise EmsError(
            f"systems.{name}.train.start_from: {setting}; give its model folder, "
            "`ems train --start`"
        )
    if folder is None:
        return None
    if not setting:
        raise EmsError(
            f"--start {folder}: systems.{name} has no train.start_from; set it to a system"
        )
    description = read_json(folder / "model.json", _Model)
    store.check_vocabulary(folder / VOCABULARY, f"give the model of {setting}")
    if sha256_file(folder / ENCODER) != description.sha256.get(ENCODER):
        raise Damaged(folder / ENCODER, "its sha256 is not the one in model.json beside it")
    sha256 = " ".join(sha256_file(folder / file) for file in (ENCODER, HEADS))
    return Start(folder, description.languages, sha256)


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise Damaged(path, " ".join(str(error).split())) from None


def _others(module: nn.Module, tensors: dict[str, Tensor]) -> list[str]:
    """Return the tensors that a module and a file do not share, or not in the same shape."""
    own = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    given = {key: tuple(value.shape) for key, value in tensors.items()}
    return [
        f"{key}: {given.get(key, 'none')}, but {own.get(key, 'none')} here"
        for key in sorted(own.keys() | given.keys())
        if own.get(key) != given.get(key)
    ]
