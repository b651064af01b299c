"""The training loop of one system (EMS v2 section IV-C): Adam, warm-up, clip-free, resumable.

Notable choices:
- every step is a function of (seed, step) and the state before it: the batch is drawn with that key
  and the generator of dropout is seeded with it, so killed and resumed equals never killed, bit for
  bit;
- the state for resuming lives outside of what Snakemake and DVC delete, in a folder named by a
  hash;
- a loss that is not finite stops the run before the optimiser step; the last good checkpoint stays;
- the number of CPU threads is a setting of the experiment, since it changes the last bits of a sum.
"""

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ems.config import Experiment, stage_settings
from ems.config.provenance import digest, source_hash
from ems.errors import EmsError
from ems.files import atomic_path, sha256_file, write_json, write_text
from ems.model.device import choose_device, has_bfloat16
from ems.progress import Progress, log
from ems.shards.reader import PairStore
from ems.text.subwords import load_vocabulary
from ems.train.checkpoint import (
    Progressed,
    claimed,
    json_lines,
    load_checkpoint,
    save_checkpoint,
    save_tensors,
)
from ems.train.masking import Pieces
from ems.train.schedule import learning_rate
from ems.train.step import DeviceBatch, System
from ems.train.validate import validate

LOG_EVERY = 50  # steps between two lines of the loss log


@dataclass
class Data:
    """What a system is trained on, and the vocabulary that its shards were made with."""

    training: PairStore
    validation: PairStore | None
    vocabulary: Path


@dataclass
class Places:
    """Where a run writes: the model folder, the state for resuming, and the time per step."""

    out: Path
    state: Path
    times: Path | None = None


def train(experiment: Experiment, name: str, data: Data, places: Places) -> None:
    """Train system `name` and write its model folder; resume from the state when possible.

    The times, {"step", "pairs", "seconds"} for each row of the loss log, lie apart from the model:
    they differ from run to run, the model does not.
    """
    experiment = experiment.of_system(name)
    settings = experiment.systems[name]
    _check_vocabulary(data)
    identity = _identity(experiment, name, data)
    state = places.state / identity
    seed = settings["train"].get("seed", experiment.seed)
    device = choose_device(settings["train"]["device"])
    torch.set_num_threads(settings["train"]["threads"])
    torch.manual_seed(seed)
    vocabulary = load_vocabulary(data.vocabulary)
    precision = settings["train"]["precision"]
    if precision == "bfloat16" and not has_bfloat16(device):
        log.warning("train.precision: %s has no bfloat16 units; float32 is faster here", device)
    sizes = len(experiment.languages), vocabulary.get_piece_size()
    system = System(settings, *sizes, precision, Pieces.of(vocabulary)).to(device)
    run = Run(system, settings["train"], seed, data, state, device)
    with claimed(state):
        run.steps(name)
        if places.times:
            write_text(places.times, json_lines(run.done.times))
        _write_model(experiment, name, data.vocabulary, run, identity, places.out)
        shutil.rmtree(state, ignore_errors=True)


def _check_vocabulary(data: Data) -> None:
    expected = sha256_file(data.vocabulary)
    for store in filter(None, (data.training, data.validation)):
        if store.vocabulary_sha256 != expected:
            raise EmsError(
                f"{data.vocabulary}: the shards in {store.shards[0].folder.parent} were made with "
                "another vocabulary; run the shards stage again"
            )


def _identity(experiment: Experiment, name: str, data: Data) -> str:
    """Hash of all that the model depends on: settings, data, vocabulary, source."""
    stores = [data.training, *([data.validation] if data.validation else [])]
    shards = [shard.sha256 for store in stores for shard in store.shards]
    return digest(
        {
            "settings": stage_settings(experiment, "train", system=name),
            "shards": shards,
            "vocabulary": sha256_file(data.vocabulary),
            "source": source_hash("ems.train"),
        }
    )


class Run:
    """One training run: the system, its optimiser, and the loss log so far."""

    def __init__(
        self,
        system: System,
        settings: dict[str, Any],
        seed: int,
        data: Data,
        state: Path,
        device: torch.device,
    ) -> None:
        self.system, self.settings, self.seed = system, settings, seed
        self.data, self.state, self.device = data, state, device
        self.optimizer = torch.optim.Adam(
            system.parameters(), weight_decay=settings["weight_decay"], fused=True
        )
        self.done = Progressed()
        self.started = time.monotonic()

    def steps(self, name: str) -> None:
        """Run from the newest checkpoint (or from nothing) to the last step."""
        total = self.settings["steps"]
        self.done = load_checkpoint(self.state, self.system, self.optimizer)
        self.started = time.monotonic() - self.done.seconds
        start = self.done.step
        log.info("train %s: %s", name, f"resumed at step {start}" if start else "from step 0")
        log.info("train %s: %s", name, self._facts())
        if start == 0:
            self._validate(0)
        progress = Progress(f"train {name}", total - start, "steps")
        self.system.train()
        for step in range(start, total):
            parts = self._step(step)
            self.done.step = step + 1
            self._keep(step + 1, parts, last=step + 1 == total)
            progress.add(1, self._note(step + 1, parts))
        progress.close()

    def _keep(self, done: int, parts: dict[str, float], last: bool) -> None:
        """Log, validate and save after `done` steps, each when it is due and after the last
        step.
        """
        if done % LOG_EVERY == 0 or last:
            self._record("train", done, parts, lr=self._rate(done - 1))
        validating = done % self.settings["validate_every"] == 0 or last
        saving = done % self.settings["checkpoint_every"] == 0 or last
        if validating or saving:
            self._check_weights(done)
        if validating:
            self._validate(done)
        if saving:
            self.done.seconds = self._seconds()
            save_checkpoint(self.state, self.system, self.optimizer, self.done)
            log.info("checkpoint at step %d", done)

    def _note(self, done: int, parts: dict[str, float]) -> str:
        losses = ", ".join(f"{name} {value:.3f}" for name, value in parts.items())
        return f"{self.settings['batch_pairs']} pairs a step, step {done}, loss {losses}"

    def _facts(self) -> str:
        parameters = sum(value.numel() for value in self.system.parameters())
        pairs = int(self.data.training.sizes.sum())
        return f"{parameters:,} parameters, {pairs:,} pairs, {self.device}, " + json.dumps(
            self.settings
        )

    def _rate(self, step: int) -> float:
        s = self.settings
        return learning_rate(step, s["steps"], s["learning_rate"], s["warmup_steps"], s["schedule"])

    def _step(self, step: int) -> dict[str, float]:
        torch.manual_seed(self.seed * 1_000_003 + step)  # dropout as a function of (seed, step)
        s = self.settings
        batch = self.data.training.draw(self.seed, step, s["batch_pairs"], s["sampling_alpha"])
        batch = self.system.prepared(batch, self.seed, step)
        parts = self.system(DeviceBatch.of(batch, self.device))
        values = {name: float(value.detach()) for name, value in parts.items()}
        if not torch.isfinite(parts["total"]):
            raise self._diverged(f"the loss of step {step} is not finite ({values})")
        self.optimizer.zero_grad(set_to_none=True)
        parts["total"].backward()
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(step)
        self.optimizer.step()
        return values

    def _check_weights(self, done: int) -> None:
        """Raise `EmsError` when the last step spoiled a weight; its own loss was finite still."""
        for name, value in self.system.named_parameters():
            if not torch.isfinite(value).all():
                raise self._diverged(f"the weights {name} are not finite after {done} steps")

    def _diverged(self, found: str) -> EmsError:
        return EmsError(
            f"{found}; lower train.learning_rate or raise train.warmup_steps. "
            f"The checkpoints in {self.state} are from before it"
        )

    def _validate(self, step: int) -> None:
        if self.data.validation is None:
            return
        parts = validate(self.system, self.data.validation, self.settings["batch_pairs"])
        self._record("validation", step, parts)
        log.info("validation at step %d: %s", step, json.dumps(self.done.losses[-1]))

    def _record(self, part: str, step: int, values: dict[str, float], **more: float) -> None:
        row = {"part": part, "step": step, "pairs": step * self.settings["batch_pairs"]}
        rounded = {key: float(f"{value:.6g}") for key, value in {**values, **more}.items()}
        self.done.losses.append({**row, **rounded})
        self.done.times.append({"step": step, "pairs": row["pairs"], "seconds": self._seconds()})

    def _seconds(self) -> float:
        """Wall seconds of training up to now, those before a kill included."""
        return round(time.monotonic() - self.started, 2)


def _write_model(
    experiment: Experiment, name: str, vocabulary: Path, run: Run, identity: str, out: Path
) -> None:
    """The model folder: weights first, model.json last."""
    system = run.system
    for file, module in (
        ("model.safetensors", system.encoder),
        ("heads.safetensors", system.heads),
    ):
        with atomic_path(out / file) as temporary:
            save_tensors(module.state_dict(), temporary)
    with atomic_path(out / "vocabulary.model") as temporary:
        shutil.copyfile(vocabulary, temporary)
    write_text(out / "losses.jsonl", json_lines(run.done.losses))
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
