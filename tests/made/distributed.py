"""Processes under torchrun, and their program: losses over groups of negatives.

torchrun --standalone --nproc-per-node 2 tests/made/distributed.py OUT           losses
torchrun --standalone --nproc-per-node 2 tests/made/distributed.py FOLDER JOB ...  trainings
"""

import itertools
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional

from ems.base.errors import EmsError
from ems.commands import cli
from ems.model.objectives.contrastive import Groups
from ems.train import distributed
from ems.train import job as training
from ems.train.data import Verification
from ems.train.distributed import GradientSum, World, process_group

ROOT = Path(__file__).resolve().parents[2]
PAIRS, WIDTH = 12, 5
SIZES = [2, 3, 4, 6, 12]  # pairs a group; 6 pairs a process: in it, across it, all of the step


def torchrun(processes, *command):
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    words += ["--nproc-per-node", str(processes), "--", *map(str, command)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests", "CUDA_VISIBLE_DEVICES": ""}
    environment |= {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def made_pairs():
    """Both sides of PAIRS pairs, [PAIRS, WIDTH] each, and a linear map of them."""
    generator = torch.Generator().manual_seed(2)
    sides = torch.randn(2, PAIRS, WIDTH, dtype=torch.float64, generator=generator)
    start = torch.randn(WIDTH, WIDTH, dtype=torch.float64, generator=generator)
    return *sides, nn.ParameterList([nn.Parameter(start), nn.Parameter(start[0].clone())])


def grouped_loss(first, second, groups):
    """Both directions of a softmax over each group, summed over this process's anchors."""
    total = 0
    own = groups.positives(first.device).flatten()
    for anchors, others in ((first, second), (second, first)):
        scores = groups.anchors(anchors) @ groups.candidates(others).mT  # (n, a, size)
        total += functional.cross_entropy(scores.flatten(0, 1), own, reduction="sum")
    return total


def step_of_groups(world: World, size: int):
    """(loss, gradients) of one step of PAIRS pairs in groups of `size`, over all processes."""
    first, second, weights = made_pairs()
    gradients = GradientSum(weights, world)
    own = world.share(PAIRS)
    first, second = (side[own] @ weights[0] + weights[1] for side in (first, second))
    groups = Groups(size, len(first), own.start, PAIRS)
    loss = grouped_loss(first, second, groups) / PAIRS
    loss.backward()
    gradients.finish()
    return world.sum(loss).item(), [weight.grad.tolist() for weight in weights]


class Counted:
    """A shard that counts how often it is verified."""

    def __init__(self, sound=True):
        self.folder, self.sha256, self.sound, self.times = Path("x"), {}, sound, 0

    def check_sizes(self):
        """Find no fault: only a checksum shows that a shard is spoilt."""

    @property
    def files(self):
        self.times += 1
        if not self.sound:
            raise EmsError("spoilt")
        return []


def verification_of(shards, world, now):
    return Verification([SimpleNamespace(shards=shards)], world, now)


def verified(world: World, spoilt: int | None):
    """How often this process verifies each of seven shards, one maybe `spoilt`, and its error.

    Only the clock of the first process makes the run long.
    """
    shards = [Counted(at != spoilt) for at in range(7)]
    clock = itertools.count(step=1 if world.rank else 9_999)
    run = verification_of(shards, world, clock.__next__)
    run.step(1)
    error = error_of(run.settle)
    return [shard.times for shard in shards], error


def error_of(function, *arguments):
    """The message of its `EmsError`, or ""."""
    try:
        function(*arguments)
    except EmsError as error:
        return str(error)
    return ""


def compute_losses(out: Path):
    torch.set_num_threads(1)
    with process_group(torch.device("cpu")) as world:
        results = {str(size): step_of_groups(world, size) for size in SIZES}
        distributed.BUCKET = 1  # every parameter by itself
        results["small buckets"] = step_of_groups(world, 4)
        results["any"] = [world.any(flag) for flag in (world.rank == world.size - 1, False)]
        results["gathered"] = world.gather(world.rank)
        results["verified"] = [verified(world, spoilt) for spoilt in (None, 1)]
        results["same"] = [error_of(world.check_same, step) for step in (7, 7 + world.rank)]
    (out / f"rank{world.rank}.json").write_text(json.dumps(results))


def words(folder: Path, job: str, experiment: str = ""):
    out = folder / job
    command = ["train", "--experiment", experiment or job, "--system", "ems"]
    command += ["--shards", folder / "index.json", "--vocabulary", folder / "vocabulary.model"]
    command += ["--state", out / "state", "--out", out / "model", "--times", out / "times.jsonl"]
    return [str(word) for word in [*command, "--log", out / "log", "--costs", out / "costs.json"]]


def train_jobs(folder: Path, *jobs: str):
    """Train one experiment after the other, since a start costs seconds.

    `folder` has a `Toy` (made/train.py) and its experiments; the exit status of each process is
    left in FOLDER/JOB/status<rank>.
    """
    os.chdir(folder)  # where config.yaml is
    with process_group(torch.device("cpu")) as world:
        training.process_group = lambda device: nullcontext(world)  # the processes stay joined
        for job in jobs:
            (folder / job).mkdir(exist_ok=True)

            status = cli.main(words(folder, job))
            (folder / job / f"status{world.rank}").write_text(str(status))
            world.wait()


if __name__ == "__main__":
    run = train_jobs if len(sys.argv) > 2 else compute_losses
    run(Path(sys.argv[1]), *sys.argv[2:])
