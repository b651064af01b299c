"""Print the validation losses and P@1 of a finished model, ours or the authors' checkpoint.

    python perf/validate.py --model MODEL --shards FOLDER ... [--mined FOLDER]

Shards are made with the model's vocabulary (`ems shards --vocabulary`).
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Annotated

from ems.base.errors import EmsError
from ems.base.files import HEADS, VOCABULARY, read_json
from ems.base.records import Json, NonBlank, Record
from ems.base.schema import checked
from ems.config.systems import trained_model
from ems.model.devices import choose_device, read_tensors
from ems.model.encode import SentenceEncoder
from ems.model.folder import DESCRIPTION
from ems.model.objectives.masking import Pieces
from ems.model.objectives.system import System
from ems.shards.documents import DocumentStore, MinedStore
from ems.shards.index import MANIFEST, LanguageList, shards_in
from ems.shards.reader import PairStore
from ems.train.measures import LogRow, rounded
from ems.train.memory import without_memory
from ems.train.validate import validate


class _Training(Record):
    system: Annotated[Json, "settings"]


class _Trained(Record):
    languages: list[NonBlank]
    training: _Training


def validate_model(folder: Path, shards: list[Path], mined: Path | None = None) -> LogRow:
    """Validate a model folder on `shards` in float32; return the row of the log.

    Shards hold pairs, or documents for a model trained on them; `mined`: a folder of pairs mined in
    these documents. Raises `EmsError` for the wrong kind of shards, and `Damaged` if heads do not
    fit their settings.
    """
    encoder = SentenceEncoder(folder)
    path = folder / DESCRIPTION
    description = read_json(path, _Trained)
    languages, vocabulary = description.languages, encoder.vocabulary
    settings = checked(trained_model(), description.training.system, f"{path}: training")
    limit, own = settings.model.max_tokens, settings.objectives
    folders = [shard for parent in shards for shard in shards_in(parent)]
    sides = {len(read_json(shard / MANIFEST, LanguageList).languages) for shard in folders}
    if sides == {2} and not mined:
        store = PairStore(folders, languages, limit)
    elif sides == {1} and mined and own.coherence.weight:
        folders = sorted(folders, key=str)  # as an index lists them
        k, target = own.coherence.k, own.coherence.target
        store = MinedStore(mined, folders, languages, limit, k, target)
    elif sides == {1} and not mined and own.context.weight:
        store = DocumentStore(folders, languages, limit, own.context.k)
    else:
        raise EmsError(
            "--shards: expected pairs; or documents, for a model trained with `context`; or with "
            "--mined, for a model trained with `coherence`. Name other shards or another model"
        )
    path = folder / VOCABULARY
    store.check_vocabulary(path, f"make shards with `ems shards --vocabulary {path}`")
    pieces = vocabulary.get_piece_size()
    store.check(pieces)
    empty = without_memory(settings, len(languages), pieces).heads.state_dict()
    shapes = {name: tuple(value.shape) for name, value in empty.items()}
    heads = read_tensors(folder / HEADS, shapes)  # before memory is used for its settings
    system = System(settings, len(languages), pieces, classes=Pieces.classify(vocabulary))
    system.encoder = encoder.encoder
    system.heads.load_state_dict(heads)
    system.to(choose_device("auto"))
    return rounded(validate(system, store, settings.train.batch_pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="model folder")
    parser.add_argument("--shards", type=Path, nargs="+", required=True, help="folders of shards")
    parser.add_argument("--mined", type=Path, help="folder of pairs mined in the shards")
    given = parser.parse_args()
    try:
        print(json.dumps(validate_model(given.model, given.shards, given.mined)))
    except EmsError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
