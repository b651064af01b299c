"""`ems run`: Snakemake with a progress line, its messages in a file, and the scores at the end;
`ems quickstart` does so with an experiment of your own pairs, and exports its model.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree

from ems.base.errors import EmsError, check
from ems.base.files import atomic_path
from ems.base.progress import Progress, clock, log
from ems.base.templates import rendered
from ems.bench.scores import read_score_file
from ems.benchmarks.own.data import read_pairs
from ems.config.experiment import Experiment
from ems.config.load import load_experiment, load_site
from ems.export import is_export
from ems.tables.registry import scores
from ems.workflow.init import make_experiment
from ems.workflow.made import is_locked

STEPS = re.compile(r"(\d+) of (\d+) steps \(.*\) done")  # Snakemake's
STEP = re.compile(r"\d\d:\d\d:\d\d (.*?: [\d,]+/[\d,]+ .*? \(\d+ %\))")  # of a job: `Progress.line`
ERROR = re.compile(r"\d\d:\d\d:\d\d error: (.*)|(?:WorkflowError|\w*Exception)\b.*")
EVERY = 10.0  # seconds between two lines
MOST = 6  # benchmarks in the summary
BEFORE, AFTER = "char-ngram", "ems-plus"  # the systems of experiment.yaml.jinja
SHORT = 60  # characters of an example


def run_experiment(experiment: Experiment) -> str:
    """Run what is missing or stale, and return a summary; raise the first error of a job."""
    start = time.monotonic()
    messages = run_targets(experiment.name, "all")
    return summary(experiment, clock(time.monotonic() - start), messages)


def run_targets(name: str, *targets: str) -> Path:
    """Make targets of an experiment; return the file with the messages of Snakemake."""
    check({"locked folder": is_locked()})
    messages = Path("results", name, "logs", "snakemake.log")
    messages.parent.mkdir(parents=True, exist_ok=True)
    log.info("%s: messages of Snakemake and its jobs go to %s", name, messages)
    command = [sys.executable, "-m", "snakemake", "--config", f"experiment={name}"]
    messages.write_text("", encoding="utf-8")
    follow([*command, "--", *targets], str(messages), f"{name}: {' '.join(targets)}")
    return messages


def follow(command: list[str], messages: str, title: str) -> None:
    """Run Snakemake, append its output to `messages`, and log its progress."""
    progress, note, errors = None, "", []
    with open(messages, "a", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        start = out.tell()
    try:
        for line in written_lines(process, messages, start):
            if errors and errors[-1].endswith(":"):  # Snakemake's error has its reason below
                errors[-1] = line
            elif found := STEPS.search(line):
                done, total = map(int, found.groups())
                progress = progress or Progress(title, total, "steps", EVERY, before=done - 1)
                progress.add(done - progress.done, note)
            elif found := STEP.match(line):
                note = found[1]
                if progress:
                    progress.add(0, note)
            elif found := ERROR.match(line):
                errors.append(found[1] or found[0])
    finally:
        status = process.wait()  # Ctrl-C reaches Snakemake, too: it ends its jobs first
    if status:
        raise EmsError(f"{errors[0] if errors else f'snakemake: exit status {status}'}; {messages}")
    if progress:
        progress.close()


def written_lines(process: subprocess.Popen, messages: str, start: int) -> Iterator[str]:
    """Yield the lines of a file after `start` bytes while a process writes them."""
    with open(messages, encoding="utf-8", errors="replace") as file:
        file.seek(start)
        rest = ""
        while True:
            running = process.poll() is None
            *lines, rest = (rest + file.read()).split("\n")
            yield from lines
            if not running:
                return
            time.sleep(0.2)


def summary(experiment: Experiment, took: str, messages: Path) -> str:
    """Return the mean scores of the tabled systems, the paths of all results, and a next step."""
    paths = {name: scores(experiment, name) for name in experiment.evalsets}
    files = {name: [read_score_file(Path(path)) for path in paths[name]] for name in paths}
    shown = [name for name, each in files.items() if each and each[0].higher_is_better][:MOST]
    return rendered(
        Path(__file__).with_name("summary.txt.jinja"),
        name=experiment.name,
        took=took,
        shown=shown,
        # the means over the languages trained on, which are the first ones
        means={
            system: [files[name][row].means()[0].value for name in shown]
            for row, system in enumerate(experiment.shown)
        },
        messages=messages,
        models=experiment.learning(experiment.shown)[:1],
    )


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
