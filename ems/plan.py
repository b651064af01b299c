"""What a run is going to do, checked as a whole before any job starts.

The Snakefile and `ems check` call `plan`: the site's settings, the experiment, its corpora and
segmenters.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.config import Experiment, load_experiment, load_site
from ems.corpora.by_opustools import OPUSTOOLS, opus_get
from ems.corpora.catalogue import check_corpora
from ems.errors import EmsError
from ems.evalsets.check import check_evalsets
from ems.text.segment import check_available


@dataclass(frozen=True)
class Plan:
    """The site's settings and the experiment that they name."""

    site: dict[str, Any]
    experiment: Experiment


def check_cluster(words: list[str]) -> None:
    """Raise `EmsError` when `words` (command line, profile) ask for Slurm and it is not here.

    Without `sbatch` the executor would run the local jobs and then wait for ever.
    """
    asked = {"slurm", "--profile=slurm", "--executor=slurm"} & set(words)
    if asked and shutil.which("sbatch") is None:
        raise EmsError(
            "the profile slurm needs Slurm's `sbatch`, which is not on PATH: run this on a node "
            "that submits jobs (Debian's package: slurm-client), or leave --profile slurm out"
        )


def plan(overrides: dict[str, Any] | None = None, root: Path = Path(".")) -> Plan:
    """Read config.yaml under `root` with `overrides` and the experiment that it names, and check
    both.

    Raises `EmsError` for a bad setting, an unknown corpus, an evaluation set that is not there, or
    what cannot run here: a segmenter, or OpusTools where a corpus comes through it.
    """
    site = load_site(root / "config.yaml", root / "schemas", overrides)
    experiment = load_experiment(site["experiment"], site, root / "configs", root / "schemas")
    check_corpora(experiment)
    if OPUSTOOLS in {corpus.source for _, corpus in experiment.all_corpora()}:
        opus_get()
    check_evalsets(experiment)
    for name in sorted(set(experiment.segmenters.values())):
        check_available(name)
    return Plan(site, experiment)
