"""Laws of the authors' checkpoint as one of our models: the same vectors, or a clear refusal.

The reference is their architecture written out plainly, float64, one sentence at a time
(reference/original-code.md sections 5 to 9); nothing of it is from ems.
"""

import io
import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from experiments_made import shipped

from ems.cli import main
from ems.encode import MODEL, SentenceEncoder
from ems.errors import EmsError
from ems.files import read_json
from ems.model.released import import_released, sizes
from ems.objectives.masking import Masker, Pieces
from ems.settings import plain
from ems.shards.index import shards_in
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards
from ems.train.trained import validated

WIDTH, LAYERS, HEADS, INNER, MOST = 12, 2, 3, 20, 9
LANGUAGES = ["en", "de", "zh", "ja"]
LINES = ["kalo mine", "ne ru so ti kalo mine va", "va", "Ne RU so ti va lo mi ka kalo mine so so"]
BERT = "module.model.bert."


def write_vocabulary(path, symbols=("<MASK>", *(f"<2{code}>" for code in LANGUAGES)), size=44):
    """A SentencePiece model laid out as theirs: 0 <pad>, 1 <unk>, 2 <MASK>, the languages."""
    model = io.BytesIO()
    parts = ["kalo", "mine", "ne", "ru"], ["so", "ti", "va"], ["lo", "mi", "ka"]
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=map(" ".join, itertools.product(*parts)),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        **ids,
        control_symbols=list(symbols),
        minloglevel=2,
        hard_vocab_limit=False,
    )
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def make_state(pieces):
    """A state_dict with their keys and shapes, random."""
    draw = torch.Generator().manual_seed(5)

    def random(*shape):
        return torch.randn(*shape, generator=draw) * 0.4

    def linear(name, out, into):
        return {f"{name}.weight": random(out, into), f"{name}.bias": random(out)}

    def norm(name, size):
        return {f"{name}.weight": 1 + random(size), f"{name}.bias": random(size)}

    state = {
        f"{BERT}embedding.word_embedding.embedding.weight": random(pieces, WIDTH),
        f"{BERT}embedding.position_embedding.position_embeddings.weight": random(MOST + 1, WIDTH),
        **norm(f"{BERT}embedding.layer_norm", WIDTH),
    }
    for number in range(LAYERS):
        layer = f"{BERT}encoder.layer.{number}."
        for name in ("query", "key", "value"):
            state |= linear(f"{layer}attention.self_attention.{name}", WIDTH, WIDTH)
        state |= linear(f"{layer}attention.output.dense", WIDTH, WIDTH)
        state |= norm(f"{layer}attention.output.LayerNorm", WIDTH)
        state |= linear(f"{layer}intermediate.dense", INNER, WIDTH)
        state |= linear(f"{layer}output.dense", WIDTH, INNER)
        state |= norm(f"{layer}output.LayerNorm", WIDTH)
    state |= {"module.model.la_tag_linear.embedding.weight": random(len(LANGUAGES), 8)}
    state |= norm("module.model.la_tag_linear.layer_norm", 8)
    state |= linear("module.model.transform.dense", WIDTH + 8, WIDTH + 8)
    state |= norm("module.model.transform.LayerNorm", WIDTH + 8)
    state |= {"module.model.decoder.decoder.weight": random(pieces, WIDTH + 8)}
    state |= linear("module.alignproj.0", WIDTH, WIDTH) | linear("module.alignproj.3", 5, WIDTH)
    return state


def checkpoint(state):
    """What their main.py saves; the losses may be numbers of NumPy."""
    return {
        "state_dict": state,
        "best_loss": np.float64(4.25),
        "valid_loss": np.float32(4.5),
        "step": 733176,
        "epoch": 3,
        "model_name": "maki49",
        "optimizer": {"state": {0: {"step": 1, "exp_avg": torch.zeros(3)}}, "param_groups": []},
    }


def reference(state, ids):
    """Their encoder on one sentence of token ids: float64[WIDTH]."""
    w = {key.removeprefix(BERT): value.double().numpy() for key, value in state.items()}

    def linear(name, value):
        return value @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name, value):
        centred = value - value.mean(1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-12)
        return normal * w[f"{name}.weight"] + w[f"{name}.bias"]

    words = w["embedding.word_embedding.embedding.weight"][ids[:MOST]]
    places = w["embedding.position_embedding.position_embeddings.weight"]
    states = norm("embedding.layer_norm", words + places[1 : len(words) + 1])
    size = WIDTH // HEADS
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        names = (f"{layer}attention.self_attention.{name}" for name in ("query", "key", "value"))
        query, key, value = (linear(name, states) for name in names)
        mixed = np.zeros_like(states)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            shares = np.exp(query[:, part] @ key[:, part].T / math.sqrt(size))
            mixed[:, part] = shares / shares.sum(1, keepdims=True) @ value[:, part]
        out = f"{layer}attention.output."
        states = norm(f"{out}LayerNorm", linear(f"{out}dense", mixed) + states)
        inner = linear(f"{layer}intermediate.dense", states)
        inner = inner / (1 + np.exp(-inner))
        out = f"{layer}output."
        states = norm(f"{out}LayerNorm", linear(f"{out}dense", inner) + states)
    return states.mean(axis=0)


@pytest.fixture
def made(tmp_path):
    """Their two files in a folder: weights.pt and spm.model."""
    pieces = write_vocabulary(tmp_path / "spm.model").get_piece_size()
    torch.save(checkpoint(make_state(pieces)), tmp_path / "weights.pt")
    return tmp_path


def imported(folder):
    out = folder / "models" / "released"
    import_released(folder / "weights.pt", folder / "spm.model", out, HEADS, "sacremoses")
    return out


def state_of(folder):
    return torch.load(folder / "weights.pt", weights_only=False)["state_dict"]


def refusal(folder):
    with pytest.raises(EmsError) as error:
        imported(folder)
    assert not (folder / "models" / "released" / "model.json").exists()
    assert "\n" not in str(error.value)
    return str(error.value)


# --- the same vectors


def test_the_imported_encoder_gives_the_vectors_of_their_architecture(made):
    out, state = imported(made), state_of(made)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(made / "spm.model"))
    vectors = SentenceEncoder(out, "cpu").encode(LINES, "en")
    ids = [pieces.encode(line.lower()) for line in LINES]
    assert max(map(len, ids)) > MOST  # so that the cut shows
    expected = np.stack([reference(state, each) for each in ids])
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-5)
    assert np.abs(expected[0] - expected[1]).max() > 0.1


def test_each_part_of_the_reference_matters(made):
    """A guard: a reference that ignored a weight could not see it mapped wrongly."""
    state = state_of(made)
    ids = [5, 9, 11]
    before = reference(state, ids)
    for key in [key for key in state if key.startswith(BERT)]:
        changed = {**state, key: state[key].flip(0)}
        same = np.allclose(reference(changed, ids), before, atol=1e-9)
        assert same == key.endswith("self_attention.key.bias"), key  # softmax takes no constant


def test_what_is_written_is_a_model_folder_without_any_pickle(made):
    out = imported(made)
    names = {"model.json", "model.safetensors", "heads.safetensors", "vocabulary.model"}
    assert {path.name for path in out.iterdir()} == names
    description = read_json(out / "model.json", MODEL)
    assert description["languages"] == LANGUAGES
    assert description["model"]["max_tokens"] == MOST
    assert description["model"]["norm_eps"] == 1e-12
    segmenters = {"en": "sacremoses", "de": "sacremoses", "und": "sacremoses"}
    assert description["segmenters"] == segmenters | {"zh": "jieba", "ja": "jumanpp"}
    first = {name: (out / name).read_bytes() for name in names}
    imported(made)
    assert {name: (out / name).read_bytes() for name in names} == first


def test_heads_are_64_wide_unless_said_otherwise(tmp_path):
    state = {"tokens.weight": torch.zeros(7, 1024), "positions.weight": torch.zeros(120, 1024)}
    state |= {f"layers.{at}.inner.weight": torch.zeros(4096, 1024) for at in (0, 5)}
    made = sizes(state, 0, tmp_path)
    assert (made.layers, made.width, made.heads) == (6, 1024, 16)
    assert (made.feed_forward, made.max_tokens) == (4096, 120)  # the released EMS
    assert sizes(state, 8, tmp_path).heads == 8
    with pytest.raises(EmsError, match="--heads 7: the width"):
        sizes(state, 7, tmp_path)


def test_the_names_of_an_older_checkpoint_and_one_saved_without_ddp_are_known(made):
    files = ("model.safetensors", "heads.safetensors")
    first = [(imported(made) / name).read_bytes() for name in files]
    state = {
        key.replace("model.transform", "model.decoder.transform").removeprefix("module."): value
        for key, value in state_of(made).items()
    }
    torch.save(checkpoint(state), made / "weights.pt")
    assert [(imported(made) / name).read_bytes() for name in files] == first


# --- the authors' losses

PAIRS = [  # de, en
    ("kalo mine so", "ne ru"),
    ("va", "so ti kalo mine"),
    ("ru so so ti", "lo mi ka va va"),
    ("lo lo", "mine kalo ne"),
    ("ti ka mi", "ru"),
]
CHANGES = ["counted", "added up", "no mask", "own language", "no norm", "one direction", "dot"]


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
            shares = {w: 1 / len(ids) for w in ids}
            if change == "counted":
                shares = {w: list(ids).count(w) / len(ids) for w in ids}
            if change == "added up":
                shares = {w: share / sum(shares.values()) for w, share in shares.items()}
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
    told = w["model.la_tag_linear.embedding.weight"][language]
    joined = np.concatenate([normed(w, "model.la_tag_linear.layer_norm", told), vector])
    mixed = w["model.transform.dense.weight"] @ joined + w["model.transform.dense.bias"]
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
    (batch,) = store.in_order(152)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(out / "vocabulary.model"))
    masked = Masker("one", Pieces.of(pieces), MOST)(batch, 0, 0).inputs
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
    row = validated(out, [shards])
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
    own = read_json(imported(made) / "model.json", MODEL)["training"]["system"]
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
    row = validated(out, [make_shards(made, out)])
    assert row.keys() == {"xtr", "total", "p1", "p1_by_language"}


def test_shards_of_another_vocabulary_and_a_model_without_heads_are_told(made, capfd):
    out = imported(made)
    shards = make_shards(made, out)
    write_vocabulary(made / "spm.model", size=48)
    state = make_state(48)
    torch.save(checkpoint(state), made / "weights.pt")
    out = imported(made)
    with pytest.raises(EmsError, match=r"another vocabulary; make shards .*vocabulary\.model"):
        validated(out, [shards])
    shards = make_shards(made, out)
    (out / "heads.safetensors").unlink()
    command = ["validate", "--model", str(out), "--shards", str(shards)]
    assert main(command) == 1
    assert "heads.safetensors: does not fit its settings" in capfd.readouterr().err
    imported(made)
    assert main(command) == 0
    assert json.loads(capfd.readouterr().out).keys() >= {"xtr", "contrastive", "total", "p1"}


# --- refusals


HEAD = "module.model."
ATTENTION = "encoder.layer.0.attention.self_attention.key"
POSITIONS = "embedding.position_embedding.position_embeddings.weight"
WORDS = "embedding.word_embedding.embedding.weight"
REFUSED = [  # key, its value (None: it is missing), words of the error
    ("pooler.dense.weight", torch.zeros(2), f"unknown weights, {BERT}pooler.dense.weight"),
    ("encoder.layer.1.output.dense.bias", None, "missing weights, layers.1.outer.bias"),
    (f"{ATTENTION}.weight", None, "missing weights, key of layers.0.attention"),
    (POSITIONS, None, "missing weights, positions.weight"),
    ("embedding.layer_norm.weight", None, "missing weights, input_norm.weight"),
    ("encoder.layer.1.output.dense.weight", torch.zeros(12, 21), "layers.1.outer.weight has"),
    (f"{ATTENTION}.bias", torch.zeros(13), "parts of unlike"),
    ("embedding.layer_norm.bias", torch.zeros(11), "input_norm.bias has the shape [11]"),
    (WORDS, torch.zeros(60), "tokens.weight has the shape [60]"),
    ("embedding.layer_norm.bias", torch.full((12,), math.nan), "has a value that is not finite"),
    ("module.alignproj.0.bias", None, "missing weights, heads.contrastive.inner.bias"),
    ("module.alignproj.1.bias", torch.zeros(2), "unknown weights, module.alignproj.1.bias"),
    (f"{HEAD}decoder.decoder.bias", torch.zeros(2), "unknown weights, heads.generative.output.b"),
    (f"{HEAD}transform.dense.bias", torch.zeros(2), "generative.mix.bias has the shape [2]"),
    (f"{HEAD}la_tag_linear.embedding.weight", torch.zeros(3), "has the shape [3], expected two"),
    (f"{HEAD}la_tag_linear.embedding.weight", torch.zeros(3, 8), "generative.languages.weight has"),
]


@pytest.mark.parametrize(("key", "value", "words"), REFUSED, ids=[row[2] for row in REFUSED])
def test_a_weight_that_is_not_the_authors_is_named(made, key, value, words):
    state = state_of(made)
    name = key if key.startswith("module.") else f"{BERT}{key}"
    state.pop(name, None)
    state |= {} if value is None else {name: value}
    torch.save(checkpoint(state), made / "weights.pt")
    assert words in refusal(made)


def test_a_vocabulary_of_another_size_or_layout_is_refused(made):
    write_vocabulary(made / "spm.model", size=40)
    assert "but" in refusal(made)
    assert "embeddings of" in refusal(made)
    write_vocabulary(made / "spm.model", symbols=("<2en>", "<2de>", "<MASK>", "<2zh>", "<2ja>"))
    assert "expected the pieces <pad>, <unk>, <mask> first" in refusal(made)
    write_vocabulary(made / "spm.model", symbols=("<MASK>", "<x1>", "<x2>", "<x3>", "<x4>"))
    assert "expected language tokens like <2en>" in refusal(made)
    (made / "spm.model").write_bytes(b"none")
    assert "not a SentencePiece model" in refusal(made)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a zip", b"text"])
def test_a_file_that_is_no_checkpoint_is_refused(made, content):
    (made / "weights.pt").write_bytes(content)
    assert "weights.pt: not a checkpoint" in refusal(made)
    for value in ([1, 2], {"state": {}}, {"state_dict": {"a": 1}}):
        torch.save(value, made / "weights.pt")
        assert "`state_dict`" in refusal(made)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_a_checkpoint_that_holds_code_is_refused_and_nothing_of_it_runs(made, monkeypatch):
    monkeypatch.chdir(made)
    torch.save({"state_dict": {}, "best_loss": Evil()}, made / "weights.pt")
    assert "not a checkpoint of tensors and numbers only" in refusal(made)
    assert not Path("evil").exists()


def test_the_command_imports_and_tells_a_missing_file_in_one_line(made, capfd, monkeypatch):
    monkeypatch.chdir(made)
    arguments = ["import-released", "--spm", "spm.model", "--out", "released", "--heads", "3"]
    assert main([*arguments, "--weights", "weights.pt"]) == 0
    assert "2 layers, width 12, 3 heads" in capfd.readouterr().err
    assert main([*arguments, "--weights", "nope.pt"]) == 1
    assert "nope.pt: no such file; https://github.com/Mao-KU/EMS" in capfd.readouterr().err
