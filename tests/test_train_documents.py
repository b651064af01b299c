"""Laws of training on documents: it learns, it resumes to equal bytes, it is validated on both
documents and pairs. (That two processes equal one: test_distributed_train.py.)
"""

import pytest
from made.documents import CONTEXT, add_documents
from made.experiments import changed, one_line
from made.train import Toy, contents, rows, train_into, train_until
from safetensors.torch import load_file

from ems.model.encode import SentenceEncoder
from ems.train.trained import validate_model

LEARNT = [
    ("cross-entropy", 0.6931, 65),
    ("printed", 0.5, 53),
]  # loss of no knowledge, least accuracy


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return add_documents(Toy(tmp_path_factory.mktemp("toy")))


@pytest.fixture(scope="module")
def never_killed(toy, tmp_path_factory):
    return toy.train(tmp_path_factory.mktemp("whole"), **CONTEXT)


@pytest.mark.parametrize(("loss", "blind", "accuracy"), LEARNT)
def test_the_classifier_learns_what_stands_in_its_context(loss, blind, accuracy, toy, tmp_path):
    longer = {"steps": 400, "batch_pairs": 16, "schedule": "constant", "validate_every": 400}
    longer = {"train": longer, "objectives": {"context": {"loss": loss}}}
    first, last = rows(toy.train(tmp_path, **changed(CONTEXT, longer)), "validation")
    assert first["context"] == pytest.approx(blind, abs=0.2)
    assert last["context"] < 0.9 * first["context"]
    assert first["context_accuracy"] == pytest.approx(50, abs=6)
    assert last["context_accuracy"] > accuracy
    assert last["context"] == last["total"]


def test_its_log_has_the_loss_the_accuracy_and_the_p1_of_pairs(never_killed):
    parts = ["context", "context_accuracy", "total"]
    for row in rows(never_killed, "validation"):
        assert list(row)[3:] == ["p1", "p1_by_language", *parts]
        assert row["p1_by_language"].keys() == {"de", "fr"}
    assert list(rows(never_killed, "train")[-1])[3:] == [*parts, "lr"]


def test_a_finished_model_has_the_row_of_its_last_validation(toy, never_killed):
    last = rows(never_killed, "validation")[-1]
    of_documents = validate_model(never_killed, toy.documents["validation"])
    assert of_documents == {key: last[key] for key in ("context", "context_accuracy", "total")}
    of_pairs = validate_model(never_killed, toy.shards("validation"))
    assert of_pairs == {key: last[key] for key in ("p1", "p1_by_language")}


@pytest.mark.parametrize("both", [True, False])
def test_a_model_is_validated_on_what_it_learnt_from_alone(both, toy, never_killed, tmp_path):
    documents = toy.documents["validation"]
    if both:
        one_line(validate_model, never_killed, [*documents, *toy.shards("validation")])
        one_line(validate_model, never_killed, documents, tmp_path)
    else:
        pairs = toy.train(tmp_path, train={"steps": 1})
        message = one_line(validate_model, pairs, documents)
        assert "expected pairs; or documents, for a model trained with `context`" in message


@pytest.mark.parametrize(("kill", "step"), [(train_until, 10), (train_into, 13)])
def test_killed_and_resumed_equals_never_killed(kill, step, toy, never_killed, tmp_path):
    kill(toy, tmp_path, step, **CONTEXT)
    assert contents(toy.train(tmp_path, **CONTEXT)) == contents(never_killed)


def test_the_model_folder_encodes_with_both_halves_of_the_embedding(never_killed):
    vectors = SentenceEncoder(never_killed).encode(["bako lili", "neba"], "en")
    assert vectors.shape == (2, 32)
    assert load_file(never_killed / "heads.safetensors")["context.weight"].shape == (1, 32)
    assert (vectors[:, 16:] > vectors[:, :16]).all(), "a maximum is no less than the mean"


def test_pairs_and_documents_are_not_learnt_at_once(toy):
    both = changed(CONTEXT, {"objectives": {"xtr": {"weight": 1}}})
    message = one_line(lambda: toy.experiment(**both))
    assert "objectives.context learns from documents" in message
    assert "xtr from pairs" in message


@pytest.mark.parametrize(
    "changes", [{"objectives": CONTEXT["objectives"]}, {"corpora": CONTEXT["corpora"]}]
)
def test_objectives_that_no_corpus_has_text_for_are_an_error(changes, toy):
    message = one_line(lambda: toy.experiment(**changes))
    needed = "documents" if "objectives" in changes else "pairs"
    assert message.endswith(f"`kind: {needed}`; add one, or choose other objectives")


def test_a_system_of_documents_without_any_is_an_error(toy, tmp_path):
    bare = Toy(tmp_path)
    assert "expected shards of en, de, fr, found none" in one_line(lambda: bare.data(**CONTEXT))
