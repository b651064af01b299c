"""Commands that train, import, evaluate, compare, export and publish encoders."""

import re
import sys
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Annotated, Any, Literal

from ems.base import torchrun
from ems.base.errors import Damaged, EmsError
from ems.base.files import ENCODER, HEADS, NGRAMS, VOCABULARY, atomic_path
from ems.base.outputs import Writes
from ems.base.texts import read_lines
from ems.commands import common
from ems.commands.flags import Bounds, Mark

IMPORTED = ("model.json", ENCODER, HEADS, VOCABULARY)
OUR_PAIRS = Writes("whole folder", ours="ems.shards.index:is_mined")
OUR_EXPORT = Writes("whole folder", ours="ems.export:is_export")
Shards = Annotated[Path, "list of shards"]
SEGMENTER = "segmenter of all languages except zh and ja: the paper's, or the one in embed.py"
COMPARED = (".tex", ".csv", ".md", ".svg", ".png", ".pdf")
TRAINED = (*IMPORTED, "losses.jsonl")
SCORES = "score files of trained systems, in a folder next to `models`"
LOSS = "experiment whose data measure the loss without segmenters (default: the model's)"
FITTED = ("model.json", NGRAMS)
QUANTISED = "rows of 8 bits, a quarter of the size, of a model without layers; for ems alone"
SYSTEM = "name of the system in the score files (default: the model's)"
RESULTS = "folder `results` of MTEB, to publish with the model"
TERMS = "cc-by-sa-4.0, cc-by-4.0, or a file with another text (default: what the corpora allow)"
PLAIN = "a table for sentence-transformers and model2vec without any code, trained on --text"


def mine_documents(
    experiment: common.ExperimentName,
    system: common.SystemName,
    shards: Shards,
    model: Annotated[Path, "model folder of the system in its `train.start_from`"],
    out: Annotated[Path, "folder to write", OUR_PAIRS],
    state: common.State = None,
    expect: common.Expected = "",
) -> None:
    """Mine pairs of similar sentences in documents."""
    from ems.shards.index import read_index
    from ems.train.mine_documents import mine

    whole = common.planned(experiment, expect, "mine", system=system)
    objectives = whole.systems[system].objectives
    if not objectives or not objectives.coherence.weight:
        raise EmsError(f"systems.{system}: objectives.coherence has weight 0: nothing to mine")
    manifest = mine(whole.of_system(system), system, read_index(shards), model, out, state)
    common.log.info("%s: pairs mined %s", out, manifest["pairs"])


def train(
    experiment: common.ExperimentName,
    system: common.SystemName,
    shards: Shards,
    vocabulary: common.VocabularyPath,
    state: Annotated[Path, "folder for checkpoints, which are deleted at the end", Writes("state")],
    out: Annotated[Path, "model folder to write into", Writes("folder", names=TRAINED)],
    start: Annotated[Path | None, "model folder of the system in its `train.start_from`"] = None,
    mined: Annotated[Path | None, "folder of mined pairs, for the objective `coherence`"] = None,
    times: Annotated[Path | None, "log to write of the time of each step", Writes()] = None,
    scalars: Annotated[Path | None, "folder for TensorBoard", Writes("folder")] = None,
    processes: Annotated[int, "number of processes, one per GPU", Bounds(0, 32)] = 1,
    nodes: Annotated[
        int, "number of machines of a Slurm job, each with that many processes", Bounds(1, 1024)
    ] = 1,
    afresh: Annotated[bool, "deletion of unfinished checkpoints made with other settings"] = False,
    expect: common.Expected = "",
) -> None:
    """Train a system with its objectives, or resume its training."""
    from ems.shards.index import read_index
    from ems.train import job
    from ems.train.data import training_data

    whole = common.planned(experiment, expect, "train", system=system)
    own, settings = whole.of_system(system), whole.systems[system]
    training = settings.train
    shared = training.device != "cpu" and training.steps > 0
    if (processes > 1 or nodes > 1) and shared and not torchrun.launched():
        torchrun.become(max(1, processes), nodes, training.threads, sys.argv[1:])
    data = training_data(settings, list(own.languages), read_index(shards), vocabulary, mined)
    job.train(
        whole, system, data, out, state, times=times, scalars=scalars, start=start, afresh=afresh
    )


def fit(
    experiment: common.ExperimentName,
    system: common.SystemName,
    out: Annotated[Path, "model folder to write into", Writes("folder", names=FITTED)],
    text: Annotated[list[Path], "clean training text"] = (),
    pairs: Annotated[list[Path], "clean validation pairs, for a system of kind fused"] = (),
    model: Annotated[Path | None, "model folder of the system that its `of` names"] = None,
    expect: common.Expected = "",
) -> None:
    """Count the n-grams of a system and choose their weight."""
    from ems.model import fit as fitting

    settings = common.planned(experiment, expect, "fit", system=system)
    fitting.fit(settings, system, out, text, pairs, model)


def bench(
    experiment: common.ExperimentName,
    system: common.SystemName,
    benchmark: Annotated[str, "name of the benchmark", Mark.NAME],
    out: common.OutFile,
    model: Annotated[Path | None, "model folder of a trained or fitted system"] = None,
    evalset: common.Folders = (),
    expect: common.Expected = "",
) -> None:
    """Score a system on a benchmark."""
    from ems.bench.encoders import CACHE_FOLDER, cached, make_encoder
    from ems.bench.evaluate import Task, evaluate

    names = {"system": system, "benchmark": benchmark}
    settings = common.planned(experiment, expect, "bench", **names)
    encoder = make_encoder(settings.systems[system], model)
    folder = Path("results") / settings.name / CACHE_FOLDER
    encoder = cached(encoder, folder, common.site_settings().embeddings_mb)
    evaluate(Task(encoder, settings, system, benchmark, evalset), out)


def examples(
    experiment: common.ExperimentName,
    out: common.OutFile,
    scores: Annotated[list[Path], SCORES] = (),
    evalset: common.Folders = (),
    expect: common.Expected = "",
) -> None:
    """Find right and wrong answers of the best system."""
    from ems.bench.encoders import CACHE_FOLDER, cached, make_encoder
    from ems.bench.examples import write_examples

    settings = common.planned(experiment, expect, "tables")
    cache, site = Path("results", settings.name, CACHE_FOLDER), common.site_settings()

    def encoder_of(system: str) -> Any:
        model = scores[0].absolute().parents[2] / "models" / system
        return cached(make_encoder(settings.systems[system], model), cache, site.embeddings_mb)

    chosen = write_examples(settings, scores, encoder_of, evalset, out)
    common.log.info("%s: %s on %s", out, chosen.system, ", ".join(chosen.benchmarks) or "nothing")


def eval_(
    bench: Annotated[str, "names of benchmarks, like tatoeba,flores200"],
    out: common.OutFolder,
    model: Annotated[
        str | None, "model folder, exported folder, or sentence-transformers model", Mark.PLACE
    ] = None,
    command: Annotated[str | None, "command with {lines}, {out}, perhaps {language}"] = None,
    experiment: common.OtherExperiment = None,
    name: Annotated[str | None, SYSTEM, Mark.NAME] = None,
    evalset: common.Folders = (),
    no_cache: Annotated[bool, "encoding without the cache of embeddings"] = False,
) -> None:
    """Evaluate any encoder on benchmarks, outside the workflow."""
    from ems.bench.evaluate import evaluate_by_hand

    site = common.site_settings()
    names = [each.strip() for each in bench.split(",")]
    settings, data = common.experiment_of(experiment), Path(site.data)
    options = {"folders": evalset, "cache_mb": 0 if no_cache else site.embeddings_mb}
    summary = evaluate_by_hand(settings, names, out, data, model, command, name, **options)
    sys.stdout.write(summary)


def import_released(
    weights: Annotated[Path, "checkpoint file of the authors, https://github.com/Mao-KU/EMS"],
    spm: Annotated[Path, "SentencePiece model of the authors"],
    out: Annotated[Path, "model folder to write into", Writes("folder", names=IMPORTED)],
    heads: Annotated[int, "number of attention heads (default: width / 64)", Bounds(0, 1024)] = 0,
    segmenter: Annotated[Literal["moses", "sacremoses"], SEGMENTER] = "moses",
) -> None:
    """Convert the checkpoint of the EMS authors to a model folder."""
    from ems.model import released

    common.log.info("%s: %s", out, released.import_released(weights, spm, out, heads, segmenter))


def compare(
    a: Annotated[Path, "folder of score files, or one score file", Mark.POSITIONAL],
    b: Annotated[Path, "the same for the other system", Mark.POSITIONAL],
    out: Annotated[Path | None, "tables and figures to write", Writes(suffixes=COMPARED)] = None,
    all: Annotated[bool, "every language of every benchmark"] = False,
) -> None:
    """Compare two systems sentence by sentence."""
    from ems.tables.compare import write_comparison

    sys.stdout.write(write_comparison(a, b, out, all))


def export(
    model: common.ModelFolder,
    out: Annotated[Path, "folder to write", OUR_EXPORT],
    onnx: Annotated[bool, "an ONNX graph as well"] = False,
    int8: Annotated[bool, "an ONNX graph of 8 bits as well"] = False,
    dimensions: common.Dimensions = 0,
    plain: Annotated[bool, PLAIN] = False,
    quantised: Annotated[bool, QUANTISED] = False,
    text: Annotated[list[Path], "training text for --plain (default: the experiment's)"] = (),
    verify: Annotated[Path | None, "lines to check the folder on (default: a sample)"] = None,
    without_segmenters: Annotated[bool, "export of a model that needs segmenters"] = False,
    experiment: Annotated[str | None, LOSS, Mark.NAME] = None,
) -> None:
    """Export a model for other libraries and the Hugging Face hub."""
    from ems.export import folder, tokenizer
    from ems.export.card import card
    from ems.export.plain import make_plain
    from ems.export.verify import sample
    from ems.model.folder import read_model

    description = read_model(model)
    tool, lost = tokenizer.choose_segmenter(model, description.segmenters, without_segmenters)
    loss = None
    if lost:
        whole = common.experiment_of(experiment or description.experiment or None)
        data = Path(common.site_settings().data)
        loss = tokenizer.measure_loss(model, description, tool, whole, data)
    exported = folder.Exported(model, tool, onnx, int8, dimensions)
    if quantised and (plain or onnx or int8):
        raise EmsError("--quantised is for ems alone; leave out --plain, --onnx and --int8")
    exported.quantised = quantised
    if plain:
        exported.plain = make_plain(exported, text)
    elif text:
        raise EmsError("--text is what --plain learns from; add --plain, or leave --text out")
    try:
        lines = read_lines(verify) if verify else sample(exported.ours.vocabulary)
    except Damaged as error:
        raise EmsError(f"{error.finding}; give UTF-8 text with a sentence per line") from None
    figures = folder.export(exported, lines, partial(card, exported, loss), out)
    for name, value in figures.items():
        if isinstance(value, dict):
            for key, number in value.items():
                print(f"{name}.{key}={number:.8f}")
        elif isinstance(value, int):
            print(f"{name}={value}")


def publish(
    model: Annotated[Path, "model folder, or a folder that `ems export` wrote"],
    out: Annotated[Path, "folder to write", OUR_EXPORT],
    repo: Annotated[str, "repository to upload to, like NAME/ID (default: no upload)"] = "",
    dry_run: Annotated[bool, "the folder and the list of files, without an upload"] = False,
    private: Annotated[bool, "a new repository that others cannot see"] = False,
    update: Annotated[bool, "a commit to the repository if it exists"] = False,
    licence: Annotated[str, TERMS] = "",
    mteb: Annotated[Path | None, RESULTS] = None,
    plain: Annotated[bool, "a folder `plain` as well: " + PLAIN] = False,
    text: Annotated[list[Path], "training text for --plain (default: the experiment's)"] = (),
    without_segmenters: Annotated[bool, "export of a model that needs segmenters"] = False,
) -> None:
    """Write a folder for the Hugging Face hub, and upload it."""
    from ems.export import is_export
    from ems.export import publish as hub

    if repo and not re.fullmatch(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", repo):
        raise EmsError(f"--repo {repo}: expected NAME/ID, like me/ems-62")
    with atomic_path(out, ours=is_export) as folder:
        if is_export(model, edited="README.md"):
            copytree(model, folder)
        else:
            export(model, folder, int8=True, without_segmenters=without_segmenters)
        if plain:
            export(model, folder / "plain", plain=True, text=text)
        hub.complete(folder, licence, mteb, repo)
    sys.stdout.write(hub.listing(out))
    if repo and not dry_run:
        print(hub.upload(out, repo, private, update))
