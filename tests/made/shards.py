"""A vocabulary, pair files and shards of made-up sentences, and plain loops that read shards."""

import json
from itertools import chain

import numpy as np
from made.corpora import write_lines
from made.text import of_languages

from ems.text.subwords import train_vocabulary

LANGUAGES = ["en", "de", "ja"]
WORDS = {
    "en": ["the", "cat", "sees", "some", "small", "birds", "over", "there", "today", "again"],
    "de": ["die", "katze", "sieht", "heute", "wieder", "kleine", "vögel", "dort", "drüben", "gern"],
    "ja": ["猫", "は", "今日", "も", "小さな", "鳥", "を", "あそこ", "で", "見る"],
}


def sentence(draw, code):
    return " ".join(draw.choices(WORDS[code], k=draw.randint(1, 14)))


def write_pairs(path, count, draw):
    """A segmented pair file `<a>-<b>.tsv`: the line of origin of pair i is 3 i + 2."""
    first, second = path.stem.split("-")
    rows = ((sentence(draw, first), sentence(draw, second), 3 * at + 2) for at in range(count))
    return write_lines(path, (f"{a}\t{b}\t{line}" for a, b, line in rows))


def vocabulary(path, size, lines=None):
    """A model of this many pieces, learnt from some lines or from WORDS."""
    experiment = of_languages(*LANGUAGES, vocabulary={"size": size, "character_coverage": 1.0})
    sample = write_lines(path.with_suffix(".txt"), lines or [*chain(*WORDS.values())] * 3)
    train_vocabulary(experiment, sample, path)
    return path


def write_numbers(path, values):
    np.asarray(values).astype("<u2" if path.suffix == ".ids" else "<i8").tofile(path)


def write_shard(folder, ids, lengths, codes=("de", "en"), sha256="same", documents=None):
    """A shard in the format on disk, both sides alike: sentences of these lengths.

    `documents`: of a shard of one language, the number of sentences of each.
    """
    folder.mkdir(parents=True)
    for code in codes:
        write_numbers(folder / f"{code}.ids", ids)
        write_numbers(folder / f"{code}.offsets", np.cumsum([0, *lengths]))
    write_numbers(folder / "lines", np.arange(1, len(lengths) + 1))
    manifest = {"languages": list(codes), "pairs": len(lengths), "sha256": {}}
    manifest |= {"tokens": dict.fromkeys(codes, sum(lengths)), "vocabulary_sha256": sha256}
    if documents:
        write_numbers(folder / "documents", np.cumsum([0, *documents]))
        manifest["documents"] = len(documents)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def sentences(shard, code):
    """Token ids of every sentence of one side, by plain loops over the files."""
    ids = np.fromfile(shard / f"{code}.ids", "<u2").tolist()
    offsets = np.fromfile(shard / f"{code}.offsets", "<i8").tolist()
    return [ids[offsets[at] : offsets[at + 1]] for at in range(len(offsets) - 1)]


def unpacked(batch):
    """(language, tokens) of each first and each second side, in the order of the pairs."""
    sides, at = {}, 0
    for row, length in zip(batch.rows.tolist(), batch.lengths.tolist(), strict=True):
        sides[row] = (int(batch.languages[row]), tuple(batch.tokens[at : at + length].tolist()))
        at += length
    assert at == len(batch.tokens)
    return [(sides[row], sides[batch.pairs + row]) for row in range(batch.pairs)]


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def in_order(store, batch_pairs):
    """Every pair of a store once, in batches, language pair by language pair."""
    return (store.assemble(*places) for places in store.places_in_order(batch_pairs))
