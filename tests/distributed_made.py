"""Processes that torchrun starts, and what they run: losses over groups of negatives.

torchrun --standalone --nproc-per-node 2 tests/distributed_made.py OUT
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from ems.objectives.negatives import Groups
from ems.train import distributed
from ems.train.distributed import GradientSum, World, joined

ROOT = Path(__file__).resolve().parents[1]
PAIRS, WIDTH = 12, 5
SIZES = [2, 3, 4, 6, 12]  # pairs a group; 6 pairs a process: in it, across it, all of the step


def torchrun(processes, *command, cwd=ROOT, expect=0):
    """Run a command line of torchrun's; its output, or the failure of the test."""
    done = start(processes, *command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = done.communicate(timeout=240)
    if expect is not None:
        assert done.returncode == expect, output[-6000:]
    return output


def start(processes, *command, cwd=ROOT, **more):
    """A started torchrun, in a session of its own."""
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    words += ["--nproc-per-node", str(processes), *map(str, command)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        words, cwd=cwd, env=environment, text=True, start_new_session=True, **more
    )


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


def main(out: Path):
    torch.set_num_threads(1)
    with joined(torch.device("cpu")) as world:
        found = {str(size): step_of_groups(world, size) for size in SIZES}
        distributed.BUCKET = 1  # every parameter by itself
        found["small buckets"] = step_of_groups(world, 4)
        found["any"] = [world.any(flag) for flag in (world.rank == world.size - 1, False)]
        found["same"] = []
        for step in (7, 7 + world.rank):
            try:
                world.check_same(step)
                found["same"].append("")
            except distributed.EmsError as error:
                found["same"].append(str(error))
    (out / f"rank{world.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
