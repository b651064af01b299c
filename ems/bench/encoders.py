"""The encoder of a system, by its kind.

    encoder                trained by this experiment: its model folder
    char-ngram             n-grams of letters; with `idf`: the folder of their weights
    fused                  an encoder of this experiment and n-grams: the folder of their weights
    folder                 `model`: a folder of one of these, imported or exported ones too
    sentence-transformers  `model`: a folder or a name of the Hugging Face hub
    command                `command`: any program that turns lines into a .npy

Modules are named, not imported: a job runs again when the source of its own kind of encoder
changed.
"""

from collections.abc import Iterable
from glob import escape, glob
from importlib import import_module
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import visible_files
from ems.bench.task import LineEncoder
from ems.config.systems import SystemSettings
from ems.model.char_ngrams.folder import files_of

CLASSES = {
    "encoder": "ems.model.encode.SentenceEncoder",
    "folder": "ems.model.char_ngrams.fused.opened",
    "sentence-transformers": "ems.bench.peers.SentenceTransformersEncoder",
    "command": "ems.bench.peers.CommandEncoder",
    "char-ngram": "ems.model.char_ngrams.encoder.NgramEncoder",
    "fused": "ems.model.char_ngrams.fused.FusedEncoder",
}
MODULES = {kind: name.rpartition(".")[0] for kind, name in CLASSES.items()}


def make_encoder(system: SystemSettings, trained: Path | None = None) -> LineEncoder:
    """Return the encoder of a system; `trained` is the model folder of one trained or fitted here.

    Raises `EmsError` when it cannot be loaded, or what it needs is not installed or not given.
    """
    module, _, name = CLASSES[system.kind].rpartition(".")
    cls = getattr(import_module(module), name)
    if (system.trained or system.fitted) and trained is None:
        raise EmsError(f"kind: {system.kind} has a model folder; give it by --model")
    match system.kind:
        case "encoder" | "fused":
            return cls(trained)
        case "folder":
            return cls(Path(system.place))
        case "char-ngram":
            return cls.of(trained) if system.fitted else cls(system.ngrams)
    return cls(system.place)


def model_files(system: SystemSettings) -> list[str]:
    """Return local files that an external system depends on: its model folder, or files of its
    command.

    Hidden files do not count, and of our model folders only the files that encoding reads, or of
    exported ones the files that have the checksums of all.
    """
    if system.kind == "command":
        return command_files(system.place.split())
    folder = Path(system.place)
    if system.kind == "folder":
        return list(map(str, files_of(folder)))
    return [str(path) for path in visible_files(folder)] if system.place else []


def command_files(words: Iterable[str]) -> list[str]:
    """Return the local files among the words of a command; `{language}` in a word is any text."""
    patterns = [escape(word).replace("{language}", "*") for word in words]
    return [path for each in patterns for path in sorted(glob(each)) if Path(path).is_file()]
