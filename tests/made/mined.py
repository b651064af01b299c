"""Documents of two languages, an encoder, and what is mined with it."""

from made.contexts import CONTEXT, OFF, add_documents
from made.experiments import changed
from made.train import LANGUAGES, Toy

from ems.shards.index import read_index
from ems.train.data import training_data
from ems.train.job import train
from ems.train.mine_documents import mine

STEPS = {"steps": 6, "validate_every": 3, "checkpoint_every": 2}
MINING = {"sample": 40, "keep": 30, "pairs": 100}
COHERENCE = {
    **CONTEXT,
    "systems": {
        "ems": {},
        "coherent": {
            "objectives": {
                "context": {"weight": 0},
                "coherence": {"weight": 1, "k": 2, "mining": MINING},
            },
            "train": {"start_from": "ems", **STEPS},
            "iterations": 2,
        },
    },
    "train": STEPS,
}
PAIRS_ALONE = {"objectives": {**OFF, "xtr": {"weight": 1}}}


def made_toy(folder):
    """Shards and documents, and the stage 1 system trained on them into `folder`/start."""
    toy = add_documents(Toy(folder))
    toy.train(folder / "start", **COHERENCE)
    return toy


def mined(toy, folder, name="coherent-1", model=None, state=None, **more):
    """Mine for a system into `folder`/mined; the folder and its manifest."""
    experiment = toy.experiment(**changed(COHERENCE, more)).of_system(name)
    model = model or toy.folder / "start" / "model"
    out, state = folder / "mined", state or folder / "mining"
    return out, mine(experiment, name, read_index(toy.index()), model, out, state)


def trained(toy, folder, pairs, name="coherent-1", start=None, **more):
    """Train a system on mined pairs into `folder`/model; the model folder."""
    experiment = toy.experiment(**changed(COHERENCE, more))
    settings = experiment.systems[name]
    data = training_data(settings, LANGUAGES, read_index(toy.index()), toy.vocabulary, pairs)
    start = start or toy.folder / "start" / "model"
    places = folder / "model", folder / "state", folder / "times.jsonl"
    train(experiment, name, data, *places, start=start)
    return folder / "model"
