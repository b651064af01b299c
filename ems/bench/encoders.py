"""The encoder of a system, by its kind.

    encoder                trained by this experiment: its model folder
    folder                 `model`: a model folder of ours, or of an imported checkpoint
    sentence-transformers  `model`: a folder or a name of the Hugging Face hub
    command                `command`: any program that turns lines into a .npy
    char-ngram             no model at all

Modules are named, not imported: a job runs again when the source of its own kind of encoder
changed.
"""

from importlib import import_module
from pathlib import Path

from ems.bench.task import LineEncoder
from ems.config import SystemSettings

OURS = ("model.json", "model.safetensors", "vocabulary.model")  # what encoding reads
MODULES = {
    "encoder": "ems.encode",
    "folder": "ems.encode",
    "sentence-transformers": "ems.bench.peers",
    "command": "ems.bench.peers",
    "char-ngram": "ems.bench.baselines",
}
CLASSES = {
    "encoder": "SentenceEncoder",
    "folder": "SentenceEncoder",
    "sentence-transformers": "SentenceTransformersEncoder",
    "command": "CommandEncoder",
    "char-ngram": "CharNgramEncoder",
}


def make_encoder(system: SystemSettings, trained: Path | None = None) -> LineEncoder:
    """The encoder of a system; `trained` is the model folder of one that the experiment trains.

    Raises `EmsError` when it cannot be loaded, or what it needs is not installed.
    """
    kind = system.kind
    cls = getattr(import_module(MODULES[kind]), CLASSES[kind])
    match kind:
        case "encoder":
            return cls(trained)
        case "folder":
            return cls(Path(system.place))
        case "command":
            return cls(system.place)
        case "char-ngram":
            return cls()
    return cls(system.place)


def model_files(system: SystemSettings) -> list[str]:
    """The files here that a system which is not trained here is made of: those of the folder that
    it names (no hidden ones, of our model folders those that are read), or that its command names.
    """
    if system.kind == "command":
        return [word for word in system.place.split() if Path(word).is_file()]
    folder = Path(system.place)
    if system.kind == "folder":
        return [str(folder / name) for name in OURS]
    found = sorted(path for path in folder.rglob("*") if path.is_file()) if system.place else []
    return [
        str(p) for p in found if not any(n.startswith(".") for n in p.relative_to(folder).parts)
    ]
