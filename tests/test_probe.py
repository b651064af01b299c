"""The batched classifiers equal networks that plain PyTorch trains one by one."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from ems.bench import probe as probes
from ems.bench.probe import Pool, Run, train
from ems.config.benchmarks import ProbeSettings as Probe

CPU = torch.device("cpu")
WIDTH, CLASSES = 6, 3
SMALL = Probe(hidden=[5, 4], dropout=0.2, learning_rate=0.01, batch=7, epochs=6)


def blobs(count, seed, spread=1.0, width=WIDTH):
    """Points around three corners: (float32[count, width], classes)."""
    random = np.random.default_rng(seed)
    labels = random.integers(CLASSES, size=count)
    points = 2 * np.eye(CLASSES, width)[labels] + spread * random.normal(size=(count, width))
    return points.astype(np.float32), labels


def pooled(*sets):
    """Concatenate sets of points: (pool, labels, the rows of each)."""
    points, labels = (np.concatenate(part) for part in zip(*sets, strict=True))
    ends = np.cumsum([0, *(len(one) for one, _ in sets)]).tolist()
    rows = [range(start, stop) for start, stop in pairwise(ends)]
    return Pool.from_vectors(torch.from_numpy(points)), torch.from_numpy(labels), rows


@pytest.fixture
def data():
    """Two sources with 30 training and 20 validation points, and three runs of each."""
    pool, labels, rows = pooled(*(blobs(n, s) for s, n in enumerate((30, 20, 30, 20))))
    parts = [rows[:2], rows[2:]]
    runs = [Run((9, seed), *parts[which]) for which in (0, 1) for seed in range(3)]
    return pool, labels, runs


def content(classifier):
    layers = [part.tolist() for layer in classifier.layers for part in layer]
    return classifier.epoch, classifier.correct, layers


def reference(points, labels, run, settings, epochs):
    """Train one run with nn.Linear and Adam; return (hits, parameters) after each epoch.

    Start values, order and dropout come from three streams of the seed, as in the module.
    """
    activation = getattr(torch, settings.activation)
    start, order, dropout = np.random.SeedSequence(run.seed).spawn(3)
    start, order = (np.random.Generator(np.random.PCG64(child)) for child in (start, order))
    dropout = np.random.SFC64(dropout)
    sizes = [points.shape[1], *settings.hidden, CLASSES]
    linear = []
    for first, second in pairwise(sizes):
        bound = 1 / np.sqrt(first)
        drawn = torch.tensor(start.uniform(-bound, bound, (second, first + 1)), dtype=torch.float32)
        linear.append(nn.Linear(first, second))
        linear[-1].weight.data, linear[-1].bias.data = drawn[:, :-1].contiguous(), drawn[:, -1]
    parameters = [each for layer in linear for each in layer.parameters()]
    adam = torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=run.weight_decay)
    trained = []
    for _ in range(epochs):
        shuffled = run.train.start + order.permutation(len(run.train))
        for at in range(0, len(shuffled), settings.batch):
            rows = shuffled[at : at + settings.batch]
            hidden = torch.tensor(points[rows])
            if settings.dropout:
                words = -(-len(rows) * sum(sizes[:-1]) // 4)
                bits = dropout.random_raw(words).view(np.uint16).tolist()
                limit = round((1 - settings.dropout) * 65536)
            for number, layer in enumerate(linear):
                hidden = activation(hidden) if number else hidden
                if settings.dropout:
                    drawn = [bits.pop(0) for _ in range(hidden.numel())]
                    kept = [65536 / limit if bit < limit else 0.0 for bit in drawn]
                    hidden = hidden * torch.tensor(kept).view(hidden.shape)
                hidden = layer(hidden)
            adam.zero_grad()
            nn.functional.cross_entropy(hidden, torch.tensor(labels[rows])).backward()
            adam.step()
        with torch.no_grad():
            hidden = torch.tensor(points[run.valid.start : run.valid.stop])
            for number, layer in enumerate(linear):
                hidden = layer(activation(hidden) if number else hidden)
        truth = torch.tensor(labels[run.valid.start : run.valid.stop])
        hits = int((hidden.argmax(1) == truth).sum())
        trained.append(
            (hits, [(p.weight.detach().clone(), p.bias.detach().clone()) for p in linear])
        )
    return trained


@pytest.mark.parametrize(
    ("hidden", "activation", "dropout"),
    [([5, 4], "tanh", 0), ([5, 4], "tanh", 0.2), ([5], "relu", 0), ([], "relu", 0.2)],
)
def test_batched_runs_end_where_plain_loops_end(data, hidden, activation, dropout):
    pool, labels, runs = data
    runs = [
        Run(run.seed, run.train, run.valid, decay)
        for run, decay in zip(runs, [0, 0.1] * 3, strict=True)
    ]
    settings = Probe(hidden=hidden, activation=activation, dropout=dropout, learning_rate=0.01)
    settings = settings.model_copy(update={"batch": 7, "epochs": 9})
    trained = train(pool, labels, CLASSES, runs, settings, "test")
    points, truth = pool.take(torch.arange(len(labels))).numpy(), labels.numpy()
    epochs = set()
    for run, classifier in zip(runs, trained, strict=True):
        every = reference(points, truth, run, settings, 9)
        hits = [count for count, _ in every]
        best = hits.index(max(hits))  # of equals the first
        assert (classifier.epoch, classifier.correct) == (best + 1, hits[best])
        epochs.add(classifier.epoch)
        for (weight, bias), (of_weight, of_bias) in zip(
            classifier.layers, every[best][1], strict=True
        ):
            assert torch.allclose(weight, of_weight, atol=1e-5)
            assert torch.allclose(bias, of_bias, atol=1e-5)
    assert len(epochs) > 1 or not hidden  # a guard: not all chose the last one


# --- a run does not depend on the others


def test_a_run_gives_the_same_bits_alone_in_company_in_another_order_and_in_parts(
    data, monkeypatch
):
    pool, labels, runs = data
    runs = [*runs, Run((9, 1), range(40), range(50, 60))]  # trained apart: other sizes
    together = train(pool, labels, CLASSES, runs, SMALL, "test")
    backwards = train(pool, labels, CLASSES, runs[::-1], SMALL, "test")[::-1]
    monkeypatch.setattr(probes, "MOST_PARAMETERS", 150)
    parts = train(pool, labels, CLASSES, runs, SMALL, "test")
    for number, run in enumerate(runs):
        (alone,) = train(pool, labels, CLASSES, [run], SMALL, "test")
        for others in (together, backwards, parts):
            assert content(others[number]) == content(alone)
    assert content(together[0]) != content(together[1])  # guards: seeds and sources matter
    assert content(together[0]) != content(together[3])


@pytest.mark.parametrize(
    ("width", "hidden", "batch"),
    [(1024, (10, 8), 12), (64, (128,), 100), (257, (13, 7), 5), (32, (), 30)],
)
def test_the_bits_do_not_depend_on_other_runs_at_the_sizes_of_benchmarks(width, hidden, batch):
    pool, labels, rows = pooled(*(blobs(n, s, 3.0, width) for s, n in enumerate((130, 90))))
    settings = Probe(hidden=list(hidden), learning_rate=0.001, batch=batch, epochs=4)
    runs = [Run((1, seed), *rows) for seed in range(7)]
    together = train(pool, labels, CLASSES, runs, settings, "test")
    for at in (0, 3, 6):
        (alone,) = train(pool, labels, CLASSES, [runs[at]], settings, "test")
        assert content(together[at]) == content(alone)


# --- choosing


def test_patience_stops_a_run_independently_of_the_others(data):
    pool, labels, runs = data
    points, truth = pool.take(torch.arange(len(labels))).numpy(), labels.numpy()
    patient = Probe(hidden=[5, 4], dropout=0.2, learning_rate=0.01, batch=7, epochs=12, patience=2)
    trained = train(pool, labels, CLASSES, runs, patient, "test")
    stopped = 0
    for run, classifier in zip(runs, trained, strict=True):
        hits = [count for count, _ in reference(points, truth, run, patient, 12)]
        best = 0
        for epoch, count in enumerate(hits):
            if epoch - best > 2:
                break
            best = epoch if count > hits[best] else best
        assert (classifier.epoch, classifier.correct) == (best + 1, hits[best])
        stopped += max(hits) > hits[best]
    assert stopped  # a guard: some would have become better


def test_training_ends_when_every_run_is_perfect_on_validation(monkeypatch):
    pool, labels, rows = pooled(blobs(60, 1, 0.05), blobs(30, 2, 0.05))
    epochs = []
    monkeypatch.setattr(probes.Progress, "add", lambda self, *a: epochs.append(1))
    settings = Probe(hidden=[8], dropout=0, learning_rate=0.05, batch=10, epochs=400)
    (trained,) = train(pool, labels, CLASSES, [Run((1,), *rows)], settings, "test")
    assert trained.correct == 30
    assert len(epochs) == trained.epoch < 400
