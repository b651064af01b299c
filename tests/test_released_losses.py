"""Laws of the losses of an imported checkpoint: they are those of the authors' code.

The reference is plain loops in float64 (reference/original-code.md section 9).
"""

import json
import math

import numpy as np
import pytest
import sentencepiece
import torch
from made.experiments import shipped
from made.released import (
    BERT,
    LANGUAGES,
    MOST,
    WIDTH,
    checkpoint,
    imported,
    make_state,
    reference,
    state_of,
    write_released,
    write_vocabulary,
)
from made.shards import in_order

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.base.schema import Json, plain
from ems.commands.cli import main
from ems.model.objectives.masking import Masker, Pieces
from ems.shards.index import shards_in
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards
from ems.train.trained import validate_model

PAIRS = [  # de, en
    ("kalo mine so", "ne ru"),
    ("va", "so ti kalo mine"),
    ("ru so so ti", "lo mi ka va va"),
    ("lo lo", "mine kalo ne"),
    ("ti ka mi", "ru"),
]
CHANGES = ["counted", "added up", "no mask", "own language", "no norm", "one direction", "dot"]


@pytest.fixture
def made(tmp_path):
    return write_released(tmp_path)


def make_shards(folder, out):
    """Shards of PAIRS, made with the vocabulary of the model folder `out`."""
    lines = "".join(f"{de}\t{en}\t{at}\n" for at, (de, en) in enumerate(PAIRS, 1))
    (folder / "de-en.tsv").write_text(lines)
    write_shards(folder / "de-en.tsv", out / "vocabulary.model", folder / "shards")
    return folder / "shards"


def losses(state, sides, change=None):
    """Their XTR and contrastive loss of sides[2][B] (language, tokens as the model sees them):
    float64, one sentence at a time (original-code.md section 9).
    """
    w = {key.removeprefix("module."): value.double().numpy() for key, value in state.items()}
    vectors = [[reference(state, ids) for _, ids in side] for side in sides]
    xtr = 0.0
    for own, other in ((0, 1), (1, 0)) if change != "one direction" else ((0, 1),):
        for vector, of, (to, ids) in zip(vectors[own], sides[own], sides[other], strict=True):
            language = of[0] if change == "own language" else to
            shares = {word: 1 / len(ids) for word in ids}
            if change == "counted":
                shares = {word: list(ids).count(word) / len(ids) for word in ids}
            if change == "added up":
                shares = {word: share / sum(shares.values()) for word, share in shares.items()}
            log_q = predicted(w, language, vector, change)
            xtr += sum(p * (math.log(p) - log_q[word]) for word, p in shares.items())
    first, second = ([projected(w, vector) for vector in side] for side in vectors)
    scores = np.array([[a @ b for b in second] for a in first])
    if change != "dot":
        scores /= np.outer(*([math.sqrt(v @ v) for v in side] for side in (first, second)))
    crossed = [np.log(np.exp(s / 0.1).sum(1)) - np.diag(s) / 0.1 for s in (scores, scores.T)]
    return xtr / len(PAIRS), sum(part.mean() for part in crossed)


def normed(w, name, value):
    normal = (value - value.mean()) / math.sqrt(value.var() + 1e-12)
    return normal * w[f"{name}.weight"] + w[f"{name}.bias"]


def predicted(w, language, vector, change):
    """log softmax over the pieces."""
    embedding = w["model.la_tag_linear.embedding.weight"][language]
    inputs = np.concatenate([normed(w, "model.la_tag_linear.layer_norm", embedding), vector])
    mixed = w["model.transform.dense.weight"] @ inputs + w["model.transform.dense.bias"]
    mixed = mixed / (1 + np.exp(-mixed))
    if change != "no norm":
        mixed = normed(w, "model.transform.LayerNorm", mixed)
    logits = w["model.decoder.decoder.weight"] @ mixed
    return logits - np.log(np.exp(logits).sum())


def projected(w, vector):
    inner = np.maximum(0, w["alignproj.0.weight"] @ vector + w["alignproj.0.bias"])
    return w["alignproj.3.weight"] @ inner + w["alignproj.3.bias"]


def seen_sides(out, shards):
    """(language, tokens) of each sentence, first sides and second sides, with the masks of
    validation, which one token of a pair has.
    """
    store = PairStore(shards_in(shards), LANGUAGES, MOST)
    (batch,) = in_order(store, 152)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(out / "vocabulary.model"))
    masked = Masker("one", Pieces.classify(pieces), MOST)(batch, 0, 0).inputs
    sides = []
    for tokens in (masked, batch.tokens):
        parts = np.split(tokens, np.cumsum(batch.lengths)[:-1])
        by_row = dict(zip(batch.rows.tolist(), parts, strict=True))
        rows = [(batch.languages[row], by_row[row]) for row in range(len(by_row))]
        sides.append((rows[: len(PAIRS)], rows[len(PAIRS) :]))
    return sides


def test_the_losses_of_the_imported_model_are_those_of_the_authors_code(made):
    out, state = imported(made), state_of(made)
    shards = make_shards(made, out)
    masked, unmasked = seen_sides(out, shards)
    row = validate_model(out, [shards])
    xtr, contrastive = losses(state, masked)
    assert row["xtr"] == pytest.approx(xtr, rel=1e-4)
    assert row["contrastive"] == pytest.approx(contrastive, rel=1e-4)
    assert row["total"] == pytest.approx(xtr + contrastive, rel=1e-4)
    assert row["p1_by_language"].keys() == {"de"}
    for change in CHANGES:
        other = losses(state, unmasked if change == "no mask" else masked, change)
        assert np.abs(np.subtract(other, (xtr, contrastive))).max() > 1e-3 * xtr, change


def test_its_settings_are_those_of_ems_released(made):
    """Of the released sizes they are the same; these are smaller."""
    own = read_json(imported(made) / "model.json", Json)["training"]["system"]
    released = {key: plain(getattr(shipped("ems62").systems["ems-released"], key)) for key in own}
    sizes = {"model": ("layers", "width", "heads", "feed_forward", "max_tokens")}
    for key in sizes["model"]:
        del own["model"][key], released["model"][key]
    own["objectives"]["head"]["language_width"] = 128
    own["objectives"]["contrastive"]["width"] = 128
    assert own["model"] == released["model"]
    assert own["objectives"] == released["objectives"]
    for key, value in own["train"].items():
        if key in ("steps", "batch_pairs", "amsgrad", "input_mask"):
            assert value == released["train"][key], key


def test_heads_that_share_the_embeddings_or_have_no_projection_are_read_too(made):
    state = state_of(made)
    words = state[f"{BERT}embedding.word_embedding.embedding.weight"]
    shared = {key: value for key, value in state.items() if "alignproj" not in key}
    shared["module.model.target_embedding.weight"] = words
    shared["module.model.decoder.decoder.weight"] = words
    for name, size in (("dense.weight", (WIDTH, WIDTH + 8)), ("dense.bias", (WIDTH,))):
        shared[f"module.model.transform.{name}"] = torch.randn(size)
    for kind in ("weight", "bias"):
        shared[f"module.model.transform.LayerNorm.{kind}"] = torch.ones(WIDTH)
    torch.save(checkpoint(shared), made / "weights.pt")
    out = imported(made)
    row = validate_model(out, [make_shards(made, out)])
    assert row.keys() == {"xtr", "total", "p1", "p1_by_language"}


def test_shards_of_another_vocabulary_and_a_model_without_heads_are_refused(made, capfd):
    out = imported(made)
    shards = make_shards(made, out)
    write_vocabulary(made / "spm.model", size=48)
    state = make_state(48)
    torch.save(checkpoint(state), made / "weights.pt")
    out = imported(made)
    with pytest.raises(
        EmsError, match=r"not the vocabulary of the shards .*; make shards .*vocabulary\.model"
    ):
        validate_model(out, [shards])
    shards = make_shards(made, out)
    (out / "heads.safetensors").unlink()
    command = ["validate", "--model", str(out), "--shards", str(shards)]
    assert main(command) == 1
    assert "heads.safetensors: does not fit its settings" in capfd.readouterr().err
    imported(made)
    assert main(command) == 0
    assert json.loads(capfd.readouterr().out).keys() >= {"xtr", "contrastive", "total", "p1"}
