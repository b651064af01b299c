"""What a run is of: all that its model depends on, and the refusal to resume anything else.

The checkpoints of a system lie in a folder named by a hash of this identity, with the identity
itself beside them (identity.json). A run that finds checkpoints of another one stops and lists what
differs: hours of training are neither picked up under wrong settings nor thrown away silently.
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
ABSENT = "(none)"


def identity_of(
    experiment: Experiment, name: str, stores: dict[str, PairStore], vocabulary: str
) -> dict[str, Any]:
    """Settings, shards by role, vocabulary (its sha256) and source of a run of system `name`."""
    return {
        "settings": stage_settings(experiment, "train", system=name),
        "shards": {role: _shards(store) for role, store in stores.items()},
        "vocabulary": vocabulary,
        "source": source_hash("ems.train"),
    }


def _shards(store: PairStore) -> str:
    """The shards of a role in a few words that differ when a byte of them does."""
    pairs = int(store.sizes.sum())
    return f"{pairs:,} pairs, sha256 {digest([shard.sha256 for shard in store.shards])}"


def claim_identity(state: Path, identity: dict[str, Any], afresh: bool = False) -> Path:
    """The folder of this identity in the state folder of a system, which the caller holds.

    Raises `EmsError` that lists the differences when there are checkpoints of another identity;
    `afresh` deletes those instead, and says so. Folders without a checkpoint hold nothing to lose
    and go.
    """
    own = state / digest(identity)
    for other in sorted(path for path in state.iterdir() if path.is_dir() and path != own):
        if not checkpoints(other):
            shutil.rmtree(other)
        elif afresh:
            log.warning("%s: checkpoints of other settings, deleted as asked", other)
            shutil.rmtree(other)
        else:
            raise EmsError(_refusal(other, identity))
    if not (own / FILE).exists():
        write_json(own / FILE, identity)
    return own


def asked_afresh(flag: bool) -> bool:
    """Whether the user wants to start anew: by the flag, or through the workflow."""
    return flag or bool(os.environ.get(AFRESH))


def _refusal(folder: Path, identity: dict[str, Any]) -> str:
    step = step_of(checkpoints(folder)[-1])
    return (
        f"{folder}: an unfinished run of this system is at step {step:,}, of other settings: "
        f"{'; '.join(differences(_saved(folder), identity))}. Set it back to go on from there; to "
        "train from step 0 delete that folder, or say `ems train --afresh`, or "
        "`snakemake --config afresh=true -- ...`"
    )


def _saved(folder: Path) -> dict[str, Any]:
    try:
        return read_json(folder / FILE, {"type": "object"})
    except EmsError:
        return {}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """One text for each key that differs, `settings.train.seed 3 -> 4`; the source is one line."""
    before, after = _flat(old), _flat(new)
    changed = [key for key in sorted(before | after) if before.get(key) != after.get(key)]
    return [_difference(key, before.get(key, ABSENT), after.get(key, ABSENT)) for key in changed]


def _difference(key: str, old: Any, new: Any) -> str:
    if key == "source":
        return "the source of ems.train"
    return f"{key.removeprefix('settings.')} {old} -> {new}"


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots."""
    if not isinstance(value, dict):
        return {key: value}
    parts = [_flat(inner, f"{key}.{name}" if key else name) for name, inner in value.items()]
    return {name: inner for part in parts for name, inner in part.items()}
