"""EMS v2 Table III: what each model was trained on, and how large it is.

"#Param." is counted as the paper's 147M can be: all trained weights but the input embedding, of
which only the rows of a sentence's pieces are read; "to encode" is what is used after training, the
input embedding included (docs/fidelity.md). Sizes are read off the weights themselves.
"""

from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen
from safetensors import SafetensorError, safe_open

from ems.base.errors import Damaged
from ems.base.files import ENCODER, HEADS, read_json
from ems.base.schema import Expected, Record, Text, number
from ems.config.papers import of_ems
from ems.tables.corpora import TRAIN, Report, read_report
from ems.tables.printed import load_printed_models
from ems.tables.table import PRINTED, Table, Value, write_table

COLUMNS = ["Model", "Langs", "Paral.", "Mono", "Archit.", "#Param.", "to encode"]
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
    languages: Annotated[list[Text], MinLen(1)]
    training: _Training


def write_models_table(models: list[Path], report: Path, printed: list[str], out: Path) -> None:
    """Write Table III of some systems as .tex, .md and .csv beside `out`.

    `models` are the systems' model.json, `report` the decontamination report; `printed` names
    models of the paper, of which those of Table III are shown. Raises `EmsError` for a malformed
    or missing file.
    """
    counts = read_report(report)
    rows = [_row(path, counts) for path in models]
    beside = [_printed_row(model) for model in load_printed_models() if model["model"] in printed]
    notes = [
        "Paral.: sentence pairs left after cleaning and decontamination. #Param.: all trained "
        "weights without the input embedding, as the paper's 147M can be counted; to encode: the "
        "weights used after training, the input embedding included."
    ]
    notes += [f"Rows marked printed: {of_ems('III')}."] if beside else []
    text = {"Archit."}
    table = Table(COLUMNS, [*rows, *beside], rules={len(rows)}, text=text, notes=notes)
    write_table(table, out)


def _row(path: Path, report: Report) -> list[Value]:
    model = read_json(path, _Model, "model.json")
    languages, share = model.languages, model.training.system.train.corpus_share
    encoder, heads = weights_of(path)
    trained = sum(encoder.values()) + sum(heads.values()) - encoder.get(INPUT_EMBEDDING, 0)
    _, pairs = training_pairs(report, languages, share)
    return [model.name, len(languages), pairs, None, ARCHITECTURE, trained, sum(encoder.values())]


def weights_of(path: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Return tensor -> number of elements of the encoder and of the heads beside a model.json."""
    encoder, heads = (_weights(path.with_name(name)) for name in (ENCODER, HEADS))
    return encoder, heads


def training_pairs(report: Report, languages: Iterable[str], share: float) -> tuple[int, int]:
    """Return the pairs that corpora have of some languages: as read, and as trained on.

    Sentences of documents are no pairs.
    """
    pairs = [e for e in report.entries if e.role == TRAIN and e.documents is None]
    own = [entry for entry in pairs if set(entry.sides) <= set(languages)]
    return sum(entry.read for entry in own), sum(int(share * entry.kept) for entry in own)


def _weights(path: Path) -> dict[str, int]:
    """Return the number of elements of each tensor of a file; only its header is read."""
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: prod(file.get_slice(name).get_shape()) for name in list(file.keys())}
    except (OSError, SafetensorError) as error:
        raise Damaged(path, f"cannot be read ({error})") from None


def _printed_row(model: dict[str, str]) -> list[Value]:
    mono = "yes" if model["mono_v2"] or model["mono_v1"] else None
    values = (model["langs"], model["paral"], mono, model["archit"], model["param_v2"], None)
    return [model["model"] + PRINTED, *values]
