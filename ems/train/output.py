"""The model folder that training leaves: weights first, model.json last."""

import shutil
from pathlib import Path

from ems.config import Experiment, stage_settings
from ems.files import atomic_path, sha256_file, write_json, write_text
from ems.objectives.system import System
from ems.train.checkpoint import json_lines, save_tensors


def write_model(
    experiment: Experiment,
    name: str,
    vocabulary: Path,
    system: System,
    losses: list[dict[str, float]],
    identity: str,
    out: Path,
) -> None:
    """Write encoder, heads, vocabulary, loss log and model.json of a trained system to `out`."""
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
        "format_characters": experiment.clean["format_characters"],
        "sha256": {
            file: sha256_file(out / file) for file in ("model.safetensors", "vocabulary.model")
        },
    }
    write_json(out / "model.json", description)
