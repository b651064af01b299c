"""What the schema cannot say about the objectives of a system: which of them go together."""

from typing import Any

from ems.errors import EmsError


def check_objectives(key: str, system: dict[str, Any]) -> None:
    """Raise `EmsError` when the objectives of the system at `key` contradict one another."""
    objectives, width = system["objectives"], system["model"]["width"]
    on = [name for name, part in objectives.items() if part.get("weight")]
    if not on:
        raise EmsError(f"{key}: every objective has weight 0; nothing would be learnt")
    others = [name for name in ("ugt", "smlm") if name in on]
    if system["train"]["input_mask"] == "one":
        others.append("train.input_mask: one")
    if "mlm" in on and others:
        raise EmsError(
            f"{key}: mlm masks 15 % of the tokens, {' and '.join(others)} one of each pair, and "
            "all objectives see the same input; choose one of them"
        )
    group, pairs = objectives["contrastive"]["negatives"], system["train"]["batch_pairs"]
    if group != "batch" and pairs % group:
        raise EmsError(
            f"{key}: objectives.contrastive.negatives: {group} pairs a group do not divide "
            f"train.batch_pairs, {pairs}; say `batch` or a divisor of it"
        )
    if "matryoshka" in on:
        _check_dimensions(f"{key}: objectives.matryoshka", objectives["matryoshka"], width)


def _check_dimensions(key: str, settings: dict[str, Any], width: int) -> None:
    if not settings["dimensions"]:
        raise EmsError(f"{key}.dimensions: this list is empty; name some, like [32, 64]")
    for size in settings["dimensions"]:
        if size > width:
            raise EmsError(f"{key}.dimensions: {size} is more than model.width, {width}")
