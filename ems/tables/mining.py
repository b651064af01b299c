"""The table of what was mined: a row for each system that learns from mined pairs, an iteration of
a chain each (Wang et al., CCL 2019, section 3.2).

How many pairs are right is known where translations were hidden among the documents
(`ems.train.mine_documents`); beside it stands what pairs drawn at random would have.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from ems.base.files import read_json
from ems.base.schema import Count, Number, Percent, Record
from ems.tables.table import Table, Value, write_table

NAME = "manifest.json of mined pairs"
COLUMNS = ["System", "m", "Rounds", "Pairs", "Distinct", "Equal", "Cosine"]
TRUTH = ["Known", "Right (%)", "Chance (%)"]
NOTE = (
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
    by_pair: Annotated[dict[str, _Mined], MinLen(1)]


def write_mining_table(manifests: Sequence[Path], out: Path) -> None:
    """Write what systems mined as .tex, .md and .csv beside `out`; `manifests` are their
    models/SYSTEM/mined/manifest.json, in the order of the rows.

    Raises `EmsError` for a malformed file.
    """
    read = {path.parents[1].name: read_json(path, _Manifest, NAME) for path in manifests}
    known = any(of.known for manifest in read.values() for of in manifest.by_pair.values())
    rows = [_row(name, manifest) for name, manifest in read.items()]
    columns = [*COLUMNS, *TRUTH] if known else COLUMNS
    notes = [NOTE, TRUTH_NOTE] if known else [NOTE]
    rows = [row[: len(columns)] for row in rows]
    write_table(Table(columns, rows, notes=notes), out)


def _row(name: str, manifest: _Manifest) -> list[Value]:
    of_pairs = list(manifest.by_pair.values())
    keys = ("pairs", "distinct", "equal")
    pairs, distinct, equal = (sum(getattr(of, key) for of in of_pairs) for key in keys)
    cosine = sum(of.cosine * of.pairs for of in of_pairs) / pairs if pairs else None
    shown = None if cosine is None else f"{cosine:.3f}"
    mined = [manifest.mining.sample, manifest.rounds, pairs, distinct, equal, shown]
    return [name, *mined, *_truth([of.known for of in of_pairs if of.known])]


def _truth(known: list[_Truth]) -> list[Value]:
    """Return how many pairs are known, and in percent those that are right and would be by chance:
    of each pair of languages as many as are known of it.
    """
    count = sum(of.known for of in known)
    if not count:
        return [0 if known else None, None, None]
    right = 100 * sum(of.right for of in known) / count
    return [count, f"{right:.2f}", f"{sum(of.known * of.chance for of in known) / count:.2f}"]
