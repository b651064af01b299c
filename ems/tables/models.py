"""Tables of trained systems: their data and sizes (EMS v2 Table III), what they mined, and sweeps
(Table II); and the facts of a system that a study shows.

"#Param." is counted as the paper's 147M can be: all trained weights but the input embedding, of
which only the rows of a sentence's pieces are read; "to encode" is what is used after training, the
input embedding included (docs/fidelity.md). Sizes are read off the weights themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Annotated

from pydantic import Field
from safetensors import SafetensorError, safe_open

from ems.base.errors import Damaged, EmsError
from ems.base.files import ENCODER, HEADS, read_json
from ems.base.schema import Count, Expected, Number, Percent, Record, Text, number
from ems.config.sweep import Point
from ems.config.systems import SystemSettings
from ems.tables.corpora import TRAIN, Report, read_report
from ems.tables.engine import span
from ems.tables.logs import P1, PARTS, VALIDATION, Cost, Entry, last_time, read_losses
from ems.tables.printed import load_grid, load_printed_models, of_ems
from ems.tables.table import PRINTED, Place, Table, Value, best_rows, write_table

MODEL_COLUMNS = ["Model", "Langs", "Paral.", "Mono", "Archit.", "#Param.", "to encode"]
INPUT_EMBEDDING = "tokens.weight"
ARCHITECTURE = "Dual-Trans"  # the paper's word: both sides through one Transformer


class _Train(Record):
    corpus_share: Annotated[number(ge=0, le=1), Expected("a share")]


class _System(Record):
    train: _Train


class _Training(Record):
    system: _System


class _Model(Record):
    """Of a model.json, what was trained."""

    name: Text
    languages: Annotated[list[Text], Field(min_length=1)]
    training: _Training


def write_models_table(models: list[Path], report: Path, printed: list[str], out: Path) -> None:
    """Write Table III of some systems as .tex, .md and .csv beside `out`.

    `models` are the systems' model.json, `report` the decontamination report; `printed` names
    models of the paper, of which those of Table III are shown. Raises `EmsError` for a malformed
    or missing file.
    """
    counts = read_report(report)
    rows = [_model_row(path, counts) for path in models]
    beside: list[list[Value]] = []
    for model in load_printed_models():
        if model["model"] in printed:
            mono = "yes" if model["mono_v2"] or model["mono_v1"] else None
            sizes = (model["archit"], model["param_v2"], None)
            label = model["model"] + PRINTED
            beside.append([label, model["langs"], model["paral"], mono, *sizes])
    notes = [
        "Paral.: sentence pairs left after cleaning and decontamination. #Param.: all trained "
        "weights without the input embedding, as the paper's 147M can be counted; to encode: the "
        "weights used after training, the input embedding included."
    ]
    notes += [f"Rows marked printed: {of_ems('III')}."] if beside else []
    text = {"Archit."}
    table = Table(MODEL_COLUMNS, [*rows, *beside], rules={len(rows)}, text=text, notes=notes)
    write_table(table, out)


def _model_row(path: Path, report: Report) -> list[Value]:
    model = read_json(path, _Model, "model.json")
    languages, share = model.languages, model.training.system.train.corpus_share
    encoder, heads = weights_of(path)
    trained = sum(encoder.values()) + sum(heads.values()) - encoder.get(INPUT_EMBEDDING, 0)
    _, pairs = training_pairs(report, languages, share)
    return [model.name, len(languages), pairs, None, ARCHITECTURE, trained, sum(encoder.values())]


def weights_of(model: Path) -> list[dict[str, int]]:
    """Return tensor -> number of elements of the encoder and of the heads beside a model.json; only
    the files' headers are read.
    """
    weights = []
    for path in (model.with_name(ENCODER), model.with_name(HEADS)):
        try:
            with safe_open(path, framework="numpy") as file:
                names = list(file.keys())
                weights.append({name: prod(file.get_slice(name).get_shape()) for name in names})
        except (OSError, SafetensorError) as error:
            raise Damaged(path, f"cannot be read ({error})") from None
    return weights


def training_pairs(report: Report, languages: Iterable[str], share: float) -> tuple[int, int]:
    """Return the pairs that corpora have of some languages: as read, and as trained on.

    Sentences of documents are no pairs.
    """
    pairs = [e for e in report.entries if e.role == TRAIN and e.documents is None]
    own = [entry for entry in pairs if set(entry.sides) <= set(languages)]
    return sum(entry.read for entry in own), sum(int(share * entry.kept) for entry in own)


# --- facts and costs as columns of a study

FACT_HEADINGS = {  # the Lightweight paper's words where it has some
    "architecture": "Architecture",
    "width": "d_h",
    "feed_forward": "d_fc",
    "heads": "attn_h",
    "layers": "Enc.",
    "decoder_layers": "Dec.",
    "parameters": "Params.",
    "raw_pairs": "Raw",
    "pairs": "Filtered",
    "memory": "M (MB)",
    "minutes": "T (min)",
    "speed": "Pairs/s",
}
FACT_NOTES = {
    "parameters": "Params.: all trained weights, input embedding and heads included.",
    "pairs": "Filtered: sentence pairs left after cleaning and decontamination.",
    "memory": "M: the resident memory of our process; Lightweight, Table 5 has that of a V100.",
    "minutes": "T: minutes of 10,000 steps, validation included, on our machine; Lightweight, "
    "Table 5 has those of a V100.",
    "speed": "Pairs/s: sentence pairs of training a second, validation included.",
}
CONSTANT_FACTS = {"architecture": "Transformer", "decoder_layers": None}


def fact_of(fact: str, system: SystemSettings, model: Path | None, report: Report | None) -> Value:
    """Return a fact of a system that is trained here; None for another, or without its file.

    `model` is its model.json, `report` the decontamination report.
    """
    if not system.trained:
        return None
    if fact in ("raw_pairs", "pairs"):
        share = system.train.corpus_share
        raw, kept = training_pairs(report, system.languages, share) if report else (None, None)
        return kept if fact == "pairs" else raw
    if fact == "parameters":
        return sum(sum(part.values()) for part in weights_of(model)) if model else None
    return CONSTANT_FACTS[fact] if fact in CONSTANT_FACTS else getattr(system.model, fact)


def cost_of(cost: str, system: SystemSettings, times: Path) -> Value:
    """Return what a training cost: resident memory in MB, minutes of 10,000 steps, or pairs a
    second.

    `times` is its *.times.jsonl, which lies beside its costs.
    """
    if cost == "memory":
        path = times.with_name(times.name.replace(".times.jsonl", ".json"))
        return round(read_json(path, Cost).max_rss_mb) if path.exists() else None
    steps, seconds = last_time(times)
    if not steps or not seconds:
        return None
    if cost == "minutes":
        return 10_000 * seconds / 60 / steps
    return round(system.train.batch_pairs * steps / seconds)


# --- what was mined

MINING_COLUMNS = ["System", "m", "Rounds", "Pairs", "Distinct", "Equal", "Cosine"]
TRUTH_COLUMNS = ["Known", "Right (%)", "Chance (%)"]
MINING_NOTE = (
    "What each system mined with the encoder that it starts from, all pairs of languages together. "
    "m: sentences of a language in a round. Distinct: each pair counted once. Equal: pairs of "
    "the same pieces, like numbers. Cosine: its mean over the pairs."
)
TRUTH_NOTE = (
    "Known: mined pairs with one of the hidden validation sentences, in a search of their own. Of "
    "these Right are translations; Chance is the share among pairs drawn at random."
)


class _Truth(Record):
    """Mined pairs with a hidden validation sentence: how many, and how many are translations."""

    known: Count
    right: Count
    chance: Percent


class _Mined(Record):
    """The pairs mined of a language pair."""

    pairs: Count
    distinct: Count
    equal: Count
    cosine: Number
    known: _Truth | None = None


class _Mining(Record):
    """The settings of mining."""

    sample: Count


class _Manifest(Record):
    """The manifest of mined pairs."""

    rounds: Count
    mining: _Mining
    by_pair: Annotated[dict[str, _Mined], Field(min_length=1)]


def write_mining_table(manifests: Sequence[Path], out: Path) -> None:
    """Write what systems mined as .tex, .md and .csv beside `out`: a row per system that learns
    from mined pairs, an iteration of a chain each (Wang et al., CCL 2019, section 3.2).

    `manifests` are their models/SYSTEM/mined/manifest.json, in the order of the rows. How many
    pairs are right is known where translations were hidden among the documents.

    Raises `EmsError` for a malformed file.
    """
    read = {
        path.parents[1].name: read_json(path, _Manifest, "manifest.json of mined pairs")
        for path in manifests
    }
    known = any(pairs.known for manifest in read.values() for pairs in manifest.by_pair.values())
    rows = [_mining_row(name, manifest) for name, manifest in read.items()]
    columns = [*MINING_COLUMNS, *TRUTH_COLUMNS] if known else MINING_COLUMNS
    notes = [MINING_NOTE, TRUTH_NOTE] if known else [MINING_NOTE]
    rows = [row[: len(columns)] for row in rows]
    write_table(Table(columns, rows, notes=notes), out)


def _mining_row(name: str, manifest: _Manifest) -> list[Value]:
    mined = list(manifest.by_pair.values())
    keys = ("pairs", "distinct", "equal")
    pairs, distinct, equal = (sum(getattr(each, key) for each in mined) for key in keys)
    cosine = sum(each.cosine * each.pairs for each in mined) / pairs if pairs else None
    shown = None if cosine is None else f"{cosine:.3f}"
    counts = [manifest.mining.sample, manifest.rounds, pairs, distinct, equal, shown]
    return [name, *counts, *_truth([each.known for each in mined if each.known])]


def _truth(known: list[_Truth]) -> list[Value]:
    """Return how many pairs are known, and in percent those that are right and would be by chance:
    of each pair of languages as many as are known of it.
    """
    count = sum(each.known for each in known)
    if not count:
        return [0 if known else None, None, None]
    right = 100 * sum(each.right for each in known) / count
    chance = sum(each.known * each.chance for each in known) / count
    return [count, f"{right:.2f}", f"{chance:.2f}"]


# --- a sweep

OF_THE_LOSS = {  # last keys of the axes along which the loss is not one measure
    *("weight", "temperature", "margin", "negatives", "both_sides", "mask_duplicates"),
    *("target", "sampled", "dimensions", "batch_pairs", "similarity", "reduction"),
}
SETTING_NAMES = {
    "model.layers": "layers",
    "model.dropout": "dropout",
    "model.attention_dropout": "attention dropout",
    "objectives.contrastive.temperature": "temperature",
    "train.learning_rate": "learning rate",
    "train.weight_decay": "weight decay",
    "train.warmup_steps": "warm-up steps",
}
SETTING, VALUE, TOTAL, PRECISION = "Setting", "Value", "Loss", "P@1"


def write_sweep_table(points: Sequence[Point], losses: Mapping[str, Path], out: Path) -> None:
    """Write the last validation of each point, one setting at a time around the chosen one (EMS v2
    Table II, IV-C), as .tex, .md and .csv beside `out`; `losses`: system -> losses.jsonl.

    The paper chose by validation loss: the lowest total of each axis is bold, and the highest P@1.
    A setting of the loss itself changes what the loss measures, so along such an axis only P@1 is
    compared. What the paper chose carries a dagger.

    Raises `EmsError` for a point whose system has no losses, or no validation among them.
    """
    last = {point.system: _last_validation(point.system, losses) for point in points}
    parts = list(dict.fromkeys(n for entry in last.values() for n in entry.values if n != P1))
    rows = []
    for point in points:
        entry = last[point.system]
        values = [entry.total, *(entry.values.get(name) for name in parts)]
        shown = [None if value is None else f"{value:.3f}" for value in values]
        rows.append(
            [SETTING_NAMES.get(point.axis, point.axis), point.shown, *shown, entry.values[P1]]
        )
    axes = [point.axis for point in points]
    chosen = {(at, VALUE) for at, point in enumerate(points) if _is_papers(point)}
    table = Table(
        [SETTING, VALUE, TOTAL, *(PARTS.get(name, name) for name in parts), PRECISION],
        rows,
        bold={place for axis in axes for place in _best_places(points, axis, last)},
        dagger=chosen,
        rules={at for at, axis in enumerate(axes) if at and axis != axes[at - 1]},
        once={SETTING},
        notes=_sweep_notes(points, last),
        footnote=f"chosen in {of_ems('II')}" if chosen else "",
    )
    write_table(table, out)


def _last_validation(system: str, losses: Mapping[str, Path]) -> Entry:
    """Return the last validation of a system, or that of the weights that it has."""
    if system not in losses:
        raise EmsError(f"the sweep has {system}, but no losses.jsonl of it was given; train it")
    rows = [entry for entry in read_losses(losses[system]) if entry.part == VALIDATION]
    if not rows or P1 not in rows[-1].values:  # validated on documents alone
        raise EmsError(
            f"{losses[system]}: no row of validation on pairs; set `validation` and train again"
        )
    return next((entry for entry in rows if entry.kept), rows[-1])


def _is_papers(point: Point) -> bool:
    """Return True if the paper chose the value, or a number equal to it."""
    number = isinstance(point.value, int | float) and not isinstance(point.value, bool)
    chosen = [value for value, own in load_grid().get(point.axis, {}).items() if own]
    return number and Decimal(repr(point.value)) in map(Decimal, chosen)


def _best_places(points: Sequence[Point], axis: str, last: Mapping[str, Entry]) -> set[Place]:
    """Return the highest P@1 and the lowest loss of an axis, as they are shown; ties all bold."""
    entries = {at: last[point.system] for at, point in enumerate(points) if point.axis == axis}
    if len(entries) < 2:
        return set()
    places = {(at, PRECISION) for at in best_rows({at: e.values[P1] for at, e in entries.items()})}
    if not _changes_the_loss(axis):
        totals = {at: f"{entry.total:.3f}" for at, entry in entries.items()}
        lowest = min(totals.values(), key=float)
        places |= {(at, TOTAL) for at, total in totals.items() if total == lowest}
    return places


def _changes_the_loss(axis: str) -> bool:
    return axis.rpartition(".")[2] in OF_THE_LOSS


def _sweep_notes(points: Sequence[Point], last: Mapping[str, Entry]) -> list[str]:
    chosen = {point.axis: point for point in points if point.chosen}
    centre = ", ".join(f"{SETTING_NAMES.get(a, a)} {point.shown}" for a, point in chosen.items())
    seen = span(entry.pairs for entry in last.values())
    notes = [
        f"One setting at a time around {centre}; {len(last)} systems, each trained on {seen} "
        "sentence pairs. Loss, its parts and P@1 (percent, mean over language pairs and "
        "directions): the last validation. Bold: the best of each setting."
    ]
    if any(_changes_the_loss(point.axis) for point in points):
        notes.append(
            "A setting of the loss itself (temperature, weight, batch) changes what the loss "
            "measures: along it only P@1 is compared."
        )
    return notes
