"""The identity of a run: everything that its model depends on.

The checkpoints of a run lie in a folder named by a hash of it. A run that finds checkpoints of
another identity stops and lists the differences, so that hours of training are neither resumed
under wrong settings nor thrown away silently.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from ems.config import Experiment, stage_settings
from ems.config.provenance import digest, source_hash
from ems.errors import EmsError
from ems.files import read_json, write_json
from ems.progress import log
from ems.shards.reader import PairStore
from ems.train import AFRESH
from ems.train.checkpoint import checkpoints, step_of

FILE = "identity.json"
Identity = dict[str, Any]  # any JSON


def identity_of(
    experiment: Experiment, name: str, stores: dict[str, PairStore], vocabulary: str
) -> Identity:
    """Return the identity of a run of system `name`; `vocabulary` is a sha256."""
    shards = {
        role: f"{int(store.sizes.sum()):,} pairs, sha256 "
        f"{digest([shard.sha256 for shard in store.shards])}"
        for role, store in stores.items()
    }
    return {
        "settings": stage_settings(experiment, "train", system=name),
        "shards": shards,
        "vocabulary": vocabulary,
        "source": source_hash("ems.train"),
    }


def claim_identity(state: Path, identity: Identity, afresh: bool = False) -> Path:
    """Return the folder of this identity in the state folder, which the caller has locked.

    Raises `EmsError` with the differences if there are checkpoints of another identity; `afresh`
    deletes those instead. Folders without a checkpoint are always deleted.
    """
    own = state / digest(identity)
    for other in sorted(path for path in state.iterdir() if path.is_dir() and path != own):
        if checkpoints(other):
            if not afresh:
                raise EmsError(_refusal(other, identity))
            log.warning("%s: checkpoints of other settings, deleted as asked", other)
        shutil.rmtree(other)
    if not (own / FILE).exists():
        write_json(own / FILE, identity)
    return own


def asked_afresh(flag: bool) -> bool:
    """Return whether the user wants to start anew: by the flag, or through the workflow."""
    return flag or bool(os.environ.get(AFRESH))


def _refusal(folder: Path, identity: Identity) -> str:
    try:
        saved = read_json(folder / FILE, {"type": "object"})
    except EmsError:
        saved = {}
    return (
        f"{folder}: an unfinished run of this system is at step "
        f"{step_of(checkpoints(folder)[-1]):,}, of other settings: "
        f"{'; '.join(differences(saved, identity))}. Set it back to go on from there; to "
        "train from step 0 delete that folder, or say `ems train --afresh`, or "
        "`snakemake --config afresh=true -- ...`"
    )


def differences(old: Identity, new: Identity) -> list[str]:
    """Describe each key that differs, as `train.seed 3 -> 4`; the source is one line."""
    before, after = _flat(old), _flat(new)
    changed = [key for key in sorted(before | after) if before.get(key) != after.get(key)]
    return [
        "the source of ems.train"
        if key == "source"
        else f"{key.removeprefix('settings.')} {before.get(key, '(none)')} -> "
        f"{after.get(key, '(none)')}"
        for key in changed
    ]


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """Flatten nested mappings; keys are joined by dots."""
    if not isinstance(value, dict):
        return {key: value}
    parts = [_flat(inner, f"{key}.{name}" if key else name) for name, inner in value.items()]
    return {name: inner for part in parts for name, inner in part.items()}
