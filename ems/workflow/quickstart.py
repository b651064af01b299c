"""`ems quickstart`: write an experiment of your own pairs, run it, export and measure its model."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree

from ems.base.files import atomic_path
from ems.base.progress import clock
from ems.base.templates import rendered
from ems.bench.scores import read_score_file
from ems.benchmarks.own.data import read_pairs
from ems.config.load import load_experiment, load_site
from ems.export import is_export
from ems.workflow.init import make_experiment
from ems.workflow.run import run_targets

BEFORE, AFTER = "char-ngram", "ems-plus"  # the systems of experiment.yaml.jinja
SHORT = 60  # characters of an example


def quickstart(files: Sequence[str], languages: str, out: Path | None) -> str:
    """Run what is missing or stale; tell P@1 without and with training, how to use the model."""
    start = time.monotonic()
    name = out.name if out else re.sub(r"[^A-Za-z0-9_-].*", "", Path(files[0]).name) or "mine"
    path = Path("configs", f"{name}.yaml")
    make_experiment(languages, "", path, files)
    run_targets(name, "all", "exports")
    results = Path("results", name)
    folder = results / "exports" / AFTER
    if out:
        with atomic_path(out, ours=is_export) as copy:
            copytree(folder, copy)
    experiment = load_experiment(name, load_site(Path("config.yaml"), {"experiment": name}))
    files = {system: results / "scores" / system / "own.json" for system in (BEFORE, AFTER)}
    scores = {system: read_score_file(path) for system, path in files.items()}
    pairs = read_pairs(Path(experiment.evalsets["own"].path), experiment.languages)
    examples = [pair for sides in pairs.values() for pair in zip(*sides, strict=True)]
    return rendered(
        Path(__file__).with_name("quickstart.txt.jinja"),
        name=name,
        took=clock(time.monotonic() - start),
        rows=scores[AFTER].rows,
        before={row.direction: row.value for row in scores[BEFORE].rows},
        means=[scores[system].means()[0].value for system in (BEFORE, AFTER)],
        folder=out or folder,
        megabytes=sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6,
        path=path,
        repr=repr,
        example=min(examples, key=lambda pair: abs(len("".join(pair)) - SHORT)),
    )
