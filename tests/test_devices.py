"""Laws of a device: packing, losses, gradients, compiled layers, resumed runs, vectors.

They run on a CPU too, in float32 and bfloat16 against float64, so that a GPU meets no law that has
never run. perf/gpu.py runs the marked ones on a GPU and reports how much of each `allowed`
difference they use.
"""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from made.objectives import DEVICES, SIZES, STILL, SYSTEMS, noisy_system, weights_of
from made.references import dense_losses, encoder_states
from made.shards import contents
from made.train import LANGUAGES, json_rows, train_into, train_stopped, train_until
from sentencepiece import SentencePieceProcessor

from ems.bench.nearest import nearest
from ems.model import packing
from ems.model.encode import SentenceEncoder
from ems.model.encoder import Encoder
from ems.model.objectives.fused import Logits, Target, kl_loss
from ems.model.objectives.system import DeviceBatch, System
from ems.train import checkpoint
from ems.train.job import letters_of
from ems.train.journal import Journal

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("device", DEVICES)]


law = pytest.mark.law
PIECES = 300
TRAINED = {"layers": ({}, {}), "table": SYSTEMS["a table"], "both": SYSTEMS["a table and layers"]}
# largest differences of a loss and of a weight's gradient. In bfloat16 the ReLU of the MLP turns
# other units off: a tenth of the gradient on a CPU, and a GPU may differ three times as much.
NEAR = {"float32": (1e-5, 1e-4), "bfloat16": (0.01, 0.03)}
NEAR_MLP = NEAR | {"bfloat16": (0.01, 0.3)}
# of losses after 30 steps, by another arithmetic, and by other last bits. The latter change them by
# up to 1e-4; a resumed run that lost its moments would change them by 0.014.
NEAR_TRAINED, NEAR_AGAIN = {"float32": 1e-3, "bfloat16": 0.03}, 0.003
both_precisions = pytest.mark.parametrize("precision", NEAR)
each_encoder = pytest.mark.parametrize("encoder", TRAINED)


def trained(encoder, device, precision, **dropout):
    model, objectives = TRAINED[encoder]
    train = {"device": device, "precision": precision}
    return {"model": {**model, **dropout}, "objectives": objectives, "train": train}


@pytest.fixture
def allowed(record_property):
    """Fails if a difference is larger than allowed; keeps the share used for the report."""
    shares = []

    def check(difference, most):
        shares.append(difference / most)
        record_property("share", max(shares))
        assert difference <= most

    return check


def relative(found, expected):
    found, expected = (value.detach().double().cpu() for value in (found, expected))
    return ((found - expected).norm() / expected.norm()).item()


NEAR_VALUES = {"float32": 1e-5, "bfloat16": 0.02}  # of states, and of a divergence


@law("packed = padded")
@both_precisions
def test_packed_states_equal_padded_and_single_ones(toy, monkeypatch, allowed, device, precision):
    """Padded: all in one group, the longest one's length; alone: by the equations, in float64."""
    settings = toy.experiment(model=SIZES).systems["ems"]
    true = noisy_system(settings, len(LANGUAGES), PIECES, noise=0.05)
    system = System(settings, len(LANGUAGES), PIECES, precision)
    system.load_state_dict(true.state_dict())
    batch = toy.store("training").draw(3, 0, 40, 0.5)
    on_device = DeviceBatch.copy(batch, torch.device(device))
    system.to(device)
    packed, _ = system.encode(on_device.tokens, on_device.lengths, on_device.packing)
    monkeypatch.setattr(packing, "LEAST", len(batch.lengths))
    (one,) = packing.pack(on_device.sizes).groups
    assert not one.real.all()
    padded, _ = system.encode(on_device.tokens, on_device.lengths)
    allowed(relative(packed, padded), NEAR_VALUES[precision])
    sentences = np.split(batch.tokens, np.cumsum(batch.lengths)[:-1])
    alone = [s for tokens in sentences for s in encoder_states(weights_of(true), tokens, 4)]
    allowed(relative(packed, torch.stack(alone)), NEAR_VALUES[precision])


@law("fused XTR = dense")
@both_precisions
def test_the_fused_divergence_and_its_gradients_equal_dense_rows(allowed, device, precision):
    rows, width = 24, 32
    draw = torch.Generator().manual_seed(7)
    states, output = (
        torch.randn(count, width, generator=draw, dtype=torch.float64) / 4
        for count in (rows, PIECES)
    )
    lengths = torch.randint(1, 9, (rows,), generator=draw)
    row = torch.repeat_interleave(lengths)
    token = torch.randint(PIECES, (len(row),), generator=draw)
    weight = 1 / lengths[row].double()
    leaves = [value.clone().requires_grad_() for value in (states, output)]
    _, expected = dense_losses(leaves[0] @ leaves[1].T, Target(row, token, weight))
    expected.backward()

    half = torch.bfloat16 if precision == "bfloat16" else None
    own = [value.float().to(device).requires_grad_() for value in (states, output)]
    target = Target(row.to(device), token.to(device), weight.float().to(device))
    loss = kl_loss(Logits(*own, dtype=half), target)
    loss.backward()
    allowed(relative(loss, expected), NEAR_VALUES[precision])
    for value, true in zip(own, leaves, strict=True):
        allowed(relative(value.grad, true.grad), NEAR_VALUES[precision])


def read_letters(system, vocabulary):
    letters = letters_of(SentencePieceProcessor(model_file=str(vocabulary)))
    assert letters.any()
    system.encoder.table.ngrams.letters.copy_(letters)


def losses_and_gradients(system, batch, device):
    """The loss parts of a batch as numbers, and the gradient of each weight in float64."""
    torch.manual_seed(5)  # of the pieces that `sampled` draws
    parts = system.train()(DeviceBatch.copy(batch, torch.device(device)))
    parts["total"].backward()
    gradients = {
        name: (torch.zeros_like(value) if value.grad is None else value.grad).double().cpu()
        for name, value in system.named_parameters()
    }
    return {name: part.item() for name, part in parts.items()}, gradients


def distances(ones, others):
    """The largest relative difference of a loss, and of a weight's gradient by its norm.

    The norm counts at least a hundredth of the norm of all gradients.
    """
    (losses, gradients), (true_losses, true_gradients) = ones, others
    assert losses.keys() == true_losses.keys()
    assert gradients.keys() == true_gradients.keys()
    least = sum(value.norm() ** 2 for value in true_gradients.values()) ** 0.5 / 100
    of_losses = [abs(losses[name] - true) / abs(true) for name, true in true_losses.items() if true]
    of_gradients = [
        ((gradients[name] - true).norm() / max(true.norm(), least)).item()
        for name, true in true_gradients.items()
    ]
    return max(of_losses), max(of_gradients)


@law("losses and gradients = a CPU in float64")
@pytest.mark.parametrize("name", SYSTEMS)
@both_precisions
def test_losses_and_gradients_equal_a_cpu_in_float64(toy, allowed, device, name, precision):
    model, objectives = SYSTEMS[name]
    settings = toy.experiment(model=SIZES | model, objectives=objectives).systems["ems"]
    true = noisy_system(settings, len(LANGUAGES), PIECES, noise=0.05)
    if "ngrams" in model:
        read_letters(true, toy.vocabulary)
    system = System(settings, len(LANGUAGES), PIECES, precision)
    system.load_state_dict(true.state_dict())
    batch = true.prepared(toy.store("training").draw(3, 0, 40, 0.5), 3, 0)
    expected = losses_and_gradients(true, batch, "cpu")
    found = losses_and_gradients(system.to(device), batch, device)
    of_losses, of_gradients = (NEAR_MLP if name == "EMS" else NEAR)[precision]
    for difference, most in zip(distances(found, expected), (of_losses, of_gradients), strict=True):
        allowed(difference, most)


@law("dropout = a function of the seed")
@both_precisions
def test_dropout_is_a_function_of_the_seed(toy, device, precision):
    """Whatever was drawn before, since a resumed run depends on it."""
    settings = toy.experiment().systems["ems"]
    system = System(settings, len(LANGUAGES), PIECES, precision).to(device).train()
    batch = DeviceBatch.copy(toy.store("training").draw(3, 0, 40, 0.5), torch.device(device))
    totals = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        totals.append(system(batch)["total"].item())
    assert totals[0] == pytest.approx(totals[1], rel=1e-6)
    assert totals[0] != pytest.approx(totals[2], rel=1e-4)


def apart(model, other):
    """The largest relative difference of the totals that two trainings logged."""
    ones, others = (
        {(row["part"], row["step"]): row["total"] for row in json_rows(folder / "losses.jsonl")}
        for folder in (model, other)
    )
    assert len(ones) == 5  # four validations
    assert ones.keys() == others.keys()
    return max(abs(ones[at] - others[at]) / abs(others[at]) for at in ones)


@law("a training = one on a CPU in float32")
@both_precisions
@each_encoder
def test_a_training_is_near_a_cpu_in_float32(toy, tmp_path, allowed, device, precision, encoder):
    model = toy.train(tmp_path / "device", **trained(encoder, device, precision, **STILL))
    expected = toy.train(tmp_path / "cpu", **trained(encoder, "cpu", "float32", **STILL))
    allowed(apart(model, expected), NEAR_TRAINED[precision])


@law("compiled = eager")
@both_precisions
@pytest.mark.parametrize("encoder", ["layers", "both"])  # a table alone has nothing to compile
def test_compiled_equals_eager(toy, tmp_path, monkeypatch, allowed, device, precision, encoder):
    """With the compiler's kernels on a GPU only: a CPU may lack the C++ compiler for them."""
    compile_layers, compiled = Encoder.compile_layers, []

    def compile_for(encoder):
        compiled.append(encoder)
        compile_layers(encoder, "inductor" if device == "cuda" else "aot_eager")

    monkeypatch.setattr(Encoder, "compile_layers", compile_for)
    torch._dynamo.reset()
    settings = trained(encoder, device, precision, **STILL)
    eager = toy.train(tmp_path / "eager", **settings)
    settings["train"]["compile"] = True
    model = toy.train(tmp_path / "compiled", **settings)
    assert len(compiled) == 1
    allowed(apart(model, eager), NEAR_TRAINED[precision])


KILLS = {"at a checkpoint": train_until, "within a step": train_into, "by SIGTERM": train_stopped}


def tensors(trainer):
    """Every number that the next step depends on."""
    moments = checkpoint._optimizer_tensors(trainer.optimizer)
    return {
        name: value.detach().cpu().clone()
        for name, value in [*trainer.system.state_dict().items(), *moments.items()]
    }


@contextmanager
def spied(method):
    """The state of the trainer after each call of a method of its journal."""
    states, original = [], getattr(Journal, method)

    def call(journal):
        try:
            return original(journal)
        finally:
            states.append(tensors(journal.trainer))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, method, call)
        yield states


@law("resumed = never killed")
@both_precisions
@each_encoder
@pytest.mark.parametrize("kill", KILLS)
def test_a_resumed_run_loads_the_same_bits_and_ends_like_an_uninterrupted_one(
    toy, tmp_path, allowed, record_property, device, precision, encoder, kill
):
    """On a GPU the end may differ in the last bits, as sums of its kernels do; it is reported."""
    settings = trained(encoder, device, precision)
    whole = toy.train(tmp_path / "whole", **settings)
    with spied("_save") as saved:
        KILLS[kill](toy, tmp_path / "killed", 15, **settings)
    with spied("resume") as loaded:
        resumed = toy.train(tmp_path / "killed", **settings)
    assert saved[-1].keys() == loaded[0].keys()
    for name, value in saved[-1].items():
        assert torch.equal(value, loaded[0][name]), name
    same = contents(resumed) == contents(whole)
    record_property("same_bits", same)
    assert same or device == "cuda"
    allowed(apart(resumed, whole), NEAR_AGAIN)


@law("vectors = a CPU's")
@each_encoder
def test_vectors_equal_those_from_a_cpu(toy, tmp_path, device, encoder):
    model = toy.train(tmp_path, **trained(encoder, "cpu", "float32"))
    lines = toy.sample.read_text(encoding="utf-8").splitlines()
    vectors = [SentenceEncoder(model, on).encode(lines, "de") for on in (device, "cpu")]
    np.testing.assert_allclose(*vectors, rtol=1e-3, atol=1e-4 * np.abs(vectors[1]).max())


@law("neighbours = a CPU's")
def test_neighbours_equal_those_from_a_cpu(device):
    draw = np.random.default_rng(1)
    sides = [draw.standard_normal((count, 64), np.float32) for count in (700, 500)]
    sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    found, expected = (nearest(*sides, 4, on, "") for on in (device, "cpu"))
    for ones, others in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ones.index, others.index)
        np.testing.assert_allclose(ones.similarity, others.similarity, atol=1e-6)
