"""Laws that objectives share: their files, weights, margins, duplicates and masks."""

import ast
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import ROOT
from made.cli import files
from made.objectives import batch_of, system_settings
from made.train import rows

from ems.base.errors import EmsError
from ems.base.provenance import source_files
from ems.base.schema import with_fields
from ems.config.file import experiment_model, overrides_model
from ems.config.objectives import Objectives, Weighted, objectives_model
from ems.config.systems import trained_model
from ems.model import objectives
from ems.model.objectives import similarity
from ems.model.objectives.contrastive import duplicates
from ems.model.objectives.masking import Masker, Pieces, sentence_keys
from ems.model.objectives.system import DeviceBatch, Encoded, System, load_objectives
from ems.shards.reader import Batch
from ems.text.subwords import MASK

SMALL = {"layers": 0, "width": 8, "heads": 1, "dropout": 0, "max_tokens": 9}
OFF = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}}


def made(**objectives):
    torch.manual_seed(0)
    return System(system_settings(SMALL, {**OFF, **objectives}), 2, 30)


def losses(system, seed=1, step=0):
    random, pairs = np.random.default_rng(0), 6
    lengths = np.sort(random.integers(1, 9, 2 * pairs))
    tokens = random.integers(5, 30, lengths.sum())
    rows, languages = random.permutation(2 * pairs), random.integers(0, 2, 2 * pairs)
    batch = system.prepared(Batch(tokens, lengths, rows, languages), seed, step)
    return system(DeviceBatch.copy(batch, torch.device("cpu")))


def total(system, seed=1, step=0):
    return losses(system, seed, step)["total"].item()


BOTH = {"xtr": {"weight": 0.25}, "contrastive": {"weight": 3, "width": 5}}
HEADS = {"xtr": "generative", "contrastive": "contrastive"}


def test_the_total_is_the_weighted_sum_of_the_parts():
    parts = losses(made(**BOTH))
    expected = 0.25 * parts["xtr"] + 3.0 * parts["contrastive"]
    assert parts["total"].item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("off", list(HEADS))
def test_an_objective_of_weight_zero_has_no_head_and_no_part(off):
    (kept,) = set(HEADS) - {off}
    system, whole = made(**{kept: BOTH[kept] | {"weight": 1}}), made(**BOTH)
    assert set(system.heads) == {HEADS[kept]}
    assert not [key for key in system.state_dict() if HEADS[off] in key]
    for key, value in whole.encoder.state_dict().items():  # whatever the objectives are
        assert torch.equal(value, system.encoder.state_dict()[key]), key
    parts = losses(system)
    assert set(parts) == {kept, "total"}
    assert torch.equal(parts["total"], parts[kept])


def test_the_margin_rises_from_zero_and_then_stays_and_validation_has_the_full_one():
    own = {"weight": 1, "width": 0}
    rising = made(contrastive={**own, "margin": 0.3, "margin_warmup_steps": 10})
    none, half, whole = (made(contrastive={**own, "margin": m}) for m in (0, 0.15, 0.3))
    expected = [total(system) for system in (none, half, whole)]
    totals = [total(rising, step=step) for step in (0, 5, 10, 999)]
    assert totals == pytest.approx([*expected, expected[2]])
    assert expected[0] < expected[1] < expected[2]
    assert total(rising.eval()) == pytest.approx(expected[2])


def test_pairs_that_share_a_sentence_on_any_side_are_duplicates():
    keys = torch.tensor([[1, 2], [1, 3], [4, 2], [2, 5], [6, 7]])
    shared = {(0, 1), (0, 2), (0, 3), (2, 3)}  # 1 on the left; 2 on the right; 2 across
    expected = [[i == j or (min(i, j), max(i, j)) in shared for j in range(5)] for i in range(5)]
    assert duplicates(keys, keys).tolist() == expected


@pytest.mark.parametrize("objective", ["ugt", "smlm", "mlm"])
def test_masks_are_a_function_of_seed_and_step(objective):
    system = made(**{objective: {"weight": 1}}).eval()
    assert total(system, 0, 3) == total(system, 0, 3)
    assert len({total(system, *at) for at in ((0, 3), (0, 4), (1, 3))}) == 3


def test_xtr_samples_by_the_seed_and_never_in_validation():
    full, every, few = (made(xtr={"weight": 1, "sampled": n}) for n in (0, 30, 2))
    expected, values = total(full), []
    assert total(every) == pytest.approx(expected, rel=1e-5)
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        values.append(total(few))
    assert values[0] == values[2] != values[1]
    assert values[0] != pytest.approx(expected, rel=1e-3)
    assert total(few.eval()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("every", [2, 3, 4])
def test_the_shares_of_xtr_in_consecutive_steps_add_up(every):
    full, part = (made(xtr={"weight": 1, "share": share}) for share in (1, 1 / every))
    values = [total(part, step=step) for step in range(5, 5 + every)]
    assert len(set(values)) > 1
    assert sum(values) / every == pytest.approx(total(full), rel=1e-5)
    assert total(part.eval(), step=5) == pytest.approx(total(full), rel=1e-5)


def test_the_similarity_loss_is_finite_if_a_cosine_is_zero():
    """softmax is 1 in one language and 0 in the other: cos(pi/2) in float32 is below zero."""
    first = torch.tensor([[30.0, 0.0], [0.0, 30.0]], requires_grad=True)
    second = torch.tensor([[1.0, 0.0], [40.0, 0.0]], requires_grad=True)
    batch = SimpleNamespace(pairs=2, first=0, total=2)
    encoded = Encoded(batch, None, torch.cat([first, second]))
    loss = similarity.loss(made(similarity={"weight": 1}), encoded)
    loss.backward()
    assert 20 < loss.item() < math.inf
    assert all(side.grad.isfinite().all() for side in (first, second))


TOY = files("An objective")["extensions/objectives/toy.py"]
NAMES = list(Objectives.model_fields.keys() - {"head"})
WITH_TOY = {"toy": {"weight": 1, "power": 2}}


@pytest.fixture
def _toy_file(tmp_path, monkeypatch):
    """The toy objective in a folder of the package `ems.model.objectives`."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(objectives, "__path__", [objectives.__path__[0], str(tmp_path)])
    models = (objectives_model, overrides_model, experiment_model, trained_model)
    for model in models:
        model.cache_clear()
    yield
    for model in models:
        model.cache_clear()
    sys.modules.pop("ems.model.objectives.toy", None)


@pytest.mark.usefixtures("_toy_file")
def test_an_objective_that_is_one_file_is_trained(toy, tmp_path):
    """Its parameters come last and change no other one."""
    states = []
    for experiment in (toy.experiment(), toy.experiment(objectives=WITH_TOY)):
        torch.manual_seed(3)
        states.append(System(experiment.systems["ems"], 3, 300).state_dict())
    old, new = states
    assert list(new) == [*old, "heads.toy.weight", "heads.toy.bias"]
    assert all(torch.equal(new[name], value) for name, value in old.items())
    toy.train(tmp_path, objectives=WITH_TOY)
    losses = [row["toy"] for row in rows(tmp_path / "model", "validation")]
    assert losses[-1] < losses[0]
    row = rows(tmp_path / "model", "train")[-1]
    parts = ["xtr", "contrastive", "toy"]
    assert list(row)[3:] == [*parts, "total", "lr"]
    assert row["total"] == pytest.approx(sum(row[name] for name in parts), rel=1e-5)


def test_an_objective_without_a_file_is_an_error(toy):
    with_toy = with_fields(Objectives, "Objectives", toy=Weighted)(toy={"weight": 1})
    with pytest.raises(EmsError, match=r"objectives\.toy: expected a file toy\.py in .*objectives"):
        System(replace(toy.experiment().systems["ems"], objectives=with_toy), 3, 300)


@pytest.mark.parametrize("backwards", [False, True])
def test_objectives_are_summed_in_their_own_order(backwards):
    names = sorted(NAMES, reverse=backwards)
    loaded = load_objectives(Objectives(**{name: {"weight": 1} for name in names}))
    order = "xtr ugt smlm mlm contrastive align similarity matryoshka context coherence"
    assert list(loaded) == order.split()
    assert len({objective.order for objective in loaded.values()}) == len(NAMES)


def test_the_trainer_names_no_objective_and_hashes_the_files_of_all():
    sources = source_files("ems.train.job")
    assert {ROOT / "ems/model/objectives" / f"{name}.py" for name in NAMES} <= set(sources)
    own = [path for path in sources if path.parent == ROOT / "ems/train"]
    assert len(own) > 5
    for path in own:
        tree = ast.parse(path.read_text())
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not words & set(NAMES), path
        assert not imported & {f"ems.model.objectives.{name}" for name in NAMES}, path


SIZE, LANGUAGES, LONGEST = 60, 4, 30
FIRST = 3 + LANGUAGES  # the first piece of text
WORDS = np.arange(SIZE) >= FIRST + 10  # ten pieces are punctuation
PIECES = Pieces(np.arange(SIZE) >= FIRST, WORDS)
MODEL = {"layers": 1, "width": 8, "heads": 2, "feed_forward": 8, "max_tokens": LONGEST}


def batch(pairs=40, seed=0, least=1, pieces=(FIRST, SIZE)):
    """Random sentences, shortest first, as a store gives them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(least, LONGEST + 1, 2 * pairs)
    rows = np.lexsort((np.arange(2 * pairs), lengths))
    tokens = random.integers(*pieces, lengths.sum())
    return Batch(tokens, lengths[rows], rows, random.integers(0, LANGUAGES, 2 * pairs))


def row_of(made):
    return np.repeat(made.rows, made.lengths)


def taken(made, pairs):
    """The part of a batch with these neighbouring pairs, renumbered."""
    keep = np.isin(made.rows % made.pairs, pairs)
    side, pair = divmod(made.rows[keep], made.pairs)
    tokens = made.tokens[np.isin(row_of(made) % made.pairs, pairs)]
    rows = pair - pairs[0] + len(pairs) * side
    return Batch(tokens, made.lengths[keep], rows, np.zeros(2 * len(pairs), np.int64))


@pytest.mark.parametrize("hide", ["one", "word"])
def test_one_token_on_one_side_of_each_pair_becomes_the_mask(hide):
    made = batch()
    masked = Masker(hide, PIECES, LONGEST)(made, 1, 2)
    assert np.flatnonzero(masked.inputs != made.tokens).tolist() == sorted(masked.places)
    assert (masked.inputs[masked.places] == MASK).all()
    assert (row_of(made)[masked.places] % made.pairs).tolist() == list(range(made.pairs))
    assert np.array_equal(masked.tokens, made.tokens)  # the labels are kept


def test_sides_and_positions_are_uniform():
    made, sides, counts = batch(pairs=20, least=LONGEST), [], np.zeros(LONGEST)
    starts = np.cumsum(made.lengths) - made.lengths
    for step in range(400):
        places = Masker("one", PIECES, LONGEST)(made, 1, step).places
        sides.append((row_of(made)[places] >= made.pairs).mean())
        np.add.at(counts, places - np.repeat(starts, made.lengths)[places], 1)
    assert np.mean(sides) == pytest.approx(0.5, abs=0.02)
    assert counts / counts.sum() == pytest.approx(np.full(LONGEST, 1 / LONGEST), abs=0.01)


def test_punctuation_is_masked_only_in_sentences_without_words():
    made = batch(pairs=300, least=1)
    places = Masker("word", PIECES, LONGEST)(made, 1, 2).places
    words_of = np.bincount(row_of(made), WORDS[made.tokens], 2 * made.pairs)
    chosen = words_of[row_of(made)[places]]
    assert (WORDS[made.tokens[places]] == (chosen > 0)).all()
    assert {True, False} == set((chosen > 0).tolist())
    anything = Masker("one", PIECES, LONGEST)(made, 1, 2).places
    assert not WORDS[made.tokens[anything]].all()  # the authors' code of EMS masks it as well


def test_every_word_of_a_sentence_is_masked_equally_often():
    tokens = np.array([FIRST, SIZE - 1, FIRST + 1, SIZE - 2, SIZE - 3] * 2)
    made = Batch(tokens, np.array([5, 5]), np.array([0, 1]), np.array([0, 1]))
    masker = Masker("word", PIECES, LONGEST)
    places = [int(masker(made, 1, step).places[0]) for step in range(1200)]
    counts = np.bincount(places, minlength=10)
    assert set(np.flatnonzero(counts)) == {1, 3, 4, 6, 8, 9}
    assert counts[counts > 0] == pytest.approx(np.full(6, 200), abs=60)


def test_mlm_hides_15_percent_of_each_sentence_like_bert():
    """At least one token: 80 % become the mask, 10 % a random piece of text, and 10 % stay."""
    made = batch(pairs=4000, pieces=(FIRST, FIRST + 1))  # one piece, so that random ones show
    masked = Masker("mlm", PIECES, LONGEST)(made, 1, 2)
    assert (np.diff(masked.places) > 0).all()
    counts = np.bincount(row_of(made)[masked.places], minlength=2 * made.pairs)
    lengths = np.zeros(2 * made.pairs, int)
    lengths[made.rows] = made.lengths
    assert counts.tolist() == [max(1, round(0.15 * length)) for length in lengths]
    seen = masked.inputs[masked.places]
    others = seen[(seen != MASK) & (seen != FIRST)]
    assert (seen == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert len(others) / len(seen) == pytest.approx(0.1, abs=0.01)
    assert set(others) == set(range(FIRST + 1, SIZE))
    untouched = np.ones(len(made.tokens), bool)
    untouched[masked.places] = False
    assert np.array_equal(masked.inputs[untouched], made.tokens[untouched])


def test_masks_do_not_use_the_random_numbers_of_the_draw():
    """A draw takes the first ones of its seed and step."""
    made = batch()
    places = Masker("one", PIECES, LONGEST)(made, 1, 2).places
    first_side = row_of(made)[places] < made.pairs
    numbers = np.random.Generator(np.random.Philox(key=[1, 2])).random(made.pairs)
    assert len({*(first_side == (numbers < 0.5)).tolist()}) == 2


@pytest.mark.parametrize("hide", ["one", "word", "mlm"])
def test_processes_mask_the_same_tokens_as_one(hide):
    masker, made = Masker(hide, PIECES, LONGEST), batch(pairs=12)
    whole = masker(made, 1, 2)
    for first in (0, 4, 8):
        pairs = list(range(first, first + 4))
        part = masker(taken(made, pairs), 1, 2, first, 12)
        assert np.array_equal(part.inputs, whole.inputs[np.isin(row_of(made) % 12, pairs)])


ON = {"weight": 1}
NEEDS = [
    ({"xtr": ON}, {}, None),
    ({"xtr": ON, "contrastive": ON, "align": ON, "similarity": ON}, {}, None),
    ({"ugt": ON}, {}, "word"),
    ({"smlm": ON, "xtr": ON}, {}, "word"),
    ({"mlm": ON, "xtr": ON}, {}, "mlm"),
    ({"xtr": ON}, {"input_mask": "one"}, "one"),
    ({"ugt": ON}, {"input_mask": "one"}, "word"),
]


@pytest.mark.parametrize(("objectives", "train", "hide"), NEEDS)
def test_tokens_are_masked_only_if_an_objective_needs_it(objectives, train, hide):
    settings = system_settings(MODEL, {**OFF, **objectives}, train)
    masker = System(settings, LANGUAGES, SIZE, classes=PIECES).masker
    assert (masker and masker.hide) == hide


def test_sentences_have_the_same_key_if_and_only_if_their_tokens_are_equal():
    texts = [[5, 6], [6, 5], [5], [5, 6, 6], [6, 5], [5, 6], [5, 5], [0], [0, 0], [11]]
    keys = sentence_keys(batch_of([{"language": 0, "tokens": t, "input": t} for t in texts]))
    same = np.array([[one == other for other in texts] for one in texts])
    assert np.array_equal(keys[:, None] == keys[None, :], same)
    tokens = np.stack([np.arange(100_000) // 300, np.arange(100_000) % 300], 1).flatten()
    count = len(tokens) // 2
    made = Batch(tokens, np.full(count, 2), np.arange(count), np.zeros(count, np.int64))
    assert len(np.unique(sentence_keys(made))) == count
