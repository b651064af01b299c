"""The case study of EMS v2 section V-H: the cosine of two sentences with the same words in another
order. The paper prints it in the text, of four models.
"""

from pathlib import Path

from ems.files import read_json
from ems.shapes import TEXT, named, record
from ems.tables.papers import PRINTED_IN
from ems.tables.printed import load_similarities
from ems.tables.rows import absent_notes
from ems.tables.scores import Scores, in_order, read_scores
from ems.tables.table import Block, Table, Value, make_frame, upper_bounds
from ems.tables.write import write_table

BENCHMARK = "wordorder"
COLUMN = "Cosine"
NOTE = (
    "Cosine of the two sentences of EMS v2 section V-H, which differ in the order of their words "
    "and in what they mean: the lower the better."
)
PRINTED = f"Rows marked printed: {PRINTED_IN[BENCHMARK]}."
COSINE = {"type": "number", "minimum": -1.001, "maximum": 1.001, "description": "a cosine"}
_TEXTS = dict.fromkeys(("system", "version", "data_sha256"), TEXT)
CASE = named(
    f"{BENCHMARK}.json", record({"benchmark": {"enum": [BENCHMARK]}, **_TEXTS, "cosine": COSINE})
)


def _read_one(path: Path) -> Scores:
    data = read_json(path, CASE)
    return Scores(
        path=path,
        system=data["system"],
        version=data["version"],
        data_sha256=data["data_sha256"],
        values={COLUMN: float(data["cosine"])},
        languages={COLUMN: "en"},
        sentences={COLUMN: 2},
    )


def write_wordorder_table(
    scores: list[Path], out: Path, printed: list[str], order: list[str] | None = None
) -> None:
    """Write the cosines of some systems as .tex, .md and .csv beside `out`, two decimals.

    `scores` are the systems' wordorder.json; `printed` names models to show as printed, of which
    the paper has four; `order` names the systems that come first. Raises `EmsError` for malformed
    scores.
    """
    systems = in_order(read_scores(scores, BENCHMARK, read=_read_one), order or [])
    paper = {name: value for name, value in load_similarities().items() if name in printed}
    rows: list[list[Value]] = [
        *([system.system, _shown(system)] for system in systems),
        *([f"{name} (printed)", f"{value:.2f}"] for name, value in paper.items()),
    ]
    frame = make_frame(["Model", COLUMN], rows)
    table = Table(
        frame=frame,
        blocks=[Block([COLUMN])],
        rules={len(systems)},
        italic=upper_bounds(frame),
        notes=[NOTE, *absent_notes(systems), *([PRINTED] if paper else [])],
    )
    write_table(table, out)


def _shown(system: Scores) -> str | None:
    return f"{system.values[COLUMN]:.2f}" if system.values else None
