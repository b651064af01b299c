"""`ems <stage> ...`: every rule of the workflow is one such call, usable by hand.

Notable choices:
- stages are imported when they are called, so that `ems fetch` does not load PyTorch;
- `--log FILE` writes the same lines to a file and to the terminal: what went in, what came out, why
  the rest did not; an error is its last line;
- `--expect HASH` is what the workflow planned with: a stage whose settings say something else by
  now refuses to run, on this machine and inside a cluster's job alike.
"""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from ems.config import Experiment, load_experiment, load_site, stage_hash
from ems.errors import EmsError
from ems.files import read_json
from ems.orphan import stop_with_snakemake

log = logging.getLogger("ems")


def main(arguments: list[str] | None = None) -> int:
    """Run one stage; 0, or 1 after an error that was printed as one line."""
    options = _parser().parse_args(arguments)
    _set_up_log(options.log)
    stop_with_snakemake()
    log.info("ems %s", " ".join(sys.argv[1:] if arguments is None else arguments))
    try:
        options.run(options)
    except EmsError as error:
        log.error("error: %s", error)
        return 1
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
    log.setLevel(logging.INFO)
    log.handlers.clear()
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, "w", encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)


def _experiment(options: argparse.Namespace, stage: str, **wildcards: str) -> Experiment:
    """The experiment of `--experiment`; refuses when its hash is not the `--expect`ed one."""
    site = load_site(Path("config.yaml"), Path("schemas"), {"experiment": options.experiment})
    experiment = load_experiment(options.experiment, site)
    found = stage_hash(experiment, stage, **wildcards)
    log.info("experiment %s, settings of stage %s %s", experiment.name, stage, found)
    if options.expect and options.expect != found:
        raise EmsError(
            f"configs/{experiment.name}.yaml: stage {stage} was planned with settings "
            f"{options.expect}, the file now gives {found}; it was edited since: run again"
        )
    return experiment


def _check(options: argparse.Namespace) -> None:
    from ems.plan import plan

    overrides = {"experiment": options.experiment} if options.experiment else {}
    experiment = plan(overrides).experiment
    corpora = ", ".join(f"{role} {c.name}/{c.version}" for role, c in experiment.all_corpora())
    log.info(
        "experiment %s is fine: %s languages, %s, systems %s",
        experiment.name,
        len(experiment.languages),
        corpora,
        ", ".join(experiment.systems),
    )


def _demo_mirror(options: argparse.Namespace) -> None:
    from ems.corpora.demo.mirror import write_mirror

    write_mirror(options.out)


def _fetch(options: argparse.Namespace) -> None:
    from ems.corpora.fetch import fetch_moses

    names = (options.corpus, options.version, options.pair)
    entry = fetch_moses(options.source, *names, options.out, not options.generated)
    log.info("%s: %s", options.out, entry)


def _fetch_tatoeba(options: argparse.Namespace) -> None:
    from ems.evalsets.fetch import fetch_tatoeba

    count = fetch_tatoeba(options.source, options.code, options.out, not options.generated)
    log.info("tatoeba %s: %s sentence pairs in %s", options.code, count, options.out)


def _evalkeys(options: argparse.Namespace) -> None:
    from ems.text.clean import eval_files, write_eval_keys

    experiment = _experiment(options, "evalkeys")
    folders = dict(entry.split("=", 1) for entry in options.evalset)
    files = eval_files(experiment, {name: Path(folder) for name, folder in folders.items()})
    count = write_eval_keys(experiment.decontaminate["key"], files, options.out)
    log.info("%s: %s keys of evaluation sentences", options.out, f"{count:,}")


def _clean(options: argparse.Namespace) -> None:
    from ems.text.clean import clean_corpus

    names = {"name": options.corpus, "version": options.version, "pair": options.pair}
    experiment = _experiment(options, "clean", **names)
    entry = clean_corpus(
        experiment, **names, archive=options.archive, keys=options.keys, out=options.out
    )
    log.info("%s: %s", options.out, entry)


def _report(options: argparse.Namespace) -> None:
    from ems.text.clean import merge_reports

    experiment = _experiment(options, "evalkeys")
    merge_reports(experiment, [read_json(path) for path in options.entries], options.out)
    log.info("%s: %s corpora and pairs", options.out, len(options.entries))


def _segment(options: argparse.Namespace) -> None:
    from ems.text.segment import segment_tsv

    first, second = options.source.stem.split("-")
    experiment = _experiment(options, "segment", pair=f"{first}-{second}")
    names = (experiment.segmenters[first], experiment.segmenters[second])
    segment_tsv(options.source, options.out, (first, second), names)


def _sample(options: argparse.Namespace) -> None:
    from ems.text.subwords import write_sample

    experiment = _experiment(options, "vocabulary")
    quota = write_sample(experiment, options.sources, options.out)
    log.info("%s: lines per language %s", options.out, quota)


def _vocabulary(options: argparse.Namespace) -> None:
    from ems.text.subwords import train_vocabulary

    experiment = _experiment(options, "vocabulary")
    pieces = train_vocabulary(experiment, options.sample, options.out)
    log.info("%s: %s pieces", options.out, f"{pieces:,}")


def _shards(options: argparse.Namespace) -> None:
    from ems.shards.writer import write_shard

    manifest = write_shard(options.source, options.vocabulary, options.out)
    log.info("%s: %s", options.out, manifest)


def _train(options: argparse.Namespace) -> None:
    from ems.shards.reader import PairStore
    from ems.train.loop import Data, train

    experiment = _experiment(options, "train", system=options.system)
    limit = experiment.systems[options.system]["model"]["max_tokens"]
    languages = list(experiment.languages)
    training = PairStore(options.training, languages, limit)
    validation = PairStore(options.validation, languages, limit) if options.validation else None
    data = Data(training, validation, options.vocabulary)
    train(experiment, options.system, data, options.out, options.state)


def _bench(options: argparse.Namespace) -> None:
    from ems.bench.tatoeba import evaluate

    names = {"system": options.system, "benchmark": "tatoeba"}
    experiment = _experiment(options, "bench", **names)
    encoder = _encoder(options.model)
    evaluate(encoder, experiment, options.system, options.evalset, options.out)


def _encoder(model: Path | None) -> Any:
    """The encoder of a model folder, or the baseline that needs none."""
    if model is None:
        from ems.bench.baselines import CharNgramEncoder

        return CharNgramEncoder()
    from ems.encode import SentenceEncoder

    return SentenceEncoder(model)


def _encode(options: argparse.Namespace) -> None:
    import numpy as np

    from ems.encode import SentenceEncoder
    from ems.files import atomic_path

    try:
        text = options.source.read_bytes().decode("utf-8")  # only LF ends a line
    except UnicodeDecodeError as error:
        raise EmsError(f"{options.source}: not UTF-8 at byte {error.start:,}; convert it") from None
    lines = text.removesuffix("\n").split("\n")
    vectors = SentenceEncoder(options.model).encode(lines, options.language)
    with atomic_path(options.out) as temporary, open(temporary, "wb") as writer:
        np.save(writer, vectors)
    log.info("%s: float32 %s, one row a line", options.out, vectors.shape)


def _table(options: argparse.Namespace) -> None:
    from ems.tables.corpora import write_corpora_table, write_decontamination_table
    from ems.tables.tatoeba import write_tatoeba_table

    experiment = _experiment(options, "tables")
    if options.table == "tatoeba":
        printed = experiment.tables["printed"]
        write_tatoeba_table(options.sources, options.out, printed, list(experiment.systems))
    elif options.table == "corpora":
        write_corpora_table(options.sources[0], options.out)
    else:
        write_decontamination_table(options.sources[0], options.out)
    log.info("%s from %s", options.out, ", ".join(map(str, options.sources)))


def _figure(options: argparse.Namespace) -> None:
    from ems.tables.figures import plot_tatoeba

    plot_tatoeba(options.sources, options.out)
    log.info("%s from %s", options.out, ", ".join(map(str, options.sources)))


def _pdf(options: argparse.Namespace) -> None:
    from ems.tables.pdf import compile_pdf

    captions = dict(entry.split("=", 1) for entry in options.caption)
    compile_pdf(options.tables, captions, options.out)
    log.info("%s: %s tables", options.out, len(options.tables))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ems", description=__doc__.partition("\n")[0])
    stages = parser.add_subparsers(title="stages", required=True, metavar="stage")

    def stage(name: str, run: Any, text: str, *flags: str, **paths: Any) -> argparse.ArgumentParser:
        """A stage with required text flags (`*flags`) and path flags (`**paths`: nargs or None)."""
        own = stages.add_parser(name, help=text, description=text)
        own.set_defaults(run=run, expect="")
        own.add_argument("--log", type=Path, help="write the log lines to this file too")
        for flag in flags:
            own.add_argument(f"--{flag}", required=flag != "expect")
        for flag, nargs in paths.items():
            own.add_argument(f"--{flag}", type=Path, required=nargs not in ("*", "?"), nargs=nargs)
        return own

    planned = ("experiment", "expect")
    located = ("corpus", "version", "pair")
    check = stage("check", _check, "check config.yaml and an experiment")
    check.add_argument("--experiment", help="another experiment than config.yaml names")
    stage("demo-mirror", _demo_mirror, "write the embedded demo corpora and benchmark", out=None)
    for own in (
        stage("fetch", _fetch, "fetch and check one OPUS zip", "source", *located, out=None),
        stage("fetch-tatoeba", _fetch_tatoeba, "fetch a Tatoeba part", "source", "code", out=None),
    ):
        own.add_argument("--generated", action="store_true", help="ems made it: keep no lock of it")
    keys = stage("evalkeys", _evalkeys, "collect the evaluation sentences", *planned, out=None)
    keys.add_argument("--evalset", nargs="+", required=True, metavar="NAME=FOLDER")
    stage(
        "clean",
        _clean,
        "cap, tidy and decontaminate a corpus",
        *planned,
        *located,
        archive=None,
        keys=None,
        out=None,
    )
    stage("report", _report, "merge the decontamination reports", *planned, entries="+", out=None)
    stage("segment", _segment, "segment the words of a pair file", *planned, source=None, out=None)
    stage("sample", _sample, "sample lines for the vocabulary", *planned, sources="+", out=None)
    stage(
        "vocabulary",
        _vocabulary,
        "train the SentencePiece vocabulary",
        *planned,
        sample=None,
        out=None,
    )
    stage(
        "shards",
        _shards,
        "encode a pair file into a token shard",
        source=None,
        vocabulary=None,
        out=None,
    )
    stage(
        "train",
        _train,
        "train a system",
        *planned,
        "system",
        training="+",
        validation="*",
        vocabulary=None,
        state=None,
        out=None,
    )
    stage(
        "bench-tatoeba",
        _bench,
        "score a system on Tatoeba",
        *planned,
        "system",
        evalset=None,
        model="?",
        out=None,
    )
    stage(
        "encode",
        _encode,
        "encode the lines of a file to a .npy",
        "language",
        model=None,
        source=None,
        out=None,
    )
    table = stage("table", _table, "write a LaTeX table", *planned, sources="+", out=None)
    table.add_argument("table", choices=["tatoeba", "corpora", "decontamination"])
    stage("figure", _figure, "plot P@1 per language", sources="+", out=None)
    pdf = stage("pdf", _pdf, "compile the tables to one PDF", tables="+", out=None)
    pdf.add_argument("--caption", nargs="*", default=[], metavar="TABLE=TEXT")
    return parser


if __name__ == "__main__":
    sys.exit(main())
