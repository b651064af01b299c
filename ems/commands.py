"""The subcommands of `ems`: their flags, and what they write. stages.py has what they run."""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ems import stages
from ems.benchmarks import sets
from ems.config import SHARED
from ems.outputs import FILE, Out
from ems.shards.index import is_shards
from ems.tables.registry import figures, tables, timed

PLANNED = ("experiment", "expect")  # flags of a stage whose settings the workflow has hashed
LOCATED = ("corpus", "version", "pair")
NAMES = ("experiment", *LOCATED, "code", "system", "benchmark")  # flags with the name of something
OPTIONAL = {"expect"}
TABLE = Out(suffixes=(".tex", ".csv", ".md"))
FIGURE = Out(suffixes=(".svg", ".png"))
EITHER = Out(suffixes=(*TABLE.suffixes, *FIGURE.suffixes))
IMPORTED = ("model.json", "model.safetensors", "vocabulary.model")
TRAINED = (*IMPORTED, "heads.safetensors", "losses.jsonl")


@dataclass(frozen=True)
class Stage:
    """A subcommand: its text flags, its path flags (by name, with their `nargs`), the rest, and
    what it writes to `--out`. `writes` are the path flags of what else it writes, with the kind of
    each (outputs.Place); `around` is one for a folder that it both reads and writes in.
    """

    name: str
    run: Callable[[argparse.Namespace], None]
    text: str
    flags: tuple[str, ...] = ()
    paths: dict[str, str | None] = field(default_factory=dict)
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    out: Out | None = FILE
    writes: dict[str, str] = field(default_factory=dict)
    around: str = ""


def path(text: str) -> Path:
    """The type of a flag that names a path. Raises argparse's error for an empty text."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, found an empty text")
    return Path(text)


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """An argparse type: a whole number from `low` to `high`, in plain digits."""

    def number(text: str) -> int:
        if not re.fullmatch("-?[0-9]{1,20}", text) or not low <= int(text) <= high:
            expected = f"expected a whole number from {low:,} to {high:,}"
            raise argparse.ArgumentTypeError(f"{expected}, found {text[:40]!r}")
        return int(text)

    return number


class Assignment:
    """The type of a flag like `form`, say NAME=FOLDER. Raises argparse's error without a half."""

    def __init__(self, form: str) -> None:
        self.form = form

    def __call__(self, text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise argparse.ArgumentTypeError(f"expected {self.form}, found {text!r}")
        return name, value


def assignments(form: str) -> dict[str, Any]:
    """A flag whose values are assignments."""
    return {"type": Assignment(form), "default": [], "metavar": form}


ONE, SOME, ANY, MAYBE = None, "+", "*", "?"  # nargs of a path flag
GENERATED = {"--generated": {"action": "store_true", "help": "ems made it: keep no lock of it"}}
PIECES = {
    "--workers": {
        "type": whole_number(1, 256),  # the cores of the largest machines
        "default": 1,
        "help": "processes that share a large file",
    },
    "--piece-lines": {  # of tests, which have small files
        "type": whole_number(1, 1_000_000_000),
        "help": argparse.SUPPRESS,
    },
}
NAMED = {"--name": {"default": SHARED, "help": "which of the experiment's vocabularies"}}
FORMAT = {
    "--format": {
        "choices": ["moses", "mined"],
        "default": "moses",
        "help": "a Moses zip of OPUS, or LASER's mined TSV of WikiMatrix",
    }
}
FOLDERS = assignments("NAME=FOLDER")
EVALUATED = {
    "--model": {"help": "a model folder of ours, or a folder or name of sentence-transformers"},
    "--command": {"help": "or a command with {lines} and {out} in it, and {language} if it wants"},
    "--bench": {"required": True, "help": "benchmarks, like tatoeba,flores200"},
    "--experiment": {"help": "another one than config.yaml names: its languages and its data"},
    "--name": {"default": "", "help": "of the system in the score files; the model's if absent"},
    "--evalset": {**FOLDERS, "nargs": "+", "help": "other data"},
    "--no-cache": {"action": "store_true", "help": "neither read nor keep embeddings"},
}
STAGES = [
    Stage(
        "check",
        stages.run_check,
        "check config.yaml and an experiment",
        others={"--experiment": {"help": "another one than config.yaml names"}},
        out=None,
    ),
    Stage(
        "corpora",
        stages.run_corpora,
        "list what an experiment downloads, or update the table of OPUS's files",
        others={
            "action": {"choices": ["list", "update"]},
            "--experiment": {"help": "list: another one than config.yaml names"},
            "--json": {"action": "store_true", "help": "list: as JSON"},
            "--csv": {"action": "store_true", "help": "list: as CSV, a row per corpus and pair"},
            "--db": {"type": path, "help": "update: OpusTools' database, opusdata.db"},
        },
        out=Out(required=False, default=Path("ems/languages/opus.tsv")),
    ),
    Stage(
        "demo-mirror",
        stages.run_demo_mirror,
        "write the embedded demo data",
        out=Out("folder"),
    ),
    Stage(
        "fetch",
        stages.run_fetch,
        "fetch and check one pair of a corpus",
        ("source", *LOCATED),
        others=FORMAT | GENERATED,
    ),
    Stage(
        "fetch-documents",
        stages.run_fetch_documents,
        "fetch the documents of a corpus's lines",
        ("source", "corpus", "version"),
    ),
    Stage(
        "fetch-evalset",
        stages.run_fetch_evalset,
        "fetch one language, or one archive, of an evaluation set",
        ("code",),
        others={
            "--evalset": {"choices": sets(), "required": True},
            "--source": {
                "default": "",
                "help": "a directory, an address, or `embedded` (default: as published)",
            },
        },
        out=Out("folder"),
    ),
    Stage(
        "evalkeys",
        stages.run_evalkeys,
        "collect the evaluation sentences",
        PLANNED,
        others={"--evalset": {**FOLDERS, "nargs": "+", "required": True}},
    ),
    Stage(
        "clean",
        stages.run_clean,
        "cap, tidy and decontaminate a corpus",
        (*PLANNED, *LOCATED),
        {"archives": SOME, "documents": MAYBE, "keys": ONE},
        out=Out(suffixes=("", ".json")),
    ),
    Stage(
        "report",
        stages.run_report,
        "merge the decontamination reports",
        PLANNED,
        {"entries": SOME},
    ),
    Stage(
        "segment",
        stages.run_segment,
        "segment the words of a pair file",
        PLANNED,
        {"source": ONE, "state": MAYBE},
        PIECES,
        writes={"state": "state"},
    ),
    Stage(
        "sample",
        stages.run_sample,
        "sample lines for the vocabulary",
        PLANNED,
        {"sources": SOME},
        NAMED,
        out=Out(suffixes=("", ".languages")),
    ),
    Stage(
        "vocabulary",
        stages.run_vocabulary,
        "train the SentencePiece vocabulary",
        PLANNED,
        {"sample": ONE},
        NAMED,
    ),
    Stage(
        "vocabulary-report",
        stages.run_vocabulary_report,
        "report what the vocabulary does to each language",
        PLANNED,
        {"vocabulary": ONE, "sample": ONE},
        NAMED,
    ),
    Stage(
        "shards",
        stages.run_shards,
        "encode a pair file into token shards",
        paths={"source": ONE, "vocabulary": ONE, "state": MAYBE},
        others=PIECES,
        out=Out("whole folder", ours=is_shards),
        writes={"state": "state"},
    ),
    Stage(
        "index",
        stages.run_index,
        "list the shards of an experiment",
        paths={"training": SOME, "validation": ANY},
    ),
    Stage(
        "inspect",
        stages.run_inspect,
        "show a pair of the shards and where it comes from",
        paths={"index": MAYBE, "shard": MAYBE, "vocabulary": MAYBE},
        others={
            "--pair": {"help": "the language pair, like de-en"},
            "--row": {
                "type": whole_number(0, 2**63 - 1),  # shards count in int64
                "required": True,
                "help": "counted from 0",
            },
            "--role": {"choices": ["train", "validation"], "default": "train"},
        },
        out=None,
    ),
    Stage(
        "verify",
        stages.run_verify,
        "check all shards against their checksums",
        paths={"index": ONE},
        out=None,
    ),
    Stage(
        "train",
        stages.run_train,
        "train a system",
        (*PLANNED, "system"),
        {
            "shards": ONE,
            "vocabulary": ONE,
            "state": ONE,
            "times": MAYBE,
            "scalars": MAYBE,
        },
        {
            "--afresh": {
                "action": "store_true",
                "help": "delete the checkpoints of an unfinished run of other settings",
            },
            "--processes": {
                "type": whole_number(0, 32),  # twice the GPUs of the largest machines
                "default": 1,
                "help": "that share each step, one a GPU; 1 where train.device is cpu",
            },
        },
        out=Out("folder", names=TRAINED),
        writes={"state": "state", "times": "file", "scalars": "folder"},
    ),
    Stage(
        "bench",
        stages.run_bench,
        "score a system on a benchmark",
        (*PLANNED, "system", "benchmark"),
        {"model": MAYBE},
        {"--evalset": {**FOLDERS, "nargs": "*"}},
    ),
    Stage(
        "eval",
        stages.run_eval,
        "evaluate any encoder on benchmarks, outside of the workflow",
        others=EVALUATED,
        out=Out("folder"),
    ),
    Stage(
        "import-released",
        stages.run_import_released,
        "make a model folder of the EMS authors' checkpoint",
        paths={"weights": ONE, "spm": ONE},
        others={
            "--heads": {
                "type": whole_number(0, 1024),  # as model.heads of an experiment
                "default": 0,
                "help": "of attention; 64 wide each if absent",
            },
            "--segmenter": {
                "choices": ["moses", "sacremoses"],
                "default": "moses",
                "help": "of all but zh and ja: the paper's, or the one in the authors' embed.py",
            },
        },
        out=Out("folder", names=IMPORTED),
    ),
    Stage(
        "compare",
        stages.run_compare,
        "compare two systems, sentence by sentence",
        others={
            "first": {"type": path, "metavar": "A", "help": "a folder of score files, or one"},
            "second": {"type": path, "metavar": "B", "help": "the same of the other system"},
        },
        out=replace(EITHER, required=False),
    ),
    Stage(
        "encode",
        stages.run_encode,
        "encode the lines of a file to a .npy",
        ("language",),
        {"model": ONE, "source": ONE},
    ),
    Stage(
        "table",
        stages.run_table,
        "write a LaTeX table",
        PLANNED,
        {"sources": SOME},
        {"table": {"choices": list(tables())}},
        out=TABLE,
    ),
    Stage(
        "figure",
        stages.run_figure,
        "plot scores, or how training went",
        PLANNED,
        {"sources": SOME},
        {"figure": {"choices": list(figures())}},
        out=FIGURE,
    ),
    Stage(
        "costs",
        stages.run_costs,
        "write the costs table",
        PLANNED,
        {"folder": ONE},
        out=TABLE,
        around="folder",
    ),
    Stage(
        "timed",
        stages.run_timed,
        "a figure or a table in which time counts, so that it differs from run to run",
        PLANNED,
        {"sources": SOME, "times": SOME},
        {"timed": {"choices": list(timed())}},
        out=EITHER,
    ),
    Stage(
        "pdf",
        stages.run_pdf,
        "compile the tables to one PDF",
        paths={"tables": SOME},
        others={"--caption": {**assignments("TABLE=TEXT"), "nargs": "*"}},
    ),
]
