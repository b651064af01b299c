"""The losses of a finished model on shards: of one trained here, or of the authors' checkpoint."""

from pathlib import Path
from typing import Annotated

from safetensors import SafetensorError
from safetensors.torch import load_file

from ems.base.errors import Damaged, EmsError
from ems.base.files import HEADS, VOCABULARY, read_json
from ems.base.schema import Json, Record, checked
from ems.config.systems import trained_model
from ems.model.devices import choose_device
from ems.model.encode import SentenceEncoder
from ems.model.objectives.masking import Pieces
from ems.model.objectives.system import Parts, System
from ems.shards.documents import DocumentStore, MinedStore
from ems.shards.index import MANIFEST, Spoken, shards_in
from ems.shards.reader import PairStore
from ems.train.measures import LogRow, rounded
from ems.train.validate import validate


class _Training(Record):
    system: Annotated[Json, "settings"]


class _Trained(Spoken):
    training: _Training


def validated(folder: Path, shards: list[Path], mined: Path | None = None) -> LogRow:
    """Return the row of validation of a model folder on `shards`, in float32.

    They hold pairs, or documents if the model learnt from them; `mined` is a folder of pairs mined
    in these documents. Raises `EmsError` for shards of another vocabulary or kind, and `Damaged`
    for heads that do not fit.
    """
    encoder = SentenceEncoder(folder)
    path = folder / "model.json"
    description = read_json(path, _Trained)
    settings = checked(trained_model(), description.training.system, f"{path}: training")
    languages, vocabulary = description.languages, encoder.vocabulary
    folders = [shard for each in shards for shard in shards_in(each)]
    store = _store(settings, languages, folders, mined)
    path = folder / VOCABULARY
    store.check_vocabulary(path, f"make shards with `ems shards --vocabulary {path}`")
    pieces = vocabulary.get_piece_size()
    store.check(pieces)
    system = System(settings, len(languages), pieces, known=Pieces.of(vocabulary))
    system.encoder = encoder.encoder
    try:
        system.heads.load_state_dict(load_file(folder / HEADS))
    except (OSError, RuntimeError, SafetensorError) as error:
        problem = f"does not fit its settings ({' '.join(str(error).split())[:200]})"
        raise Damaged(folder / HEADS, problem) from None
    system.to(choose_device("auto"))
    return rounded(validate(system, store, settings.train.batch_pairs))


def _store(
    settings: Parts, languages: list[str], folders: list[Path], mined: Path | None
) -> PairStore:
    """Open the shards as what the model learnt from. Raises `EmsError` if they are not."""
    limit, own = settings.model.max_tokens, settings.objectives
    held = {len(read_json(folder / MANIFEST, Spoken).languages) for folder in folders}
    if held == {2} and not mined:
        return PairStore(folders, languages, limit)
    if held == {1} and mined and own.coherence.weight:
        folders = sorted(folders, key=str)  # as an index lists them
        target = own.coherence.target
        return MinedStore(mined, folders, languages, limit, own.coherence.k, target)
    if held == {1} and not mined and own.context.weight:
        return DocumentStore(folders, languages, limit, own.context.k)
    raise EmsError(
        "--shards: expected pairs; or documents, for a model that learnt `context`, or with "
        "--mined, for one that learnt `coherence`; name other shards or another model"
    )
