"""Laws of mining in documents: a round is a function of (seed, round) and keeps the best pairs of
plain loops, a killed run resumes to the same bytes, and known translations are counted."""

import hashlib
import json
import os
import shutil
from itertools import chain

import numpy as np
import pytest
from made.bench import naive_best_pairs, unit
from made.experiments import changed, one_line
from made.shards import contents
from made.train import CONTEXT, LANGUAGES, OWN, Killed, Toy, add_documents, rows, validate_model
from safetensors.torch import load_file, save_file

from ems.base.errors import EmsError
from ems.bench import nearest as nearest_rows
from ems.bench.nearest import Distinct, nearest
from ems.config.objectives import MiningSettings
from ems.model.encode import SentenceEncoder
from ems.model.encoder import embed_tokens
from ems.shards import inspect
from ems.shards.documents import DocumentStore, MinedStore
from ems.shards.index import read_index, shards_of
from ems.train import mine_documents as mining
from ems.train.data import training_data
from ems.train.job import train
from ems.train.mine_documents import Rounds, mine, share_right
from ems.use import mining as pair_mining

SEED, LIMIT, K = 3, 30, 2
STEPS = {"steps": 6, "validate_every": 3, "checkpoint_every": 2}
MINING = {"sample": 40, "keep": 30, "pairs": 100}
MINED = {"context": {"weight": 0}, "coherence": {"weight": 1, "k": K, "mining": MINING}}
COHERENT = {"objectives": MINED, "train": {"start_from": "ems", **STEPS}, "iterations": 2}
COHERENCE = {**CONTEXT, "systems": {"ems": {}, "coherent": COHERENT}, "train": STEPS}


def made_toy(folder):
    """Shards and documents, and the stage 1 system trained on them into `folder`/start."""
    toy = add_documents(Toy(folder))
    toy.train(folder / "start", **COHERENCE)
    return toy


def mined(toy, folder, name="coherent-1", model=None, **more):
    """Mine for a system into `folder`/mined; the folder and its manifest."""
    experiment = toy.experiment(**changed(COHERENCE, more)).of_system(name)
    model, out = model or toy.folder / "start" / "model", folder / "mined"
    return out, mine(experiment, name, read_index(toy.index()), model, out, folder / "mining")


def trained(toy, folder, pairs, **more):
    """Train a system on mined pairs into `folder`/model; the model folder."""
    experiment, name = toy.experiment(**changed(COHERENCE, more)), "coherent-1"
    index, settings = read_index(toy.index()), experiment.systems[name]
    data = training_data(settings, LANGUAGES, index, toy.vocabulary, pairs)
    places = folder / "model", folder / "state", folder / "times.jsonl"
    train(experiment, name, data, *places, start=toy.folder / "start" / "model")
    return folder / "model"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return made_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def never_killed(toy, tmp_path_factory):
    return mined(toy, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def documents(toy):
    folders = shards_of(read_index(toy.index())["train"], LANGUAGES, 1)
    return DocumentStore(folders, LANGUAGES, LIMIT, K)


def text(documents, language, row):
    """The ids of a sentence by its language and its row through all shards."""
    ((shard, at),) = documents.places(np.array([language]), np.array([row]))
    return shard.piece(0, at).tolist()


def rounds_of(**settings):
    settings = {"sample": 100, "keep": 60, "pairs": 500, **settings}
    return Rounds(MiningSettings(**settings), (900, 700, 50), 7)


def test_a_round_draws_sentences_without_replacement_by_seed_and_round():
    first, again = rounds_of(), rounds_of(pairs=9_000)
    for at in range(first.count):
        sizes = [first.sizes[language] for language in first.languages(at)]
        for drawn, same, size in zip(first.drawn(at), again.drawn(at), sizes, strict=True):
            assert drawn.tolist() == same.tolist() == sorted(set(drawn.tolist()))
            assert len(drawn) == min(100, size)
            assert 0 <= drawn[0] <= drawn[-1] < size
    other = Rounds(first.settings, first.sizes, 8)
    assert first.drawn(0)[0].tolist() != other.drawn(0)[0].tolist()
    assert first.drawn(0)[0].tolist() != first.drawn(3)[0].tolist()
    share = Rounds(MiningSettings(sample=10_000), (25, 25), 1, share=0.25)
    assert share.drawn(0)[0].tolist() == list(range(0, 100, 4))  # at even distances


@pytest.mark.parametrize("pairs", [1, 59, 60, 61, 180, 500])
@pytest.mark.parametrize("sample", [1, 5, 100])
def test_there_are_as_many_rounds_as_give_the_pairs_and_no_more(pairs, sample):
    rounds = rounds_of(pairs=pairs, sample=sample)
    kept = [rounds.kept(at) for at in range(rounds.count)]
    assert sum(kept) >= pairs > sum(kept[:-1])
    turns = [rounds.languages(at) for at in range(rounds.count)]
    assert turns == ([(0, 1), (0, 2), (1, 2)] * len(turns))[: len(turns)]


# --- what is mined


def mined_in(documents, folder):
    folders = [shard.folder for shard in documents.shards]
    return MinedStore(folder, folders, LANGUAGES, LIMIT, K)


def test_each_round_keeps_the_best_pairs_of_plain_loops(toy, documents, never_killed):
    pairs = mined_in(documents, never_killed[0])
    encoder = SentenceEncoder(toy.folder / "start" / "model", "cpu").encoder
    settings = MiningSettings(**MINING)
    rounds = Rounds(settings, tuple(documents.sizes.tolist()), SEED)
    assert (rounds.count, len(pairs.rows)) == (4, settings.pairs)
    for at in range(rounds.count - 1):  # the last one is cut to the number of pairs
        drawn = rounds.drawn(at)
        vectors = []
        for language, own in zip(rounds.languages(at), drawn, strict=True):
            tokens = [np.array(text(documents, language, row)) for row in own]
            vectors.append(unit(embed_tokens(encoder, tokens)).astype(np.float64).tolist())
        expected = naive_best_pairs(*vectors, settings.keep, settings.neighbours)
        own = pairs.rows[pairs.rows["round"] == at]
        assert np.allclose(own["score"], [score for score, _, _ in expected], atol=1e-5)
        cosines = [np.dot(vectors[0][i], vectors[1][j]) for _, i, j in expected]
        assert np.allclose(own["similarity"], cosines, atol=1e-5)
        named = {(int(drawn[0][i]), int(drawn[1][j])) for _, i, j in expected}
        assert len(named & set(map(tuple, own["rows"].tolist()))) >= settings.keep - 1


def test_each_sentence_is_encoded_once(toy, documents, tmp_path, monkeypatch):
    encoded = []

    def embed(encoder, tokens):
        encoded.extend(tokens)
        return embed_tokens(encoder, tokens)

    monkeypatch.setattr(mining, "embed_tokens", embed)
    mined(toy, tmp_path)
    rounds = Rounds(MiningSettings(**MINING), tuple(documents.sizes.tolist()), SEED)
    drawn, hidden = sum(map(len, rounds.all_drawn())), 2 * 20
    assert len(encoded) == drawn + hidden
    assert drawn < sum(len(part) for at in range(rounds.count) for part in rounds.drawn(at))


@pytest.mark.parametrize("work", ["encode", "compared"])
@pytest.mark.parametrize("after", [0, 2])
def test_killed_and_resumed_equals_never_killed(work, after, toy, tmp_path, monkeypatch):
    monkeypatch.setattr(mining, "SENTENCES", 60)
    monkeypatch.setattr(mining, "PAIRS", 30)
    done, own = [], getattr(mining.PairSearch, work)

    def dies(*arguments):
        if len(done) == after:
            raise Killed
        done.append(arguments)
        return own(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(mining.PairSearch, work, dies)
        with pytest.raises(Killed):
            mined(toy, tmp_path)
    assert not (tmp_path / "mined").exists()
    monkeypatch.setattr(mining.PairSearch, work, lambda *each: done.append(each) or own(*each))
    folder, _ = mined(toy, tmp_path)
    assert not (tmp_path / "mining").exists()
    resumed = len(done)
    assert contents(folder) == contents(mined(toy, tmp_path / "whole")[0])
    assert len(done) == 2 * resumed, "nothing was done twice"


def test_the_report_counts_known_translations(never_killed):
    about = never_killed[1]["by_pair"]["de-en"]
    known = about["known"]
    assert about["pairs"] == 100 == never_killed[1]["pairs"]["de-en"]
    assert (known["hidden"], known["among"]) == (20, [60, 60])  # the validation pairs
    assert known["chance"] == pytest.approx(100 * 20 / (60 * 60 - 40 * 40))
    assert known["share"] == pytest.approx(100 * known["right"] / known["known"])


def test_translations_that_are_near_are_right_and_random_vectors_are_chance():
    random = np.random.default_rng(1)
    hidden, others, more = (unit(random.normal(size=(n, 32))) for n in (50, 200, 200))
    near = unit(hidden + 0.05 * random.normal(size=(50, 32)))
    signal = share_right((hidden, near), (others, more), 50, 10, "cpu")
    assert (signal["right"], signal["share"]) == (50, 100)
    far = unit(random.normal(size=(50, 32)))
    chance = share_right((hidden, far), (others, more), 1000, 10, "cpu")
    assert chance["share"] < 2
    assert chance["chance"] == pytest.approx(100 * 50 / (250 * 250 - 200 * 200))


def test_a_shard_that_is_cut_while_it_is_mined_gives_no_pairs(tmp_path, monkeypatch):
    toy = made_toy(tmp_path / "toy")
    path = next(toy.documents["training"][0].rglob("*.ids"))
    one = mining.embed_tokens

    def cut_and_embed(*arguments):
        os.truncate(path, path.stat().st_size // 2)
        return one(*arguments)

    monkeypatch.setattr(mining, "embed_tokens", cut_and_embed)
    with pytest.raises(EmsError, match=r"expected .* bytes by its manifest, found"):
        mined(toy, tmp_path)
    assert not (tmp_path / "mined").exists()


def test_other_shards_models_and_languages_are_errors(toy, never_killed, tmp_path):
    one = {"languages": ["en", "fr"], "objectives": MINED, "train": {"start_from": "ems"}}
    run = {"systems": {"one": one}, "corpora": [{**OWN, "languages": ["en", "de", "fr"]}]}
    message = one_line(mined, toy, tmp_path, "one", **run)  # there are no shards of fr
    assert message == "expected documents of two languages or more to mine in, found en"
    message = one_line(toy.experiment, **changed(COHERENCE, {"systems": {"one": one}}))
    assert "objectives.coherence mines documents in two or more languages, found en" in message
    model = shutil.copytree(toy.folder / "start" / "model", tmp_path / "model")
    other = toy.vocabulary.read_bytes() + b"\x12\x00"  # an empty part: it is read all the same
    (model / "vocabulary.model").write_bytes(other)
    description = json.loads((model / "model.json").read_text())
    description["sha256"]["vocabulary.model"] = hashlib.sha256(other).hexdigest()
    (model / "model.json").write_text(json.dumps(description))
    message = one_line(mined, toy, tmp_path, model=model)
    assert "not the vocabulary of the shards" in message
    folder = shutil.copytree(never_killed[0], tmp_path / "mined")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "shards": "others"}))
    assert "mined in other documents than" in one_line(trained, toy, tmp_path, folder)
    message = one_line(inspect.inspect_mined, never_killed[0], toy.index(), "de-fr", 0, None)
    assert message == "--pair de-fr: no mined pairs; the language pairs are de-en"


def test_a_comparison_in_parts_gives_the_neighbours_of_the_whole(tmp_path, monkeypatch):
    random = np.random.default_rng(2)
    rows = [unit(random.normal(size=(count, 16))).astype("<f4") for count in (61, 45)]
    monkeypatch.setattr(nearest_rows, "ROWS", 14)
    sides = []
    for name, own in zip("ab", rows, strict=True):
        own[[4, 5, 20, 40]] = own[[1, 2, 1, 3]] * np.array([[1], [0], [1], [1]])
        (tmp_path / name).mkdir()
        paths = [tmp_path / name / str(start) for start in range(0, len(own), 9)]
        for path in paths:
            own[int(path.name) : int(path.name) + 9].tofile(path)
        sides.append(Distinct(pair_mining.Vectors(paths, 16)))
        assert len(sides[-1]) < len(own)
        assert sides[-1].vectors[3:31].tobytes() == own[3:31].tobytes()
        assert sides[-1][3:31].tobytes() == own[sides[-1].rows[3:31]].tobytes()
    whole = nearest(*(own[side.rows] for own, side in zip(rows, sides, strict=True)), 4, what="")
    monkeypatch.setattr(pair_mining, "ROWS", 7)
    monkeypatch.setattr(pair_mining, "LEAST_ROWS", 7)
    options = pair_mining.SearchOptions(4)
    with pair_mining.compared(sides, options, "", tmp_path / "state") as parts:
        for one, other in zip(parts, whole, strict=True):
            assert (one.index == other.index).all()
            np.testing.assert_allclose(one.similarity, other.similarity, atol=1e-6)


# --- batches of mined pairs


def test_a_batch_has_the_sentences_in_exchanged_places_and_their_similarity(
    toy, documents, never_killed
):
    folders = [shard.folder for shard in documents.shards]
    for target, field in (("cosine", "similarity"), ("csls", "score")):
        store = MinedStore(never_killed[0], folders, LANGUAGES, LIMIT, K, target)
        assert store.sizes.tolist() == [100]
        batch = store.assemble(np.zeros(5, np.int64), np.arange(20, 25))
        texts = np.split(batch.tokens, np.cumsum(batch.lengths)[:-1])
        by_row = dict(zip(batch.rows.tolist(), texts, strict=True))
        for at, row in enumerate(store.rows[20:25]):
            (one, other), (first, second) = row["languages"], row["rows"]
            own = contextual(documents, one, first, text(documents, other, second))
            assert by_row[at].tolist() == own
            own = contextual(documents, other, second, text(documents, one, first))
            assert by_row[5 + at].tolist() == own
            assert batch.targets[[at, 5 + at]] == pytest.approx([row[field]] * 2)
    again = MinedStore(never_killed[0], folders, LANGUAGES, LIMIT, K).draw(1, 5, 8, 1.0)
    assert store.draw(1, 5, 8, 1.0).tokens.tolist() == again.tokens.tolist()  # of seed and step
    assert store.draw(1, 6, 8, 1.0).tokens.tolist() != again.tokens.tolist()


def contextual(documents, language, row, middle):
    """The sentences of a document up to K from `row` on both sides, with `middle` in its place."""
    ((shard, at),) = documents.places(np.array([language]), np.array([row]))
    which = np.searchsorted(shard.documents, at, side="right")
    start, end = shard.documents[which - 1 : which + 1].tolist()
    before = [shard.piece(0, each).tolist() for each in range(max(start, at - K), at)]
    after = [shard.piece(0, each).tolist() for each in range(at + 1, min(end, at + 1 + K))]
    ids = [*chain(*before, middle, *after)]
    assert len(ids) <= LIMIT, "a guard: nothing is cut here"
    return ids


def test_a_system_learns_and_is_validated_on_the_similarity_of_mined_pairs(
    toy, never_killed, tmp_path
):
    longer = {"train": {"steps": 200, "validate_every": 200, "checkpoint_every": 100}}
    out = trained(toy, tmp_path, never_killed[0], systems={"coherent": longer})
    losses = [row["coherence"] for row in rows(out, "train")]
    assert losses[-1] < 0.5 * losses[0]
    heads = load_file(out / "heads.safetensors")
    heads["coherence.weight"].zero_()
    heads["coherence.bias"].fill_(0.25)  # so that it predicts 0.25
    save_file(heads, out / "heads.safetensors")
    row = validate_model(out, toy.documents["training"], never_killed[0])
    targets = np.load(never_killed[0] / "pairs.npy")["similarity"]
    error = np.mean((targets - 0.25) ** 2)
    assert row["coherence"] == row["total"] == pytest.approx(error, rel=1e-4)
    one_line(validate_model, out, toy.documents["training"])  # without mined pairs


def test_inspect_shows_both_sentences_with_scores_and_origins(toy, documents, never_killed):
    row = mined_in(documents, never_killed[0]).rows[7]
    shown = inspect.inspect_mined(never_killed[0], toy.index(), "en-de", 7, toy.vocabulary)
    head, *lines = shown.splitlines()
    scores = f"CSLS {row['score']:.4f}, cosine {row['similarity']:.4f}"
    assert head == f"mined pair 7 of 100, de-en, round {row['round']}: {scores}"
    languages = [line.split(", ")[1] for line in lines if line.startswith("corpus ")]
    assert languages == ["language de", "language en"]
    assert sum(line.startswith("line ") for line in lines) == 2
