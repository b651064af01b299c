"""Processes under torchrun that train one experiment after the other, since a start costs seconds.

    torchrun --standalone --nproc-per-node 2 tests/made/distributed_train.py FOLDER JOB ...

FOLDER belongs to a `Toy` (made/train.py), JOB is an experiment in it. Each process writes its exit
status to FOLDER/JOB/status<rank>.
"""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

import torch

from ems.commands import cli
from ems.train import job as training
from ems.train.distributed import process_group


def words(folder: Path, job: str, experiment: str = ""):
    """`train ...` of an experiment into FOLDER/JOB."""
    out = folder / job
    command = ["train", "--experiment", experiment or job, "--system", "ems"]
    command += ["--shards", folder / "index.json", "--vocabulary", folder / "vocabulary.model"]
    command += ["--state", out / "state", "--out", out / "model", "--times", out / "times.jsonl"]
    return [str(word) for word in [*command, "--log", out / "log", "--costs", out / "costs.json"]]


def main(folder: Path, *jobs: str):
    os.chdir(folder)  # where config.yaml is
    with process_group(torch.device("cpu")) as world:
        training.process_group = lambda device: nullcontext(world)  # the processes stay joined
        for job in jobs:
            (folder / job).mkdir(exist_ok=True)

            status = cli.main(words(folder, job))
            (folder / job / f"status{world.rank}").write_text(str(status))
            world.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
