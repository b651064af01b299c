"""The state folder of a system: its lock, and the identity of the run that it belongs to.

The identity is everything that a model depends on; checkpoints lie in a folder named by its hash.
A run that finds checkpoints of another identity stops and lists the differences, so that hours of
training are neither resumed under wrong settings nor thrown away silently.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.files import check_state, read_json, write_json
from ems.base.progress import log
from ems.base.provenance import digest, source_hash
from ems.base.schema import Json
from ems.config.experiment import Experiment
from ems.config.stages import stage_settings
from ems.shards.reader import PairStore
from ems.train import AFRESH
from ems.train.checkpoint import checkpoints, step_of

FILE = "identity.json"
Identity = Json


def identity_of(
    experiment: Experiment,
    name: str,
    stores: dict[str, PairStore],
    vocabulary: str,
    start: str = "",
) -> Identity:
    """Return the identity of a run of system `name`. `vocabulary` is a sha256, and so is `start`,
    of the weights that it starts from ("": its own).
    """
    return {
        "settings": stage_settings(experiment, "train", system=name),
        "shards": {role: store.contents for role, store in stores.items()},
        "vocabulary": vocabulary,
        "source": source_hash("ems.train"),
        **({"start": start} if start else {}),
    }


@contextmanager
def claimed(state: Path) -> Iterator[None]:
    """Lock the state folder of a system; at the end, remove it if nothing else is in it.

    The kernel holds the lock (flock), so it ends with the process. Raises `EmsError` if another
    process holds it.
    """
    check_state(state, ("identity.json", "step-", "bad-batch-"))
    state.mkdir(parents=True, exist_ok=True)
    with open(state / "lock", "a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = os.fstat(handle.fileno()).st_ino == (state / "lock").stat().st_ino
        except (BlockingIOError, FileNotFoundError):  # the latter: its holder has just finished
            locked = False
        except OSError as error:
            log.warning("%s: no locks in this file system (%s); going on without", state, error)
            locked = True
        if not locked:
            raise EmsError(
                f"{state}: another process is training this system now; wait for it or stop it"
            )
        yield
        if [path.name for path in state.iterdir()] == ["lock"]:
            shutil.rmtree(state)


def claim_identity(state: Path, identity: Identity, afresh: bool = False) -> Path:
    """Return the folder of this identity in the state folder, which the caller has locked.

    Raises `EmsError` with the differences if there are checkpoints of another identity; `afresh`
    deletes those instead. Folders without a checkpoint and what a kill left half written go.
    """
    own = state / digest(identity)
    for other in sorted(path for path in state.iterdir() if path.is_dir() and path != own):
        if checkpoints(other):
            if not afresh:
                raise EmsError(_refusal(other, identity))
            log.warning("%s: checkpoints of other settings, deleted as asked", other)
        shutil.rmtree(other)
    for path in own.glob(".*.part"):
        log.info("%s: left by a run that was killed; removed", path)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not (own / FILE).exists():
        write_json(own / FILE, identity)
    return own


def asked_afresh(flag: bool) -> bool:
    """Return whether the user wants to start anew: by the flag, or through the workflow."""
    return flag or bool(os.environ.get(AFRESH))


def _refusal(folder: Path, identity: Identity) -> str:
    try:
        saved = read_json(folder / FILE, Json)
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


def _flat(value: Any, key: str = "") -> Json:
    """Flatten nested mappings; keys are joined by dots."""
    if not isinstance(value, dict):
        return {key: value}
    parts = [_flat(inner, f"{key}.{name}" if key else name) for name, inner in value.items()]
    return {name: inner for part in parts for name, inner in part.items()}
