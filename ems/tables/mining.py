"""The table of what was mined: a row for each system that learns from mined pairs, an iteration of
a chain each (Wang et al., CCL 2019, section 3.2).

How many pairs are right is known where translations were hidden among the documents
(`ems.train.mine_documents`); beside it stands what pairs drawn at random would have.
"""

from collections.abc import Sequence
from pathlib import Path

from ems.base.files import read_json
from ems.base.schema import Json
from ems.base.shapes import COUNT, PERCENT, mapping, named, record
from ems.tables.table import Table, Value, write_table

KNOWN = record({"known": COUNT, "right": COUNT, "chance": PERCENT})
NUMBER = {"type": "number", "description": "a number"}
OF_PAIR = record(
    {"pairs": COUNT, "distinct": COUNT, "equal": COUNT, "cosine": NUMBER}, {"known": KNOWN}
)
MANIFEST = named(
    "manifest.json of mined pairs",
    record(
        {
            "rounds": COUNT,
            "mining": record({"sample": COUNT}),
            "by_pair": mapping(OF_PAIR, least=1),
        }
    ),
)
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


def write_mining_table(manifests: Sequence[Path], out: Path) -> None:
    """Write what systems mined as .tex, .md and .csv beside `out`; `manifests` are their
    models/SYSTEM/mined/manifest.json, in the order of the rows.

    Raises `EmsError` for a malformed file.
    """
    read = {path.parents[1].name: read_json(path, MANIFEST) for path in manifests}
    known = any("known" in of for manifest in read.values() for of in manifest["by_pair"].values())
    rows = [_row(name, manifest) for name, manifest in read.items()]
    columns = [*COLUMNS, *TRUTH] if known else COLUMNS
    notes = [NOTE, TRUTH_NOTE] if known else [NOTE]
    rows = [row[: len(columns)] for row in rows]
    write_table(Table(columns, rows, notes=notes), out)


def _row(name: str, manifest: Json) -> list[Value]:
    of_pairs = list(manifest["by_pair"].values())
    pairs, distinct, equal = (sum(of[key] for of in of_pairs) for key in OF_PAIR["required"][:3])
    cosine = sum(of["cosine"] * of["pairs"] for of in of_pairs) / pairs if pairs else None
    shown = None if cosine is None else f"{cosine:.3f}"
    mined = [manifest["mining"]["sample"], manifest["rounds"], pairs, distinct, equal, shown]
    return [name, *mined, *_truth([of["known"] for of in of_pairs if "known" in of])]


def _truth(known: list[Json]) -> list[Value]:
    """Return how many pairs are known, and in percent those that are right and would be by chance:
    of each pair of languages as many as are known of it.
    """
    count = sum(of["known"] for of in known)
    if not count:
        return [0 if known else None, None, None]
    right = 100 * sum(of["right"] for of in known) / count
    return [count, f"{right:.2f}", f"{sum(of['known'] * of['chance'] for of in known) / count:.2f}"]
