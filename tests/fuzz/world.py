"""A small finished run of the workflow in a sandbox; a case spoils it, the next finds it whole.

sandbox/tmp             for what the commands write for a moment
sandbox/outer           what `..` reaches
sandbox/outer/project   where the commands run: settings, data, results, and odd/ with paths of
                        every kind

It runs a toy experiment: a good command line of every stage (world.yaml), for `make fuzz` also of
every other evaluation set, which is too long for CI.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from conftest import ROOT
from fuzz.edits import EDITS, ODD, remove
from fuzz.forks import KILLED, Forks, own
from made.corpora import translations, write_lines, write_mined, write_opus, write_tatoeba
from made.places import export
from made.train import DUMP, page, write_dump
from safetensors import SafetensorError

SETTINGS = yaml.safe_load((ROOT / "tests/fuzz/world.yaml").read_text(encoding="utf-8"))
LANGUAGES = SETTINGS["toy"]["languages"]


def as_words(line: str, experiment: str = "toy") -> list[str]:
    return ["ems", *line.format(x=f"--experiment {experiment}", **SETTINGS["short"]).split()]


COMMANDS = [as_words(line) for line in SETTINGS["commands"]]
WIDE_COMMANDS = [as_words(line, "wide") for line in SETTINGS["wide"]]
RESUMED = as_words(
    "train {x} --system ems --shards shards/index.json {v} --out models/stopped"
    " --state state/stopped"
)


def write_settings(project: Path) -> None:
    tiny = yaml.safe_load((ROOT / "configs" / "tiny.yaml").read_text())
    toy = {key: value for key, value in tiny.items() if key != "sweep"} | SETTINGS["toy"]
    toy |= {key: tiny[key] | own for key, own in SETTINGS["changed"].items()}
    site = yaml.safe_load((ROOT / "config.yaml").read_text()) | {"experiment": "toy"}
    site["downloads"] = {"per_host": 4, "retries": 0}
    shutil.copytree(ROOT / "configs", project / "configs")
    files = {"configs/toy.yaml": toy, "configs/multi.yaml": toy | SETTINGS["multi"]}
    for name, value in (files | {"config.yaml": site}).items():
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
    own = [f"{item['en']}\t{item['de']}" for item in translations(600, LANGUAGES, 6, least=3)]
    write_lines(mirror.parent / "text" / "own.tsv", own)
    for pair in (("de", "en"), ("en", "fr")):
        rows = enumerate(translations(12, [*LANGUAGES, "fr"], 5), start=1)
        lines = [f"{item[pair[0]]}\t{item[pair[1]]}\t{at}" for at, item in rows]
        write_lines(mirror.parent / "text/multi" / f"{'-'.join(pair)}.tsv", lines)


def write_wide_settings(project: Path) -> None:
    """The experiment `wide`: all benchmarks on the demo's own data."""
    folder = project / "configs"
    toy, full = (
        yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("toy", "demo-full")
    )
    wide = toy | {key: full[key] for key in ("evalsets", "decontaminate", "benchmarks")}
    wide["probes"] = {name: own | SETTINGS["quick"] for name, own in full["probes"].items()}
    text = yaml.safe_dump(wide | {"languages": [*LANGUAGES, "fr"]}, sort_keys=False)
    (folder / "wide.yaml").write_text(text, encoding="utf-8")


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


def own_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        own(path)


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
        own_all(folder)
        for words in COMMANDS:
            done = forks.run(words, self.project, 120)
            assert done.status == 0, f"{' '.join(words)}: {done.err}"
        export(self.project / "exports/static", layers=0, positions="none")
        assert forks.run(RESUMED, self.project, 120, KILLED).status == -signal.SIGKILL
        if wide:
            self._widen()
        write_odd_paths(self.project / "odd")
        shutil.rmtree(folder / "tmp")
        (folder / "tmp").mkdir()
        own_all(folder)
        self.master = self.listing()
        self.kept = folder.with_name(f"{folder.name}-kept")
        subprocess.run(["cp", "-a", folder, self.kept], check=True)

    def _widen(self) -> None:
        write_wide_settings(self.project)
        self.forks.run(["ems", "demo-mirror", "--out", "data/embedded"], self.project)
        for words in WIDE_COMMANDS:
            done = self.forks.run(words, self.project, 120)
            if done.status:
                print(f"left out: {' '.join(words)}: {done.err[-300:]}")
            self.commands += [words] * (done.status == 0)

    def listing(self) -> dict[str, Entry]:
        paths = self.root.rglob("*")
        return {str(path.relative_to(self.root)): self._entry(path) for path in paths}

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
            with contextlib.suppress(*NOTHING_TO_SPOIL):
                place.parent.mkdir(parents=True, exist_ok=True)
                EDITS[name](place, *rest)
                own(place)


NOTHING_TO_SPOIL = (OSError, ValueError, TypeError, AttributeError, LookupError, RuntimeError)
NOTHING_TO_SPOIL += (yaml.YAMLError, SafetensorError)
NAMES = (*ODD["files"], "n" * 250)


def write_odd_paths(folder: Path) -> None:
    """A path of every kind that a flag may name."""
    (folder / "folder" / "sub").mkdir(parents=True)
    for name in ("file.txt", "folder/keep.txt", "folder/sub/keep.txt", *NAMES):
        (folder / name).write_text("keep this\nand this\n")
    for name, content in {"empty.txt": "", **ODD["spoilt"]}.items():
        (folder / name).write_bytes(content.encode("latin-1"))
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
