"""Tables of trained systems: data and sizes (EMS v2 Table III), mined pairs, sweeps (Table II).

"Parameters" are all trained weights except the input embedding, as in the paper's 147M
(docs/fidelity.md). Malformed and missing files raise `EmsError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Annotated, get_args

from safetensors import SafetensorError, safe_open

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import ENCODER, HEADS, check_readable, read_json
from ems.base.records import Bounds, Count, NonBlank, Percent, Record, number, only
from ems.config.sizes import EncoderSizes
from ems.config.sweep import SweepPoint, written
from ems.config.systems import SystemSettings
from ems.config.tables import Cost
from ems.tables.corpora import TRAIN, Report, read_report
from ems.tables.declarations import words_of
from ems.tables.engine import span
from ems.tables.logs import P1, PARTS, VALIDATION, JobCost, LossEntry, last_time, read_losses
from ems.tables.printed import model_of, read_rows
from ems.tables.table import PRINTED, Cell, Table, Value, best_rows, headings_of, note, write_table

INPUT_EMBEDDING = "tokens.weight"
Share = Annotated[number(ge=0, le=1), "a share"]


class _Model(Record):
    name: NonBlank
    languages: Annotated[list[NonBlank], Bounds(min_length=1)]
    model: EncoderSizes
    training: only("system", only("train", only("corpus_share", Share)))


def write_models_table(models: list[Path], report: Path, printed: list[str], out: Path) -> None:
    """Write EMS v2 Table III of trained `models` (model.json), and of the ones `printed` there."""
    counts = read_report(report)
    rows: list[list[Value]] = []
    for path in models:
        model = read_json(path, _Model, "model.json")
        encoder, heads = weights_of(path)
        sizes = sum(encoder.values()), sum(heads.values())
        trained = sum(sizes) - encoder.get(INPUT_EMBEDDING, 0)
        share = model.training.system.train.corpus_share
        _, pairs = training_pairs(counts, model.languages, share)
        about = (len(model.languages), pairs, architecture(model.model))
        rows.append([model.name, *about, trained, sizes[0], None])
    theirs = [row for row in read_rows("ems-v2-table03-models") if model_of(row) in printed]
    rules = {len(rows)}
    for row in theirs:
        mono = "yes" if row["mono_v2"] or row["mono_v1"] else None
        sizes = (row["archit"], row["param_v2"], None)
        rows.append([model_of(row) + PRINTED, row["langs"], row["paral"], *sizes, mono])
    notes = [note("models")]
    notes += [f"Rows marked printed: {words_of()['table']['models'].paper}."] if theirs else []
    columns = ["Model", "Languages", "Pairs", "Architecture", "Parameters", "To encode"]
    columns += ["Mono"] if theirs else []
    rows = [row[: len(columns)] for row in rows]
    write_table(Table(columns, rows, rules=rules, text={"Architecture"}, notes=notes), out)


def architecture(sizes: EncoderSizes) -> str:
    """Return the parts of an encoder: "Transformer 6 x 1024" (layers x width), "static"."""
    parts = [f"Transformer {sizes.layers} x {sizes.width}"] if sizes.layers else []
    parts += ["static"] if sizes.table or not sizes.layers else []
    return " + ".join([*parts, "n-grams"] if sizes.ngrams else parts)


def weights_of(model: Path) -> list[dict[str, int]]:
    """Return tensor -> elements, of the encoder and of the heads; reads the files' headers only."""
    weights = []
    for path in (model.with_name(ENCODER), model.with_name(HEADS)):
        check_readable(path)
        try:
            with safe_open(path, framework="numpy") as file:
                names = list(file.keys())
                weights.append({name: prod(file.get_slice(name).get_shape()) for name in names})
        except (OSError, SafetensorError) as error:
            raise Damaged(path, f"cannot be read ({error})") from None
    return weights


def training_pairs(report: Report, languages: Iterable[str], share: float) -> tuple[int, int]:
    """Return the pairs between the languages: read, and trained on; documents do not count."""
    pairs = [e for e in report.entries if e.role == TRAIN and e.documents is None]
    own = [entry for entry in pairs if set(entry.sides) <= set(languages)]
    return sum(entry.read for entry in own), sum(int(share * entry.kept) for entry in own)


# --- facts and costs as columns of a study


def fact_of(
    fact: str, system: SystemSettings, model: Path | None, report: Report | None, times: Path | None
) -> Value:
    """Return a fact or a cost of a trained system; None if its file is missing. `memory` is in MB,
    `minutes` per 10,000 steps, `speed` in pairs per second; `times` is next to the costs.
    """
    if not system.trained:
        return None
    if fact in ("raw_pairs", "pairs"):
        share = system.train.corpus_share
        raw, kept = training_pairs(report, system.languages, share) if report else (None, None)
        return kept if fact == "pairs" else raw
    if fact == "parameters":
        return sum(sum(part.values()) for part in weights_of(model)) if model else None
    if fact == "architecture":
        return architecture(system.model)
    if fact not in get_args(Cost):
        return getattr(system.model, fact, None)  # ours have no `decoder_layers`
    if times is None:
        return None
    if fact == "memory":
        path = times.with_name(times.name.replace(".times.jsonl", ".json"))
        return round(read_json(path, JobCost).max_rss_mb) if path.exists() else None
    steps, seconds = last_time(times)
    if not steps or not seconds:
        return None
    if fact == "minutes":
        return 10_000 * seconds / 60 / steps
    return round(system.train.batch_pairs * steps / seconds)


# --- mined pairs


class _Truth(Record):
    known: Count
    right: Count
    chance: Percent


class _Mined(Record):
    pairs: Count
    distinct: Count
    equal: Count
    cosine: float
    known: _Truth | None = None


class _Manifest(Record):
    rounds: Count
    mining: only("sample", Count)
    by_pair: Annotated[dict[str, _Mined], Bounds(min_length=1)]


def write_mining_table(manifests: Sequence[Path], out: Path) -> None:
    """Write a row per system that learns from mined pairs, in a chain one per iteration (Wang et
    al., CCL 2019, section 3.2). Right pairs are known if translations were hidden among documents.
    """
    rows: list[list[Value]] = []
    hidden = False
    for path in manifests:
        manifest = read_json(path, _Manifest, "manifest.json of mined pairs")
        mined = list(manifest.by_pair.values())
        known = [each.known for each in mined if each.known]
        hidden |= bool(known)
        keys = "pairs", "distinct", "equal"
        counts = [sum(getattr(each, key) for each in mined) for key in keys]
        cosine = sum(each.cosine * each.pairs for each in mined)
        shown = f"{cosine / counts[0]:.3f}" if counts[0] else None
        row = [path.parents[1].name, manifest.mining.sample, manifest.rounds, *counts, shown]
        # a language pair counts by its number of known pairs
        count = sum(each.known for each in known)
        right = 100 * sum(each.right for each in known)
        chance = sum(each.known * each.chance for each in known)
        shares = [f"{part / count:.2f}" if count else None for part in (right, chance)]
        rows.append([*row, count if known else None, *shares])
    columns = ["System", "m", "Rounds", "Pairs", "Distinct", "Equal", "Cosine"]
    notes = [note("mining")]
    if hidden:
        columns += ["Known", "Right (%)", "Chance (%)"]
        notes.append(note("mining_known"))
    write_table(Table(columns, [row[: len(columns)] for row in rows], notes=notes), out)


# --- a sweep

OF_THE_LOSS = {  # last keys of the axes along which losses cannot be compared
    *("weight", "temperature", "margin", "negatives", "both_sides", "mask_duplicates"),
    *("target", "sampled", "dimensions", "batch_pairs", "similarity", "reduction"),
}
SETTING, VALUE, TOTAL, PRECISION = "Setting", "Value", "Loss", "P@1"


def write_sweep_table(points: Sequence[SweepPoint], losses: Mapping[str, Path], out: Path) -> None:
    """Write the last validation of each point of a sweep (EMS v2 Table II, section IV-C). The paper
    chose by validation loss: the lowest total of each axis is bold, and the highest P@1. Raises
    `EmsError` for a point whose system has no losses, or no validation among them.
    """
    last = {point.system: _last_validation(point.system, losses) for point in points}
    parts = list(dict.fromkeys(n for entry in last.values() for n in entry.values if n != P1))
    names = headings_of("setting")
    rows: list[list[Value]] = []
    for point in points:
        entry = last[point.system]
        values = [entry.total, *(entry.values.get(name) for name in parts)]
        shown = [None if value is None else f"{value:.3f}" for value in values]
        name = names.get(point.axis, point.axis)
        rows.append([name, written(point.value), *shown, entry.values[P1]])
    axes = [point.axis for point in points]
    of_the_loss = {axis for axis in axes if axis.rpartition(".")[2] in OF_THE_LOSS}
    bold: set[Cell] = set()
    for axis in dict.fromkeys(axes):  # best by the value shown; all of a tie are bold
        entries = {at: last[point.system] for at, point in enumerate(points) if point.axis == axis}
        best = best_rows({at: entry.values[P1] for at, entry in entries.items()})
        bold |= {(at, PRECISION) for at in best}
        if len(entries) > 1 and axis not in of_the_loss:
            totals = {at: f"{entry.total:.3f}" for at, entry in entries.items()}
            lowest = min(totals.values(), key=float)
            bold |= {(at, TOTAL) for at, total in totals.items() if total == lowest}
    centre = {names.get(p.axis, p.axis): written(p.value) for p in points if p.chosen}
    around = ", ".join(f"{name} {value}" for name, value in centre.items())
    seen = span(entry.pairs for entry in last.values())
    notes = [note("sweep", around=around, systems=len(last), seen=seen)]
    notes += [note("sweep_loss")] if of_the_loss else []
    table = Table(
        [SETTING, VALUE, TOTAL, *(PARTS.get(name, name) for name in parts), PRECISION],
        rows,
        bold=bold,
        rules={at for at, axis in enumerate(axes) if at and axis != axes[at - 1]},
        once={SETTING},
        notes=notes,
    )
    write_table(table, out)


def _last_validation(system: str, losses: Mapping[str, Path]) -> LossEntry:
    """Return the validation of the weights that the model has: the kept one, or the last."""
    if system not in losses:
        raise EmsError(f"the sweep has {system}, but its losses.jsonl is missing; train it")
    rows = [entry for entry in read_losses(losses[system]) if entry.part == VALIDATION]
    if not rows or P1 not in rows[-1].values:  # validated on documents alone
        raise mistake("no row of validation", system=losses[system])
    return next((entry for entry in rows if entry.kept), rows[-1])
