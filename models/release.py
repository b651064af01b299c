"""Make models/ems-62, the encoder that comes with EMS, again from the text: `make release`.

    snakemake                 configs/release62.yaml: text, vocabulary, training, scores
    ems export --quantised    the folder: int8 rows, card, checksums
    ems eval                  scores of the folder itself
    provenance.json           what it was made from, and the scores

At the end it prints the scores, and how far they are from those in the provenance.json that was
there. Snakemake makes only what is missing: if a run was killed, the next one continues it.
"""

import argparse
import platform
import shutil
import subprocess
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import atomic_path, read_json, sha256_file, write_json
from ems.base.provenance import digest, source_root
from ems.base.records import Json
from ems.bench.scores import read_score_file
from ems.commands.common import experiment_of, site_settings
from ems.config.languages import UNSEEN
from ems.export import write_sums

NAME, EXPERIMENT = "ems-62", "release62"
OUT, RUN = Path("models") / NAME, Path("results") / EXPERIMENT
BENCHMARKS = ("tatoeba", "ntrex", "flores200", "wmt24pp")
BETWEEN_ALL = ("flores200", "wmt24pp")
PROVENANCE = "provenance.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2, help="processes of Snakemake")
    cores = parser.parse_args().cores
    before = read_json(OUT / PROVENANCE, Json) if (OUT / PROVENANCE).is_file() else {}
    targets = [RUN / f"models/{NAME}/model.json", RUN / "reports/decontamination.json"]
    targets += [RUN / f"scores/{NAME}/{name}.json" for name in experiment_of(EXPERIMENT).benchmarks]
    run("snakemake", "--cores", cores, "--config", f"experiment={EXPERIMENT}", "--", *targets)
    built, scores = RUN / "box" / NAME, RUN / "box" / "scores"
    shutil.rmtree(built, ignore_errors=True)  # its provenance is no file of an export
    run("ems", "export", "--model", RUN / f"models/{NAME}", "--quantised", "--out", built)
    names = ("--bench", ",".join(BENCHMARKS), "--experiment", EXPERIMENT, "--name", NAME)
    run("ems", "eval", "--model", built, *names, "--out", scores)
    own = {"of_file": measured(scores), "of_float32": measured(RUN / f"scores/{NAME}")}
    shutil.copy(source_root() / "export/cc-by-sa-4.0.txt", built / "LICENSE")
    write_json(built / PROVENANCE, {**made_from(), "scores": own})
    write_sums(built)
    with atomic_path(OUT, lambda folder: True) as temporary:
        shutil.copytree(built, temporary)
    for name, value in own["of_file"].items():
        float32 = own["of_float32"][name]
        old = before.get("scores", {}).get("of_file", {}).get(name)
        print(f"{name:45} {value:6.2f}  float32 {value - float32:+.2f}", end="")
        print("" if old is None else f"  before {value - old:+.2f}")


def run(*command: object) -> None:
    if subprocess.run([*map(str, command)]).returncode:
        raise EmsError(f"{command[0]}: failed; its last line says why. Run this again to go on")


def made_from() -> Json:
    """Return commit, settings, seed, corpora with the sum of their checksums, machine, minutes."""
    experiment, data = experiment_of(EXPERIMENT), Path(site_settings().data)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    corpora = {}
    for _, corpus in experiment.all_corpora():
        folder = data / "opus" / corpus.name / corpus.version
        locks = folder.rglob("*.zip.lock.json")
        sums = {path.name: read_json(path, Json)["sha256"] for path in locks}
        about = {"version": corpus.version, "files": len(sums), "sha256": digest(sums)}
        corpora[corpus.name] = about
    costs = [read_json(path, Json) for path in (RUN / "costs").rglob("*.json")]
    training = read_json(RUN / f"costs/train/{NAME}.json", Json)
    model = read_json(RUN / f"models/{NAME}/model.json", Json)
    return {
        "commit": commit.strip(),
        "identity": model["identity"],
        "config_sha256": sha256_file(Path("configs") / f"{EXPERIMENT}.yaml"),
        "seed": experiment.seed,
        "corpora": corpora,
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "training_minutes": round(training["seconds"] / 60, 1),
        "cpu_minutes": round(sum(each["cpu_seconds"] for each in costs) / 60, 1),
    }


def measured(folder: Path) -> dict[str, float]:
    """Return the mean P@1 in percent over the directions of each group, of all benchmarks."""
    groups = defaultdict[str, list[float]](list)
    for name in BENCHMARKS:
        (path,) = folder.rglob(f"{name}.json")
        file = read_score_file(path)
        unseen = {code for code, own in file.languages.items() if own == UNSEEN}
        for row in (row for row in file.rows if not row.measure):
            names = {row.source, row.target}
            ways = ["with English"] if names & file.english else []
            ways += ["all directions"] if name in BETWEEN_ALL else []
            kinds = ["untrained" if names & unseen else "trained"]
            kinds += ["all languages"] if unseen else []
            for way, kind in product(ways, kinds):
                groups[f"{name}, {way}, {kind}"].append(row.value)
    return {group: round(sum(values) / len(values), 3) for group, values in groups.items()}


if __name__ == "__main__":
    try:
        main()
    except EmsError as error:
        sys.exit(f"error: {error}")
