"""Laws of what travels with a model: a raw line becomes the very tokens that training saw."""

import json
import zipfile
from dataclasses import replace
from types import SimpleNamespace

from conftest import ROOT
from safetensors.torch import save_file

from ems.base.files import sha256_file
from ems.config.experiment import Corpus
from ems.config.load import load_experiment, load_site
from ems.config.model import EncoderSettings
from ems.config.text import CleanSettings, VocabularySettings
from ems.model.encode import SentenceEncoder
from ems.model.encoder import Encoder
from ems.shards.index import shards_in
from ems.shards.shard import Shard
from ems.shards.writer import write_shards
from ems.text.bulk import segment_tsv
from ems.text.clean import CleanSource, clean_corpus
from ems.text.evalkeys import write_keys
from ems.text.subwords import train_vocabulary, write_sample

SIZES = {"layers": 0, "width": 8, "heads": 1, "feed_forward": 8, "dropout": 0}
SIZES |= {"attention_dropout": 0, "max_tokens": 50}
SEGMENTERS = {"en": "sacremoses", "zh": "jieba"}
ENGLISH = [
    "It's co\u00adoperation\u200b, isn't it?",
    "\u202aMr. Smith\u202c  PAID\t3.14 (cafe\u0301,\u2028so).",
    "x",
]
CHINESE = ["我们\u200b今天去北京大学", "他昨天在图书馆\u00ad看书。", "天气很好"]


def world(folder, format_characters):
    """Raw lines -> clean -> segmented -> a shard, and a model folder as training writes it."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        for code, lines in (("en", ENGLISH), ("zh", CHINESE)):
            archive.writestr(f"C.en-zh.{code}", "".join(f"{line}\n" for line in lines * 9))
    site = load_site(ROOT / "config.yaml")
    tiny = load_experiment("tiny", site, ROOT / "configs")
    corpus = Corpus("C", "v1", "somewhere", True, ("en-zh",), None)
    clean = CleanSettings(format_characters=format_characters)
    settings = VocabularySettings(size=110, character_coverage=1.0, sample_lines=100)
    languages = {code: tiny.languages[code] for code in SEGMENTERS}
    changes = {"clean": clean, "vocabulary": settings, "languages": languages}
    experiment = replace(tiny, corpora=(corpus,), validation=(), **changes)
    write_keys({}, folder / "keys.tsv")
    source = CleanSource("C", "v1", "en-zh", (folder / "x.zip",))
    clean_corpus(experiment, source, folder / "keys.tsv", folder / "clean" / "en-zh.tsv")
    words = folder / "words" / "en-zh.tsv"
    segment_tsv(folder / "clean" / "en-zh.tsv", words, ("en", "zh"), tuple(SEGMENTERS.values()))
    write_sample(experiment, [words], folder / "sample.txt")
    pieces = train_vocabulary(experiment, folder / "sample.txt", folder / "vocabulary.model")
    write_shards(words, folder / "vocabulary.model", folder / "shard")
    save_file(Encoder(EncoderSettings(**SIZES), pieces).state_dict(), folder / "model.safetensors")
    names = ("model.safetensors", "vocabulary.model")
    description = {"model": SIZES, "segmenters": SEGMENTERS, "format_characters": format_characters}
    description |= {"sha256": {name: sha256_file(folder / name) for name in names}}
    (folder / "model.json").write_text(json.dumps(description))
    (shard,) = shards_in(folder / "shard")
    return SimpleNamespace(encoder=SentenceEncoder(folder), shard=Shard(shard))


def test_a_raw_line_becomes_the_ids_that_are_in_the_shard(tmp_path):
    tokens = {}
    for kept in ("keep", "drop"):
        made = world(tmp_path / kept, kept)
        for side, (code, lines) in enumerate((("en", ENGLISH), ("zh", CHINESE))):
            for row, ids in enumerate(made.encoder.tokenise(lines, code)):
                assert ids.tolist() == made.shard.piece(side, row).tolist()
        assert made.shard.pairs == 27
        plain, odd = made.encoder.tokenise(["cooperation it", "co\u00adoper\u200bation it"], "en")
        tokens[kept] = plain.tolist() == odd.tolist()
    assert tokens == {"keep": False, "drop": True}  # format characters
