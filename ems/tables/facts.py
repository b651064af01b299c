"""Facts of a trained system, and what its training cost, as columns of a study."""

from pathlib import Path

from ems.base.files import read_json
from ems.config.systems import SystemSettings
from ems.tables.corpora import Report
from ems.tables.costs import JobCosts
from ems.tables.losses import last_time
from ems.tables.models import training_pairs, weights_of
from ems.tables.table import Value

HEADINGS = {  # the Lightweight paper's words where it has some
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
NOTES = {
    "parameters": "Params.: all trained weights, input embedding and heads included.",
    "pairs": "Filtered: sentence pairs left after cleaning and decontamination.",
    "memory": "M: the resident memory of our process; Lightweight, Table 5 has that of a V100.",
    "minutes": "T: minutes of 10,000 steps, validation included, on our machine; Lightweight, "
    "Table 5 has those of a V100.",
    "speed": "Pairs/s: sentence pairs of training a second, validation included.",
}
CONSTANT = {"architecture": "Transformer", "decoder_layers": None}


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
    return CONSTANT[fact] if fact in CONSTANT else getattr(system.model, fact)


def cost_of(cost: str, system: SystemSettings, times: Path) -> Value:
    """Return what a training cost: resident memory in MB, minutes of 10,000 steps, or pairs a
    second.

    `times` is its *.times.jsonl, which lies beside its costs.
    """
    if cost == "memory":
        path = times.with_name(times.name.replace(".times.jsonl", ".json"))
        return round(read_json(path, JobCosts).max_rss_mb) if path.exists() else None
    steps, seconds = last_time(times)
    if not steps or not seconds:
        return None
    if cost == "minutes":
        return 10_000 * seconds / 60 / steps
    return round(system.train.batch_pairs * steps / seconds)
