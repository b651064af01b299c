"""Encoders for the tests: a model folder of ours, what an export of it holds, a folder of
sentence-transformers, a command."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ems.base.files import NGRAMS, sha256_file
from ems.commands.cli import main
from ems.config.model import EncoderSettings
from ems.config.text import VocabularySettings
from ems.export import verify
from ems.export.folder import Exported
from ems.export.folder import write_model as write_folder
from ems.model.char_ngrams import PLACES
from ems.model.encoder import Encoder
from ems.text.segmenters.base import segmenter as make_segmenter
from ems.text.subwords import load_vocabulary, train_vocabulary
from ems.train.job import letters_of

SIZES = {"layers": 1, "width": 16, "heads": 2, "feed_forward": 24, "dropout": 0.1}
SIZES |= {"attention_dropout": 0.1, "max_tokens": 12}

COMMAND = """
import sys, numpy as np
lines, language, out = sys.argv[1:]
rows = open(lines, encoding="utf-8", newline="\\n").read().split("\\n")[:-1]
letters = [[row.count(letter) + 0.1 for letter in "abcdefghijklmnop"] for row in rows]
np.save(open(out, "wb"), np.array(letters, np.float32).reshape(len(rows), 16))
"""


def write_model(folder, languages, text, pieces=80, seed=0, segmenter="none", sizes=(), **of):
    """A model folder of random weights, for these languages; the pieces come from the `text`.

    `sizes` are changes of SIZES, `of` settings of the vocabulary.
    """
    folder.mkdir(parents=True)
    sample = folder / "sample.txt"
    words = make_segmenter(segmenter, "en")(list(text))
    sample.write_text("".join(f"{line.lower()}\n" for line in words), encoding="utf-8")
    wanted = VocabularySettings.model_construct(**{"size": pieces, "character_coverage": 1.0, **of})
    sizes = SIZES | dict(sizes)
    settings = SimpleNamespace(vocabulary=wanted, languages=languages)
    size = train_vocabulary(settings, sample, folder / "vocabulary.model")
    sample.unlink()
    torch.manual_seed(seed)
    encoder = Encoder(EncoderSettings(**sizes), size)
    with torch.no_grad():
        vectors = encoder.tokens if encoder.settings.attends else encoder.table.pieces
        vectors.weight.mul_(30)  # so that sentences differ clearly
    if encoder.settings.ngrams:
        encoder.table.ngrams.table.weight.data.mul_(30)
        encoder.table.ngrams.letters.copy_(letters_of(load_vocabulary(folder / "vocabulary.model")))
    save_file(encoder.state_dict(), folder / "model.safetensors")
    names = ("model.safetensors", "vocabulary.model")
    description = {
        "model": sizes,
        "languages": list(languages),
        "segmenters": dict.fromkeys(("und", *languages), segmenter),
        "sha256": {name: sha256_file(folder / name) for name in names},
    }
    (folder / "model.json").write_text(json.dumps(description))
    return folder


def write_ngrams(folder):
    """The folder of a system of n-grams, whose n-grams all have the same weight."""
    folder.mkdir()
    save_file({"weights": torch.ones(PLACES)}, folder / NGRAMS)
    about = {"kind": "char-ngram", "languages": ["de", "en"], "ngrams": {"buckets": 64}}
    about["sha256"] = {NGRAMS: sha256_file(folder / NGRAMS)}
    (folder / "model.json").write_text(json.dumps(about))
    return folder


def write_export(folder, model):
    """What `ems export` writes, without its card and its verification."""
    folder.mkdir()
    write_folder(Exported(model, "none"), folder)
    mend_sums(folder)
    return folder


def mend_sums(folder):
    """Update the checksums in a model folder or an index folder to match its files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    sums = {str(path.relative_to(folder)): sha256_file(path) for path in files}
    if {"ems.json", "SHA256SUMS"} & sums.keys():
        rows = (f"{sha256}  {name}\n" for name, sha256 in sums.items() if name != "SHA256SUMS")
        (folder / "SHA256SUMS").write_text("".join(rows))
    for path in {folder / "index.json", folder / "model.json"} & {*files}:
        value = json.loads(path.read_text())
        own = {name: sums[name] for name in value.get("sha256", ()) if name in sums}
        value |= {"sha256": own} if path.name == "model.json" else {"vectors": sums["vectors.npy"]}
        path.write_text(json.dumps(value))


def change_tensors(path, changes):
    """Change tensors: to a number, to zeros of a shape (a list), to another type, or GONE."""
    tensors = load_file(path)
    for name, change in changes.items():
        own = tensors.pop(name, torch.zeros(1))
        if isinstance(change, list):
            tensors[name] = torch.zeros(change)
        elif change != "GONE":
            typed = isinstance(change, str)
            tensors[name] = (
                own.to(getattr(torch, change)) if typed else torch.full(own.shape, float(change))
            )
    save_file(tensors, path)


def write_segmented(folder, model):
    folder.mkdir()
    for name in ("model.safetensors", "vocabulary.model"):
        (folder / name).symlink_to(model / name)
    describe = (model / "model.json").read_text()
    (folder / "model.json").write_text(describe.replace('"de": "none"', '"de": "sacremoses"'))
    return folder


def write_peer(folder, words, width=16):
    """A sentence-transformers folder: a small BERT of random weights that knows these words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    known = ["<pad>", "<unk>", *sorted(set(words))]
    vocabulary = {word: at for at, word in enumerate(known)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    bert = str(folder.with_name(f"{folder.name}-bert"))
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "model_max_length": 32}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(bert)
    torch.manual_seed(1)
    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "max_position_embeddings": 32, "initializer_range": 0.5}
    config = BertConfig(vocab_size=len(known), **sizes)
    BertModel(config, add_pooling_layer=False).save_pretrained(bert)
    body = Transformer(bert, model_kwargs={"add_pooling_layer": False})
    SentenceTransformer(modules=[body, Pooling(width)], device="cpu").save(str(folder))
    return folder


def write_command(folder, source=COMMAND):
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "encode.py"
    script.write_text(source)
    return f"{sys.executable} {script} {{lines}} {{language}} {{out}}"


def figures_here(folder, expected):
    with np.load(io.BytesIO(expected)) as arrays:
        return verify.figures(folder, arrays)


def export(model, out, *flags, expect=0, here=True):
    """Export to `out`, which is returned.

    `here` verifies in this process, since another one takes seconds to import.
    """
    words = ["export", "--model", str(model), "--out", str(out), *map(str, flags)]
    with pytest.MonkeyPatch.context() as patch:
        if here:
            patch.setattr(verify, "_in_another_process", figures_here)
        assert main(words) == expect
    return out
