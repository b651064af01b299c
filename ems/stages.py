"""The stages behind `ems <stage>`: from the parsed flags to one call of the library each.

What a stage needs is imported when it runs, so that `ems fetch` does not load PyTorch.
"""

import argparse
import logging
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ems import torchrun
from ems.config import EMBEDDED, Experiment, load_experiment, load_site, stage_hash
from ems.errors import EmsError
from ems.files import read_json

log = logging.getLogger("ems")


def _experiment(options: argparse.Namespace, stage: str, **wildcards: str) -> Experiment:
    """The experiment of `--experiment`; refuses when its hash is not the `--expect`ed one."""
    site = load_site(Path("config.yaml"), Path("schemas"), {"experiment": options.experiment})
    experiment = load_experiment(options.experiment, site)
    _check_known(experiment, wildcards)
    found = stage_hash(experiment, stage, **wildcards)
    log.info("experiment %s, settings of stage %s %s", experiment.name, stage, found)
    if options.expect and options.expect != found:
        raise EmsError(
            f"configs/{experiment.name}.yaml: stage {stage} was planned with settings "
            f"{options.expect}, the file now gives {found}; it was edited since: run again"
        )
    return experiment


def _check_known(experiment: Experiment, wildcards: dict[str, str]) -> None:
    """Raise `EmsError` for a name that the experiment does not have."""
    known = {
        "system": experiment.systems,
        "benchmark": experiment.benchmarks,
        "vocabulary": experiment.vocabularies,
    }
    for what, name in wildcards.items():
        names = experiment.languages if what == "pair" else known.get(what, [name])
        unknown = set(name.split("-") if what == "pair" else [name]) - set(names)
        if unknown:
            raise EmsError(
                f"configs/{experiment.name}.yaml: expected a {what} of {', '.join(names)}, found "
                f"{name!r}; check the command"
            )


def _downloads() -> Any:
    """How to download, from config.yaml; the defaults where there is none.

    Not from flags: Snakemake would fetch everything again when one of them changes.
    """
    from ems.corpora.download import Downloads

    if not (Path("config.yaml").exists() and Path("schemas").exists()):
        return Downloads()
    site = load_site(Path("config.yaml"), Path("schemas"))
    return Downloads(**site["downloads"], slots=Path(site["data"]) / ".downloads")


def run_check(options: argparse.Namespace) -> None:
    """Check config.yaml and an experiment, and say what is going to run."""
    from ems.plan import plan

    overrides = {"experiment": options.experiment} if options.experiment else {}
    try:
        run = plan(overrides, jobs=True)
        if run.sources.lines:
            raise EmsError(run.sources)
    except EmsError as error:
        *lines, last = str(error).split("\n")
        for line in lines:
            log.error(line)
        raise EmsError(last) from None
    experiment = run.experiment
    swept = len(experiment.systems) - len(experiment.listed)
    corpora = ", ".join(f"{role} {c.label}/{c.version}" for role, c in experiment.all_corpora())
    log.info(
        "experiment %s is fine: %s languages, %s, systems %s",
        experiment.name,
        len(experiment.languages),
        corpora,
        ", ".join(experiment.listed) + (f" and {swept} of the sweep" if swept else ""),
    )


def run_corpora(options: argparse.Namespace) -> None:
    """Print what an experiment downloads, or make the table of OPUS's files again."""
    if options.action == "update":
        from ems.corpora.opus_database import update_facts

        if options.db is None:
            raise EmsError("ems corpora update: give OpusTools' database, --db FILE")
        log.info("%s: %s files", options.out, update_facts(options.db, options.out))
        return
    from ems.downloads import as_csv, as_json, as_text

    site = load_site(Path("config.yaml"), Path("schemas"))
    experiment = load_experiment(options.experiment or site["experiment"], site)
    form = as_json if options.json else as_csv if options.csv else as_text
    sys.stdout.write(form(experiment))


def run_demo_mirror(options: argparse.Namespace) -> None:
    """Write the embedded demo data."""
    from ems.corpora.demo.mirror import write_mirror

    write_mirror(options.out)


def run_fetch(options: argparse.Namespace) -> None:
    """Fetch and check one pair of a corpus."""
    from ems.corpora.fetch import fetch_mined, fetch_moses

    last = (options.out, not options.generated, _downloads())
    if options.format == "mined":
        entry = fetch_mined(options.source, options.pair, *last)
    else:
        entry = fetch_moses(options.source, options.corpus, options.version, options.pair, *last)
    log.info("%s: %s", options.out, entry)


def run_fetch_documents(options: argparse.Namespace) -> None:
    """Fetch the file that names the document of each line of a corpus."""
    from ems.corpora.fetch import fetch_documents

    names = (options.source, options.corpus, options.version)
    entry = fetch_documents(*names, options.out, _downloads())
    log.info("%s: %s", options.out, entry)


def run_fetch_evalset(options: argparse.Namespace) -> None:
    """Fetch one language, or one archive, of an evaluation set."""
    from ems.evalsets.fetch import fetch_evalset

    generated = options.source == EMBEDDED
    source = f"{_site()['data']}/{EMBEDDED}/{options.evalset}" if generated else options.source
    names = (options.evalset, source, options.code)
    count = fetch_evalset(*names, options.out, not generated, _downloads())
    log.info("%s %s: %s read in %s", options.evalset, options.code, count, options.out)


def run_evalkeys(options: argparse.Namespace) -> None:
    """Collect the evaluation sentences."""
    from ems.text.evalkeys import eval_files, write_eval_keys

    experiment = _experiment(options, "evalkeys")
    files = eval_files(experiment, _folders(options))
    kept = experiment.clean["format_characters"]
    count = write_eval_keys(experiment.decontaminate["key"], files, options.out, kept)
    log.info("%s: %s keys of evaluation sentences", options.out, f"{count:,}")


def run_clean(options: argparse.Namespace) -> None:
    """Cap, tidy and decontaminate one pair of a corpus."""
    from ems.text.clean import Source, clean_corpus

    names = {"label": options.corpus, "version": options.version, "pair": options.pair}
    experiment = _experiment(options, "clean", **names)
    source = Source(**names, archives=tuple(options.archives), documents=options.documents)
    entry = clean_corpus(experiment, source, options.keys, options.out)
    log.info("%s: %s", options.out, entry)


def run_report(options: argparse.Namespace) -> None:
    """Merge the decontamination reports."""
    from ems.text.clean import ENTRY, merge_reports

    experiment = _experiment(options, "evalkeys")
    merge_reports(experiment, [read_json(path, ENTRY) for path in options.entries], options.out)
    log.info("%s: %s corpora and pairs", options.out, len(options.entries))


def run_segment(options: argparse.Namespace) -> None:
    """Segment the words of a pair file."""
    from ems.text.bulk import LINES, segment_tsv
    from ems.text.tsv import codes_of

    first, second = codes_of(options.source)
    experiment = _experiment(options, "segment", pair=f"{first}-{second}")
    names = (experiment.segmenters[first], experiment.segmenters[second])
    settings = (options.state, options.workers, options.piece_lines or LINES)
    segment_tsv(options.source, options.out, (first, second), names, *settings)


def _of_vocabulary(options: argparse.Namespace) -> Experiment:
    """The experiment with the languages of the vocabulary that `--name` names."""
    return _experiment(options, "vocabulary", vocabulary=options.name).of_vocabulary(options.name)


def run_sample(options: argparse.Namespace) -> None:
    """Sample lines for the vocabulary."""
    from ems.text.subwords import write_sample

    experiment = _of_vocabulary(options)
    quota = write_sample(experiment, options.sources, options.out)
    log.info("%s: lines per language %s", options.out, quota)


def run_vocabulary(options: argparse.Namespace) -> None:
    """Train the SentencePiece vocabulary."""
    from ems.text.subwords import train_vocabulary

    experiment = _of_vocabulary(options)
    pieces = train_vocabulary(experiment, options.sample, options.out)
    log.info("%s: %s pieces", options.out, f"{pieces:,}")


def run_vocabulary_report(options: argparse.Namespace) -> None:
    """Report what the vocabulary does to each language."""
    from ems.text.vocabulary_report import write_vocabulary_report

    _of_vocabulary(options)
    report = write_vocabulary_report(options.vocabulary, options.sample, options.out)
    log.info("%s: %s languages", options.out, len(report["languages"]))


def run_shards(options: argparse.Namespace) -> None:
    """Encode a pair file into token shards."""
    from ems.shards.writer import PAIRS, write_shards

    settings = (options.state, options.workers, options.piece_lines or PAIRS)
    manifest = write_shards(options.source, options.vocabulary, options.out, *settings)
    log.info("%s: %s", options.out, manifest)


def run_index(options: argparse.Namespace) -> None:
    """List the shards of an experiment by what they are for."""
    from ems.shards.index import write_index

    roles = {"train": options.training, "validation": options.validation or []}
    log.info("%s: %s shards", options.out, write_index(roles, options.out))


def run_inspect(options: argparse.Namespace) -> None:
    """Print a pair of the shards."""
    from ems.shards.inspect import inspect_folder, inspect_index

    if (options.index is None) == (options.shard is None):
        raise EmsError("ems inspect: give either --index FILE and --pair, or --shard FOLDER")
    where = (options.pair, options.row, options.vocabulary)
    if options.shard:
        print(inspect_folder(options.shard, *where))
    elif options.pair is None:
        raise EmsError("ems inspect --index: give the language pair too, like --pair de-en")
    else:
        print(inspect_index(options.index, options.role, *where))


def run_verify(options: argparse.Namespace) -> None:
    """Check shards against their checksums."""
    from ems.shards.index import read_index
    from ems.shards.inspect import verify

    index = read_index(options.index)
    shards, pairs = verify([folder for folders in index.values() for folder in folders])
    log.info("%s: %s shards with %s pairs are whole", options.index, shards, f"{pairs:,}")


def run_train(options: argparse.Namespace) -> None:
    """Train a system."""
    from ems.shards.index import read_index, shards_of
    from ems.shards.reader import PairStore
    from ems.train.batches import Data
    from ems.train.identity import asked_afresh
    from ems.train.job import Places, train

    experiment = _experiment(options, "train", system=options.system)
    own, settings = experiment.of_system(options.system), experiment.systems[options.system]
    how = settings["train"]
    shared = how["device"] != "cpu" and how["steps"] > 0
    if options.processes > 1 and shared and not torchrun.launched():
        torchrun.become(options.processes, how["threads"], options.arguments)
    limit, languages = settings["model"]["max_tokens"], list(own.languages)
    folders = {
        role: shards_of(shards, languages) for role, shards in read_index(options.shards).items()
    }
    training = PairStore(folders["train"], languages, limit, how["corpus_share"])
    held_out = folders["validation"]
    validation = PairStore(held_out, languages, limit) if held_out else None
    data = Data(training, validation, options.vocabulary)
    places = Places(options.out, options.state, options.times, options.scalars)
    train(experiment, options.system, data, places, asked_afresh(options.afresh))


def run_bench(options: argparse.Namespace) -> None:
    """Score a system on a benchmark."""
    from ems.bench.cache import FOLDER, cached
    from ems.bench.encoders import make_encoder
    from ems.bench.registry import evaluate

    names = {"system": options.system, "benchmark": options.benchmark}
    experiment = _experiment(options, "bench", **names)
    encoder = make_encoder(experiment.systems[options.system], options.model)
    folder = Path("results") / experiment.name / FOLDER
    encoder = cached(encoder, folder, _site()["embeddings_mb"])
    evaluate(encoder, experiment, names, _folders(options), options.out)


def run_eval(options: argparse.Namespace) -> None:
    """Evaluate any encoder on benchmarks, by hand: a score file each, and their means."""
    from ems.bench.by_hand import Given, evaluate_by_hand

    site = _site()
    experiment = load_experiment(options.experiment or site["experiment"], site)
    given = Given(
        model=options.model,
        command=options.command,
        name=options.name,
        benchmarks=[name.strip() for name in options.bench.split(",")],
        folders=_folders(options),
        data=Path(site["data"]),
        cache_mb=0 if options.no_cache else site["embeddings_mb"],
    )
    sys.stdout.write(evaluate_by_hand(experiment, given, options.out))


def _folders(options: argparse.Namespace) -> dict[str, Path]:
    """Return the folders that `--evalset NAME=FOLDER` names."""
    return {name: Path(folder) for name, folder in options.evalset}


def _site() -> dict[str, Any]:
    return load_site(Path("config.yaml"), Path("schemas"))


def run_import_released(options: argparse.Namespace) -> None:
    """Make a model folder of the authors' checkpoint."""
    from ems.model.released import import_released

    sizes = import_released(
        options.weights, options.spm, options.out, options.heads, options.segmenter
    )
    log.info("%s: %s", options.out, sizes)


def run_compare(options: argparse.Namespace) -> None:
    """Compare two systems sentence by sentence."""
    from ems.tables.compare import write_comparison

    sys.stdout.write(write_comparison(options.first, options.second, options.out))


def run_encode(options: argparse.Namespace) -> None:
    """Encode the lines of a file to a .npy; only LF ends a line."""
    import numpy as np

    from ems.damaged import Damaged
    from ems.encode import SentenceEncoder
    from ems.files import atomic_path, read_lines

    try:
        lines = read_lines(options.source)
    except Damaged as error:  # the user's text, which is not ours to make again
        raise EmsError(f"{error.finding}; give UTF-8 text, a sentence a line") from None
    vectors = SentenceEncoder(options.model).encode(lines, options.language)
    with atomic_path(options.out) as temporary, open(temporary, "wb") as writer:
        np.save(writer, vectors)
    log.info("%s: float32 %s, one row a line", options.out, vectors.shape)


def run_table(options: argparse.Namespace) -> None:
    """Write a LaTeX table."""
    from ems.tables.registry import tables

    tables()[options.table].make(_request(options))
    _log_written(options)


def run_figure(options: argparse.Namespace) -> None:
    """Plot scores, or how training went."""
    from ems.tables.registry import figures

    figures()[options.figure].make(_request(options))
    _log_written(options)


def _request(options: argparse.Namespace) -> Any:
    from ems.tables.registry import Request

    return Request(_experiment(options, "tables"), options.sources, options.out)


def run_costs(options: argparse.Namespace) -> None:
    """Write the table of costs."""
    from ems.plan import has_job
    from ems.tables.costs import write_costs_table

    experiment = _experiment(options, "tables")
    write_costs_table(options.folder, options.out, partial(has_job, experiment))
    log.info("%s from %s", options.out, options.folder)


def run_timed(options: argparse.Namespace) -> None:
    """Make a figure or a table of scores and of the times of training."""
    from ems.tables.registry import timed

    times = {path.name.removesuffix(".times.jsonl"): path for path in options.times}
    timed()[options.timed].make(replace(_request(options), times=times))
    _log_written(options)


def _log_written(options: argparse.Namespace) -> None:
    log.info("%s from %s", options.out, ", ".join(map(str, options.sources)))


def run_pdf(options: argparse.Namespace) -> None:
    """Compile the tables to one PDF."""
    from ems.tables.pdf import compile_pdf

    compile_pdf(options.tables, dict(options.caption), options.out)
    log.info("%s: %s tables", options.out, len(options.tables))
