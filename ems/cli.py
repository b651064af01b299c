"""`ems <stage> ...`: every rule of the workflow is one such call, usable by hand.

Notable choices:
- `--log FILE` writes the same lines to a file and to the terminal: what went in, what came out, why
  the rest did not; an error is its last line;
- `--costs FILE` gets the seconds and the memory of a stage that succeeded;
- `--expect HASH` is what the workflow planned with: a stage whose settings say something else by
  now refuses to run, on this machine and inside a cluster's job alike;
- of the processes that torchrun starts, only the first writes the log and the costs; the others
  say on the terminal what went wrong.
"""

import argparse
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ems import stages, torchrun
from ems.config import SHARED
from ems.config.names import check_name
from ems.costs import measured
from ems.errors import FAILED, EmsError
from ems.evalsets.registry import PER_LANGUAGE
from ems.orphan import stop_with_snakemake
from ems.tables.registry import FIGURES, TABLES, TIMED

log = logging.getLogger("ems")


def main(arguments: list[str] | None = None) -> int:
    """Run one stage; 0, 1 after an error that was printed as one line, or 75 for a training that
    was stopped from outside and saved.
    """
    options = _parser().parse_args(arguments)
    options.arguments = sys.argv[1:] if arguments is None else arguments
    _set_up_log(options.log)
    stop_with_snakemake()
    log.info("ems %s", " ".join(options.arguments))
    try:
        _check_names(options)
        with measured(options.stage, None if torchrun.rank() else options.costs):
            options.run(options)
    except EmsError as error:
        log.error("%s%s", "error: " if error.status == FAILED else "", error)
        return error.status
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        log.error("error: %s%s", where, error.strerror or error)
        return 1
    except KeyboardInterrupt:
        log.error("error: interrupted")
        return 130
    except Exception as error:  # nothing that the user did: say in the log too where it happened
        log.error("error: %r", error, exc_info=True)
        return 1
    return 0


def _set_up_log(path: Path | None) -> None:
    rank = torchrun.rank()
    log.setLevel(logging.WARNING if rank else logging.INFO)
    log.handlers.clear()
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if path is not None and not rank:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, "w", encoding="utf-8"))
    for handler in handlers:
        who = f"process {rank}: " if rank else ""
        handler.setFormatter(logging.Formatter(f"%(asctime)s {who}%(message)s", "%H:%M:%S"))
        log.addHandler(handler)


PLANNED = ("experiment", "expect")  # flags of a stage whose settings the workflow has hashed
LOCATED = ("corpus", "version", "pair")
NAMES = ("experiment", *LOCATED, "code", "system", "benchmark")  # flags with the name of something
OPTIONAL = {"expect"}


@dataclass(frozen=True)
class Stage:
    """A subcommand: its text flags, its path flags (by name, with their `nargs`), and the rest."""

    name: str
    run: Callable[[argparse.Namespace], None]
    text: str
    flags: tuple[str, ...] = ()
    paths: dict[str, str | None] = field(default_factory=dict)
    others: dict[str, dict[str, Any]] = field(default_factory=dict)


OPUS_TABLE = Path("ems/languages/opus.tsv")
ONE, SOME, ANY, MAYBE = None, "+", "*", "?"  # nargs of a path flag
GENERATED = {"--generated": {"action": "store_true", "help": "ems made it: keep no lock of it"}}
PIECES = {
    "--workers": {"type": int, "default": 1, "help": "processes that share a large file"},
    "--piece-lines": {"type": int, "help": argparse.SUPPRESS},  # of tests, which have small files
}
NAMED = {"--name": {"default": SHARED, "help": "which of the experiment's vocabularies"}}
FORMAT = {
    "--format": {
        "choices": ["moses", "mined"],
        "default": "moses",
        "help": "a Moses zip of OPUS, or LASER's mined TSV of WikiMatrix",
    }
}
EVALUATED = {
    "--model": {"help": "a model folder of ours, or a folder or name of sentence-transformers"},
    "--command": {"help": "or a command with {lines} and {out} in it, and {language} if it wants"},
    "--bench": {"required": True, "help": "benchmarks, like tatoeba,flores200"},
    "--experiment": {"help": "another one than config.yaml names: its languages and its data"},
    "--name": {"default": "", "help": "of the system in the score files; the model's if absent"},
    "--evalset": {"nargs": "+", "default": [], "metavar": "NAME=FOLDER", "help": "other data"},
    "--no-cache": {"action": "store_true", "help": "neither read nor keep embeddings"},
}
EVALSETS = [*PER_LANGUAGE, "bucc2018", "xnli", "pawsx", "xsimpp", "cls", "marc", "counterfactual"]
STAGES = [
    Stage(
        "check",
        stages.run_check,
        "check config.yaml and an experiment",
        others={"--experiment": {"help": "another one than config.yaml names"}},
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
            "--db": {"type": Path, "help": "update: OpusTools' database, opusdata.db"},
            "--out": {"type": Path, "default": OPUS_TABLE, "help": "update: where to"},
        },
    ),
    Stage("demo-mirror", stages.run_demo_mirror, "write the embedded demo data", (), {"out": ONE}),
    Stage(
        "fetch",
        stages.run_fetch,
        "fetch and check one pair of a corpus",
        ("source", *LOCATED),
        {"out": ONE},
        FORMAT | GENERATED,
    ),
    Stage(
        "fetch-documents",
        stages.run_fetch_documents,
        "fetch the documents of a corpus's lines",
        ("source", "corpus", "version"),
        {"out": ONE},
    ),
    Stage(
        "fetch-evalset",
        stages.run_fetch_evalset,
        "fetch one language, or one archive, of an evaluation set",
        ("code",),
        {"out": ONE},
        {
            "--evalset": {"choices": EVALSETS, "required": True},
            "--source": {"default": "", "help": "a directory or an address; '': as published"},
        }
        | GENERATED,
    ),
    Stage(
        "evalkeys",
        stages.run_evalkeys,
        "collect the evaluation sentences",
        PLANNED,
        {"out": ONE},
        {"--evalset": {"nargs": "+", "required": True, "metavar": "NAME=FOLDER"}},
    ),
    Stage(
        "clean",
        stages.run_clean,
        "cap, tidy and decontaminate a corpus",
        (*PLANNED, *LOCATED),
        {"archives": SOME, "documents": MAYBE, "keys": ONE, "out": ONE},
    ),
    Stage(
        "report",
        stages.run_report,
        "merge the decontamination reports",
        PLANNED,
        {"entries": SOME, "out": ONE},
    ),
    Stage(
        "segment",
        stages.run_segment,
        "segment the words of a pair file",
        PLANNED,
        {"source": ONE, "state": MAYBE, "out": ONE},
        PIECES,
    ),
    Stage(
        "sample",
        stages.run_sample,
        "sample lines for the vocabulary",
        PLANNED,
        {"sources": SOME, "out": ONE},
        NAMED,
    ),
    Stage(
        "vocabulary",
        stages.run_vocabulary,
        "train the SentencePiece vocabulary",
        PLANNED,
        {"sample": ONE, "out": ONE},
        NAMED,
    ),
    Stage(
        "vocabulary-report",
        stages.run_vocabulary_report,
        "report what the vocabulary does to each language",
        PLANNED,
        {"vocabulary": ONE, "sample": ONE, "out": ONE},
        NAMED,
    ),
    Stage(
        "shards",
        stages.run_shards,
        "encode a pair file into token shards",
        (),
        {"source": ONE, "vocabulary": ONE, "state": MAYBE, "out": ONE},
        PIECES,
    ),
    Stage(
        "index",
        stages.run_index,
        "list the shards of an experiment",
        (),
        {"training": SOME, "validation": ANY, "out": ONE},
    ),
    Stage(
        "inspect",
        stages.run_inspect,
        "show a pair of the shards and where it comes from",
        (),
        {"index": MAYBE, "shard": MAYBE, "vocabulary": MAYBE},
        {
            "--pair": {"help": "the language pair, like de-en"},
            "--row": {"type": int, "required": True, "help": "counted from 0"},
            "--role": {"choices": ["train", "validation"], "default": "train"},
        },
    ),
    Stage(
        "verify",
        stages.run_verify,
        "check all shards against their checksums",
        (),
        {"index": ONE},
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
            "out": ONE,
        },
        {
            "--afresh": {
                "action": "store_true",
                "help": "delete the checkpoints of an unfinished run of other settings",
            },
            "--processes": {
                "type": int,
                "default": 1,
                "help": "that share each step, one a GPU; 1 where train.device is cpu",
            },
        },
    ),
    Stage(
        "bench",
        stages.run_bench,
        "score a system on a benchmark",
        (*PLANNED, "system", "benchmark"),
        {"model": MAYBE, "out": ONE},
        {"--evalset": {"nargs": "*", "default": [], "metavar": "NAME=FOLDER"}},
    ),
    Stage(
        "eval",
        stages.run_eval,
        "evaluate any encoder on benchmarks, outside of the workflow",
        (),
        {"out": ONE},
        EVALUATED,
    ),
    Stage(
        "import-released",
        stages.run_import_released,
        "make a model folder of the EMS authors' checkpoint",
        (),
        {"weights": ONE, "spm": ONE, "out": ONE},
        {
            "--heads": {"type": int, "default": 0, "help": "of attention; 64 wide each if absent"},
            "--segmenter": {
                "choices": ["moses", "sacremoses"],
                "default": "moses",
                "help": "of all but zh and ja: the paper's, or the one in the authors' embed.py",
            },
        },
    ),
    Stage(
        "compare",
        stages.run_compare,
        "compare two systems, sentence by sentence",
        (),
        {"out": MAYBE},
        {
            "first": {"type": Path, "metavar": "A", "help": "a folder of score files, or one"},
            "second": {"type": Path, "metavar": "B", "help": "the same of the other system"},
        },
    ),
    Stage(
        "encode",
        stages.run_encode,
        "encode the lines of a file to a .npy",
        ("language",),
        {"model": ONE, "source": ONE, "out": ONE},
    ),
    Stage(
        "table",
        stages.run_table,
        "write a LaTeX table",
        PLANNED,
        {"sources": SOME, "out": ONE},
        {"table": {"choices": list(TABLES)}},
    ),
    Stage(
        "figure",
        stages.run_figure,
        "plot scores, or how training went",
        PLANNED,
        {"sources": SOME, "out": ONE},
        {"figure": {"choices": list(FIGURES)}},
    ),
    Stage("costs", stages.run_costs, "write the costs table", PLANNED, {"folder": ONE, "out": ONE}),
    Stage(
        "timed",
        stages.run_timed,
        "a figure or a table in which time counts, so that it differs from run to run",
        PLANNED,
        {"sources": SOME, "times": SOME, "out": ONE},
        {"timed": {"choices": list(TIMED)}},
    ),
    Stage(
        "pdf",
        stages.run_pdf,
        "compile the tables to one PDF",
        (),
        {"tables": SOME, "out": ONE},
        {"--caption": {"nargs": "*", "default": [], "metavar": "TABLE=TEXT"}},
    ),
]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ems", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(title="stages", required=True, metavar="stage")
    for stage in STAGES:
        own = commands.add_parser(stage.name, help=stage.text, description=stage.text)
        own.set_defaults(run=stage.run, stage=stage.name, expect="")
        own.add_argument("--log", type=Path, help="write the log lines to this file too")
        own.add_argument("--costs", type=Path, help="write seconds and memory to this JSON file")
        for flag in stage.flags:
            own.add_argument(f"--{flag}", required=flag not in OPTIONAL)
        for flag, nargs in stage.paths.items():
            needed = nargs not in (ANY, MAYBE)
            own.add_argument(f"--{flag}", type=Path, required=needed, nargs=nargs)
        for flag, options in stage.others.items():
            own.add_argument(flag, **options)
    return parser


def _check_names(options: argparse.Namespace) -> None:
    """Raise `EmsError` for a flag whose value should be a name, which is a part of paths."""
    for flag in NAMES:
        name = getattr(options, flag, None)
        if name is not None:
            check_name(f"--{flag}", name)


if __name__ == "__main__":
    sys.exit(main())
