"""A small finished run of the workflow in a sandbox; a case spoils it, the next finds it whole.

sandbox/tmp             for what the commands write for a moment
sandbox/outer           what `..` reaches
sandbox/outer/project   where the commands run: settings, data, results, and odd/ with paths of
                        every kind

It runs a toy experiment: a good command line of every stage, for `make fuzz` also of every other
evaluation set, which is too long for CI.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from conftest import ROOT
from fuzz.edits import EDITS, remove
from fuzz.forks import Forks, own
from made.corpora import translations, write_lines, write_mined, write_opus, write_tatoeba
from made.train import DUMP, page, write_dump

LANGUAGES = ["en", "de"]
MIRROR = "mirror/opus"
TOY = {  # laid over configs/tiny.yaml
    "languages": LANGUAGES,
    "sources": {"opus": MIRROR, "tatoeba": "mirror/tatoeba", "documents": "mirror/texts"},
    "corpora": [
        {"name": "Toy", "version": "v1", "source": MIRROR},
        {"name": "Own", "version": "v1", "kind": "documents"},
    ],
    "validation": {"name": "ToyDev", "version": "v1", "source": MIRROR},
    "evalsets": {"tatoeba": {"version": "toy"}},
    "segmenters": {"default": "none"},
    "vocabulary": {"size": 120, "character_coverage": 1.0, "sample_lines": 200},
    "systems": {
        "ems": {},
        "coherent": {
            "objectives": {
                "xtr": {"weight": 0},
                "contrastive": {"weight": 0},
                "coherence": {"weight": 1, "mining": {"sample": 8, "keep": 4, "pairs": 20}},
            },
            "train": {"start_from": "ems"},
        },
        "char-ngram": {"kind": "char-ngram", "ngrams": {"buckets": 256}},
        "fused": {"kind": "fused", "of": "ems", "ngrams": {"buckets": 64}},
    },
}
MULTI = {  # laid over the toy
    "languages": [*LANGUAGES, "fr"],
    "corpora": TOY["corpora"][:1],
    "multiway": {"through": "en", "most": 2},
    "systems": {"ems": {}},
}
MODEL = {"width": 16, "feed_forward": 24, "max_tokens": 20}
TRAIN = {"steps": 6, "batch_pairs": 8, "warmup_steps": 2}
TRAIN |= {"validate_every": 3, "checkpoint_every": 3}
STAGES = """
fetch --source mirror/opus --corpus Toy --version v1 --pair de-en --out {moses}
fetch --source mirror/opus --corpus ToyDev --version v1 --pair de-en --out {dev}
fetch --source mirror/laser --corpus WikiMatrix --version v1 --pair de-en --format mined --out
    data/mined.tsv.gz
fetch-documents --source mirror/opus --corpus Toy --version v1 --out
    data/opus/Toy/v1/DOCUMENT_IDS.tsv
fetch --source mirror/texts --corpus Own --version v1 --pair de --format text --out data/de.txt
fetch --source mirror/texts --corpus Own --version v1 --pair en --format text --out data/en.txt
fetch --source mirror/dumps --corpus Wikipedia --version 20260101 --pair de --format dump --out
    data/de.xml.bz2
wikipedia --dump data/de.xml.bz2 --language de --out data/wikipedia/de.txt.gz
fetch-evalset --evalset tatoeba --source mirror/tatoeba --code deu --out data/evalsets/tatoeba/toy
evalkeys {x} {e} --out text/evalkeys.tsv
clean {x} --corpus Toy --version v1 --pair de-en --archives {moses} {k} --out text/clean/de-en.tsv
clean {x} --corpus ToyDev --version v1 --pair de-en --archives {dev} {k} --out text/dev/de-en.tsv
evalkeys {x} --validation text/dev/de-en.tsv --out text/heldkeys.tsv
clean {x} --corpus Own --version v1 --pair de --archives data/de.txt {k} --out text/clean/de.tsv
clean {x} --corpus Own --version v1 --pair en --archives data/en.txt {k} --out text/clean/en.tsv
report {x} --entries text/clean/de-en.json text/dev/de-en.json --out reports/decontamination.json
segment {x} --source text/clean/de-en.tsv --out text/segmented/de-en.tsv
segment {x} --source text/clean/de.tsv --out text/segmented/de.tsv
segment {x} --source text/clean/en.tsv --out text/segmented/en.tsv
multiway --experiment multi --sources text/multi/de-en.tsv text/multi/en-fr.tsv --out text/further
    --reports reports/further
sample {x} --sources text/segmented/de-en.tsv --out vocab/sample.txt
vocabulary {x} --sample vocab/sample.txt --out vocab/vocabulary.model
vocabulary-report {x} {v} --sample vocab/sample.txt --out reports/vocabulary.json
shards --source text/segmented/de-en.tsv {v} --out shards/train/de-en
shards --source text/dev/de-en.tsv {v} --out shards/dev/de-en
shards --source text/segmented/de.tsv {v} --out shards/train/de
shards --source text/segmented/en.tsv {v} --out shards/train/en
shards --source text/further {v} --languages de fr --out shards/further
index --training shards/train/de-en shards/train/de shards/train/en --validation shards/dev/de-en
    --out shards/index.json
inspect --index shards/index.json --pair de-en --row 3 {v}
verify --index shards/index.json
verify --data data
train {x} --system ems --shards shards/index.json {v} --state state/ems --times
    costs/train/ems.times.jsonl --out models/ems --costs costs/train/ems.json
mine-documents {x} --system coherent --shards shards/index.json {m} --out mined
validate {m} --shards shards/dev/de-en
fit {x} --system char-ngram --text text/clean/de-en.tsv text/clean/de.tsv --out models/char-ngram
fit {x} --system fused --text text/clean/de-en.tsv --pairs text/dev/de-en.tsv {m} --out models/fused
bench {x} --system ems --benchmark tatoeba {m} {e} --out scores/ems/tatoeba.json
bench {x} --system char-ngram --benchmark tatoeba --model models/char-ngram {e} --out
    scores/char-ngram/tatoeba.json
export {x} {m} --out exports/ems --without-segmenters
eval {m} --bench tatoeba {e} --out by-hand
compare scores/ems scores/char-ngram --out comparison/comparison.csv
encode --language de {m} --source text/lines.de --out vectors.npy
score --source-language de --target-language en {m} --source text/clean/de-en.tsv --out scored.txt
mine --source-language de --target-language de {m} --source text/lines.de --target text/lines.de
    --out mined.tsv
search --language de --query-language de {m} --index text/lines.de Haus
table tatoeba {x} --sources scores/ems/tatoeba.json scores/char-ngram/tatoeba.json --out
    tables/tatoeba.tex
table decontamination {x} --sources reports/decontamination.json --out tables/decontamination.tex
table vocabulary {x} --sources reports/vocabulary.json --out tables/vocabulary.tex
table models {x} --sources reports/decontamination.json --out tables/models.tex
select {x} --sources tables/tatoeba.tex tables/tatoeba.csv --out selected
metrics --scores scores/ems/tatoeba.json --losses models/ems/losses.jsonl --out metrics
figure learning {x} --sources models/ems/losses.jsonl --out figures/learning.svg
costs {x} --folder costs --out tables/costs.tex
timed learning {x} --sources models/ems/losses.jsonl --times costs/train/ems.times.jsonl --out
    figures/timed.svg
check {x}
corpora list {x}
corpora search cy pl
init --languages en,cy --budget 20k --out configs/welsh.yaml
"""  # what is indented goes on the line above
STATE = "state/stopped"
SHORT = {  # what stands for what in braces, besides {x} for the flag of the experiment
    "v": "--vocabulary vocab/vocabulary.model",
    "k": "--keys text/evalkeys.tsv",
    "e": "--evalset tatoeba=data/evalsets/tatoeba/toy",
    "m": "--model models/ems",
    "moses": "data/opus/Toy/v1/moses/de-en.txt.zip",
    "dev": "data/opus/ToyDev/v1/moses/de-en.txt.zip",
}


def as_words(text: str, experiment: str = "toy") -> list[list[str]]:
    """The command lines of a text."""
    lines = text.strip().replace("\n    ", " ").split("\n")
    return [
        ["ems", *line.format(x=f"--experiment {experiment}", **SHORT).split()] for line in lines
    ]


COMMANDS = as_words(STAGES)
RESUME = "train {x} --system ems --shards shards/index.json {v} --out models/stopped"
(RESUMED,) = as_words(f"{RESUME} --state {STATE}")


def write_settings(project: Path) -> None:
    tiny = yaml.safe_load((ROOT / "configs" / "tiny.yaml").read_text())
    toy = {key: value for key, value in tiny.items() if key != "sweep"} | TOY
    toy["model"], toy["train"] = tiny["model"] | MODEL, tiny["train"] | TRAIN
    site = yaml.safe_load((ROOT / "config.yaml").read_text()) | {"experiment": "toy"}
    site["downloads"] = {"per_host": 4, "retries": 0}
    shutil.copytree(ROOT / "configs", project / "configs")
    files = {"configs/toy.yaml": toy, "configs/multi.yaml": toy | MULTI, "config.yaml": site}
    for name, value in files.items():
        (project / name).write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


def write_mirror(mirror: Path) -> None:
    """What the project downloads, in the formats of those who publish it."""
    items = list(translations(80, LANGUAGES, 1))
    folder = write_opus(mirror, "Toy", "v1", items)
    write_lines(folder / "DOCUMENT_IDS.tsv", [f"document-{at // 8}" for at in range(len(items))])
    write_opus(mirror, "ToyDev", "v1", list(translations(16, LANGUAGES, 2)))
    write_mined(mirror, "de-en", items[:9], [1.2 - at / 100 for at in range(9)])
    for code in LANGUAGES:
        texts = [item[code] for item in items[:12]]
        write_lines(mirror / f"texts/Own/v1/{code}.txt", [*texts[:5], "", *texts[5:], ""])
    write_dump(mirror / "dumps" / DUMP, [page(at, text) for at, text in enumerate(texts)], 4)
    pairs = [(item["de"], item["en"]) for item in translations(20, LANGUAGES, 3, least=2)]
    write_tatoeba(mirror, "deu", pairs)
    lines = [item["de"] for item in translations(7, LANGUAGES, 4)]
    write_lines(mirror.parent / "text" / "lines.de", lines)
    for pair in (("de", "en"), ("en", "fr")):
        rows = enumerate(translations(12, MULTI["languages"], 5), start=1)
        lines = [f"{item[pair[0]]}\t{item[pair[1]]}\t{at}" for at, item in rows]
        write_lines(mirror.parent / "text/multi" / f"{'-'.join(pair)}.tsv", lines)


# fmt: off
BENCHMARKS = [
    "flores200", "ntrex", "bucc2018", "paracrawl", "europarlxsr", "mldoc", "cls", "marc", "rcv2",
    "sib200", "counterfactual", "xnli", "pawsx",
]
OTHER_LANGUAGES = {
    "es", "ru", "zh", "ja", "ar", "it", "spa", "rus", "cmn", "jpn", "ara", "ita", "jp", "zho",
    "spanish", "russian", "japanese", "chinese", "opus",
}
# fmt: on
SETS = {name: f"{name}=data/embedded/{name}" for name in BENCHMARKS}
SETS |= {name: f"{name}=data/embedded/reuters" for name in ("mldoc", "rcv2")}
FLORES = SETS["flores200"]
SETS |= {"xsim": FLORES, "wordorder": FLORES, "xsimpp": f"xsimpp=data/embedded/xsimpp {FLORES}"}
TABLE_OF = {"flores200": ["flores"], "xsimpp": ["xsim"], "xsim": []}
TABLE_OF["bucc2018"] = ["bucc2018", "bucc_missed"]
QUICK = {"seeds": 1, "epochs": 1, "weight_decay": [0], "hidden": []}
ALL = " ".join(SETS[name] for name in BENCHMARKS)
WIDE = [
    *(
        f"bench {{x}} --system char-ngram --model models/char-ngram --benchmark {name}"
        f" --evalset {folders} --out scores/wide/{name}.json"
        for name, folders in SETS.items()
    ),
    *(
        f"table {table} {{x}} --sources scores/wide/{name}.json --out tables/{table}.tex"
        for name in SETS
        for table in TABLE_OF.get(name, [name])
    ),
    f"evalkeys {{x}} --evalset tatoeba=data/embedded/tatoeba xsimpp=data/embedded/xsimpp {ALL}"
    " --out text/wide.tsv",
    "figure flores {x} --sources scores/wide/flores200.json --out figures/flores.svg",
    "pdf --tables tables/tatoeba.tex tables/xnli.tex --caption tatoeba=Retrieval --out tables.pdf",
]
WIDE_COMMANDS = as_words("\n".join(WIDE), "wide")


def write_wide_settings(project: Path) -> None:
    """The experiment `wide`: all benchmarks on the demo's own data."""
    full = yaml.safe_load((ROOT / "configs" / "demo-full.yaml").read_text())
    wide = full | {key: TOY[key] for key in ("segmenters", "vocabulary", "systems")}
    wide["evalsets"]["tatoeba"] = {"version": "demo-v1"}
    wide["probes"] = {name: own | QUICK for name, own in full["probes"].items()}
    text = yaml.safe_dump(wide | {"languages": [*LANGUAGES, "fr"]}, sort_keys=False)
    (project / "configs" / "wide.yaml").write_text(text, encoding="utf-8")


def narrow(mirror: Path) -> None:
    """Remove the languages of the demo's data that no command here reads."""
    for path in sorted(mirror.rglob("*"), reverse=True):
        words = re.split("[^a-z]+", str(path.relative_to(mirror)).lower())
        if OTHER_LANGUAGES & set(words) or any(word.startswith("reutru") for word in words):
            remove(path)


# --- the sandbox


PROGRAM = ("Snakefile", "rules", "envs", "profiles", "slurm", "schemas")


class Entry(NamedTuple):
    """A path: its kind, and what would change if somebody wrote there."""

    kind: str
    mode: int
    content: str = ""  # of a file its hash, of a link its target
    size: int = 0
    changed: int = 0  # ns
    inode: int = 0

    def same(self, other: "Entry | None") -> bool:
        """Whether kind and content are the same, whenever it was written."""
        return other is not None and self[:4] == other[:4]


KINDS = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
KINDS |= {stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device"}


class World:
    """The sandbox with its finished run."""

    def __init__(self, folder: Path, forks: Forks, wide: bool = False) -> None:
        self.root, self.forks, self.commands = folder, forks, list(COMMANDS)
        self.outer, self.project = folder / "outer", folder / "outer" / "project"
        self.hashes: dict[tuple, str] = {}
        for name in ("tmp", "outer/project"):
            (folder / name).mkdir(parents=True)
        (self.outer / "precious.txt").write_text("not yours\n")
        for name in PROGRAM:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.project / name)
        write_settings(self.project)
        write_mirror(self.project / "mirror")
        self._own()
        for words in COMMANDS:
            done = forks.run(words, self.project, 120)
            assert done.status == 0, f"{' '.join(words)}: {done.err}"
        self._stop_a_training()
        if wide:
            self._widen()
        write_odd_paths(self.project / "odd")
        shutil.rmtree(folder / "tmp")
        (folder / "tmp").mkdir()
        self._own()
        self.master = self.listing()
        self.kept = folder.with_name(f"{folder.name}-kept")
        subprocess.run(["cp", "-a", folder, self.kept], check=True)

    def _widen(self) -> None:
        write_wide_settings(self.project)
        self.forks.run(["ems", "demo-mirror", "--out", "data/embedded"], self.project)
        narrow(self.project / "data" / "embedded")
        for words in WIDE_COMMANDS:
            done = self.forks.run(words, self.project, 120)
            if done.status:
                print(f"left out: {' '.join(words)}: {done.err[-300:]}")
            self.commands += [words] * (done.status == 0)

    def _own(self) -> None:
        for folder, _, names in os.walk(self.root):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                own(Path(path))

    def _stop_a_training(self) -> None:
        """Leave the first checkpoint of a training that was killed."""
        for _ in range(20):
            self.forks.run(RESUMED, self.project, 120, stop=f"{self.project}/{STATE}/*/*/")
            if not (self.project / "models" / "stopped").exists():
                return
            shutil.rmtree(self.project / "models" / "stopped")
        raise AssertionError("the training was never killed in time")

    def listing(self) -> dict[str, Entry]:
        entries, folders = {}, [self.root]
        while folders:
            for path in folders.pop().iterdir():
                entries[str(path.relative_to(self.root))] = entry = self._entry(path)
                if entry.kind == "folder":
                    folders.append(path)
        return entries

    def _entry(self, path: Path) -> Entry:
        info = path.lstat()
        kind, mode = KINDS[stat.S_IFMT(info.st_mode)], stat.S_IMODE(info.st_mode)
        if kind != "file":
            target = os.readlink(path) if kind == "link" else ""
            return Entry(kind, mode, target, inode=info.st_ino)
        key = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if key not in self.hashes:
            with open(path, "rb") as reader:
                self.hashes[key] = hashlib.file_digest(reader, "sha256").hexdigest()
        return Entry(kind, mode, self.hashes[key], info.st_size, info.st_mtime_ns, info.st_ino)

    def reset(self) -> None:
        now = self.listing()
        for path in sorted(now):
            if not now[path].same(self.master.get(path)):
                remove(self.root / path)
        for path in sorted(self.master):
            if not os.path.lexists(self.root / path):
                subprocess.run(["cp", "-a", self.kept / path, self.root / path], check=True)

    def edit(self, edits: list[list[Any]]) -> None:
        """Spoil files of the project: each edit is [name of a function below, path, ...]."""
        for name, path, *rest in edits:
            place = self.project / path
            # an earlier edit may have left nothing to spoil
            with contextlib.suppress(OSError, ValueError, AttributeError, yaml.YAMLError):
                place.parent.mkdir(parents=True, exist_ok=True)
                EDITS[name](place, *rest)
                own(place)


NAMES = ("a b.txt", "new\nline.txt", "ümläut.txt", "\udcff\udcfe.txt", "$(touch pwned).txt")
NAMES += ("quo'te\".txt", "-dash.txt", "{brace}.txt", "per%cent;touch pwned;.txt", "n" * 250)


def write_odd_paths(folder: Path) -> None:
    """A path of every kind that a flag may name."""
    (folder / "folder" / "sub").mkdir(parents=True)
    for name in ("file.txt", "folder/keep.txt", "folder/sub/keep.txt", *NAMES):
        (folder / name).write_text("keep this\nand this\n")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "emptyfolder").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    (folder / "link").symlink_to("file.txt")
    (folder / "loop").symlink_to("loop")
    (folder / "linkfolder").symlink_to("folder")
    special = {"fifo": stat.S_IFIFO, "socket": stat.S_IFSOCK}
    if os.geteuid() == 0:  # as another user the machine's own will do
        special["null"] = stat.S_IFCHR
    for name, mode in special.items():
        os.mknod(folder / name, mode, os.makedev(1, 3) if name == "null" else 0)
        (folder / name).chmod(0o666)
