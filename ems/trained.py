"""The losses of a finished model on pairs: of one trained here, or of the authors' checkpoint."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file

from ems.config.systems import trained_model
from ems.damaged import Damaged
from ems.encode import SentenceEncoder
from ems.files import HEADS, VOCABULARY, read_json
from ems.model.device import choose_device
from ems.objectives.masking import Pieces
from ems.objectives.system import System
from ems.settings import checked
from ems.shapes import TEXT, listing, record
from ems.shards.index import shards_in
from ems.shards.reader import PairStore
from ems.train.scalars import LogRow, rounded
from ems.train.validate import validate

PART = {"type": "object", "description": "settings"}
MODEL = record(  # of a model.json, what a system is made of
    {"languages": listing(TEXT, least=1), "training": record({"system": PART})}
)


def validated(folder: Path, shards: list[Path]) -> LogRow:
    """Return the row of validation of a model folder on the pairs of `shards`, in float32.

    Losses, masks and negatives are those that its settings name. Raises `EmsError` for shards of
    another vocabulary, and `Damaged` for heads that do not fit.
    """
    description = read_json(folder / "model.json", MODEL)
    settings = checked(
        trained_model(), description["training"]["system"], f"{folder / 'model.json'}: training"
    )
    encoder = SentenceEncoder(folder)
    languages, vocabulary = description["languages"], encoder.vocabulary
    store = PairStore(
        [shard for each in shards for shard in shards_in(each)],
        languages,
        settings.model.max_tokens,
    )
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
