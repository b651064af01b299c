"""Laws of mistakes in an experiment: one line with the key, what is there and what is allowed."""

import pytest
import yaml
from made.experiments import DIVIDED, GONE, MINIMAL, REAL, Settings, changed, edited

NARROWED = REAL | {
    "vocabularies": {"de": {"languages": ["en", "de"]}},
    "systems": {
        "some": {"languages": ["en", "ja"]},
        "one": {"vocabulary": "de", "train": {"steps": 3}},
        "pair": {"each": ["de"]},
    },
}
SWEEP = {"base": "ems", "axes": {"model.layers": [2, 6]}, "train": {"steps": 7}}
SWEPT = MINIMAL | {"sweep": SWEEP}
SWEPT |= {"validation": {"name": "Toy", "version": "dev", "source": "nowhere"}}
MINED = changed(MINIMAL, {"sources": {"paracrawl": "embedded"}})
# the key, what is there in its place, and what the line says: all between `...`, in this order
OF_REAL = [
    # a typo: the key, the right one, the allowed ones
    ("sed", 1, "sed: unknown key (did you mean seed?) ... benchmarks, clean, corpora"),
    ("corpora.0.max_pair", 3, "corpora.0.max_pair ... (did you mean max_pairs?) ... name"),
    ("evalsets.flores", {}, "evalsets.flores: unknown key ... allowed here: bucc2018, cls"),
    ("sources.opsu", "x", "sources.opsu: unknown key (did you mean opus?) ... ntrex, opus"),
    ("systems.b.modle", {}, "systems.b.modle: unknown key (did you mean model?) ... kind"),
    ("systems.b.model.layer", 2, "systems.b.model.layer ... (did you mean layers?) ... heads"),
    ("systems.b.objectives", {"xtr": {"weigth": 0}}, "objectives.xtr.weigth ... mean weight?"),
    # a missing key
    ("seed", GONE, "seed: this key is missing"),
    ("validation.name", GONE, "validation.name: this key is missing"),
    ("train.steps", GONE, "train.steps: this key is missing"),
    # a wrong type
    ("seed", "1", "seed: found '1', expected integer"),
    ("seed", 1.0, "seed: found 1.0, expected integer"),
    ("seed", True, "seed: found True, expected integer"),
    ("train.learning_rate", "3e-4x", "train.learning_rate: found '3e-4x', expected number"),
    ("languages", "en", "languages: found 'en', expected array"),
    ("languages.1", False, "languages.1: found False, expected string or object"),  # YAML's no
    ("corpora.0", "Tatoeba", "corpora.0: found 'Tatoeba', expected object"),
    ("validation", "NTREX", "validation: found 'NTREX', expected object or array or null"),
    ("systems.b", None, "systems.b: found None, expected object"),
    # a value that is not allowed
    ("train.schedule", "cosin", "train.schedule: found 'cosin' ... constant, linear, cosine"),
    ("decontaminate.key", "fold", "decontaminate.key: found 'fold' ... folded, plain"),
    ("systems.b.kind", "encode", "systems.b.kind: found 'encode' ... encoder, char-ngram"),
    ("tables.printed", ["EMSS"], "tables.printed.0: found 'EMSS' ... LaBSE-EMS-joint"),
    ("benchmarks", ["x"], "benchmarks.0: found 'x' ... allowed values: bucc2018, cls"),
    ("clean.identical", True, "clean.identical: found True; allowed values: keep, drop"),
    ("clean.language", {"threshold": 2}, "clean.language.threshold: 2 ... maximum of 1"),
    ("clean.language", {"corpora": ["A"]}, "clean.language.corpora: A has no entry under corpora"),
    ("clean.similarity", {}, "clean.similarity.model: this key is missing"),
    ("clean.similarity", {"model": "results/mine/models/a"}, "similarity.model ... of another"),
    ("clean.commands", [{"filter": "x", "parameters": {"A": []}}], "parameters.A: found []"),
    ("clean.commands", [{"filter": "x", "corpora": ["A"]}], "clean.commands.0.corpora: A has no"),
    ("vocabulary.size", 70_000, "vocabulary.size: 70000 ... maximum of 65535"),
    ("train.batch_pairs", 1, "train.batch_pairs: 1 ... minimum of 2"),
    ("train.corpus_share", 0, "train.corpus_share: 0"),
    ("train.corpus_share", 1.5, "train.corpus_share: 1.5 ... maximum of 1"),
    ("systems", {}, "systems: {} ... non-empty"),
    ("tables.ablation", ["a"], "tables.ablation: ['a'] ... too short"),
    ("tables.systems", ["a", "c"], "tables.systems: c has no entry under systems"),
    ("tables.ablation", ["a", "c"], "tables.ablation: c has no entry under systems"),
    # unknown languages, corpora, versions, segmenters
    ("languages", ["en", "xx"], "languages: unknown language 'xx' ... allowed: af, ar, bg ... zh"),
    ("languages", ["en", "de", "de"], "languages: de is named twice"),
    ("languages", ["en", "de", {"code": "und"}], "languages: und stands for all ... rename it"),
    ("languages", ["en", {"code": "xq"}], "evalsets.tatoeba.languages: none of the languages is"),
    ("corpora.0.languages", ["fr"], "corpora.0.languages: unknown language 'fr' ... en, de, ja"),
    ("corpora.0.languages", ["en"], "corpora.0.languages: found only en"),
    ("corpora.0.languages", ["de", "de"], "corpora.0.languages ... non-unique"),
    ("corpora.0.without", ["xx"], "corpora.0.without: unknown language 'xx' ... af, ar, bg"),
    ("corpora.0.without", ["de", "ja"], "corpora.0.without: no language is left without de, ja"),
    ("evalsets.tatoeba.without", ["de", "ja"], "evalsets.tatoeba.without: no language is left"),
    ("evalsets.tatoeba.languages", ["fr"], "evalsets.tatoeba.languages ... 'fr' ... de, ja"),
    ("evalsets.tatoeba.languages", [], "evalsets.tatoeba.languages: none of the languages"),
    ("segmenters.xx", "none", "segmenters: unknown language 'xx' ... af, ar, bg"),
    ("segmenters.ja", "juman", "segmenters.ja: found 'juman' ... jieba, jumanpp ... moses"),
    ("corpora.0.name", "Tatoba", "corpora.0.name: unknown corpus ... did you mean Tatoeba"),
    ("corpora.0.version", "v1", "corpora.0.version: unknown version 'v1' ... v2021-08-07"),
    ("validation", [], "validation: [] should be non-empty"),
    (
        "validation",
        [REAL["validation"], {"name": "Own", "version": "v", "part": "x"}],
        "validation.1.part",
    ),
    ("corpora.0.vocabularies", ["one"], "corpora.0.vocabularies: one has no entry under vocab"),
    ("validation", REAL["corpora"][0], "Tatoeba/v2021-08-07 is listed twice"),
    # values that do not fit each other
    ("model.width", 33, "systems.a: model.width 33 is not a multiple of model.heads 2"),
    ("systems.b.model.heads", 5, "systems.b: model.width 32 is not a multiple of model.heads 5"),
    (
        "systems.b.model",
        {"table": 8, "pooling": "mean-max"},
        "systems.b: model.pooling: a table needs mean pooling; set mean",
    ),
    ("systems.b.model.ngrams", 9, "systems.b: model.table: this key is missing ... like 512"),
]
OF_SYSTEM_B = {  # its settings -> what the line says
    "objectives: {xtr: {weight: 0}, contrastive: {weight: 0}}": "every objective has weight 0",
    "objectives: {mlm: {weight: 1}, ugt: {weight: 1}}": "mlm masks 15 % of the tokens, ugt one per "
    "sentence pair ... choose one",
    "{objectives: {mlm: {weight: 1}}, train: {input_mask: one}}": "mlm masks 15 % ... "
    "train.input_mask: one",
    "objectives: {matryoshka: {weight: 1}}": "objectives.matryoshka.dimensions: this list is empty",
    "objectives: {matryoshka: {weight: 1, dimensions: [16, 33]}}": "objectives.matryoshka."
    "dimensions: 33 is more than the width of the embedding, 32",
    "{model: {table: 8}, objectives: {mlm: {weight: 1}}}": "mlm predicts from the states of "
    "tokens, which model.table leaves out",
    "{model: {table: 8, layers: 0}, objectives: {head: {output: shared}}}": "objectives.head."
    "output: shared uses the embeddings of the layers' input, but a table alone has none; set own",
    "objectives: {contrastive: {negatives: 10}}": "objectives.contrastive.negatives: groups of 10 "
    "pairs do not divide train.batch_pairs, 152",
}
OF_PARTS = [
    ("splits.NTREX.parts.test", 0.3, "splits.NTREX.parts: the shares add up to 0.9 ... to 1"),
    ("splits.NTREX.parts.test", 0.5, "splits.NTREX.parts: the shares add up to 1.1 ... to 1"),
    ("splits.NTREX.parts.test", 0, "splits.NTREX.parts.test: 0"),
    ("splits.NTREX.parts", {"all": 1}, "splits.NTREX.parts"),
    ("splits.NTREX.documents", GONE, "splits.NTREX.documents: this key is missing"),
    ("splits", {}, "corpora.1.part: train, but splits does not say how NTREX is divided"),
    ("corpora.0.part", "train", "corpora.0.part: train, but splits ... how Tatoeba is divided"),
    ("corpora.1.part", "x", "corpora.1.part: found 'x'; allowed values: train, validation, test"),
    ("corpora.1.part", GONE, "corpora.1.part: this key is missing; NTREX is divided"),
    ("validation.part", "x", "validation.part: found 'x' ... splits.NTREX.parts"),
    ("validation.part", "train", "NTREX+train/v1 is listed twice (validation counts too)"),
    ("evalsets.ntrex.part", "x", "evalsets.ntrex.part: found 'x' ... train, validation, test"),
    ("evalsets.ntrex.part", GONE, "evalsets.ntrex.part: this key is missing; NTREX is divided"),
    ("evalsets.tatoeba.part", "test", "evalsets.tatoeba.part"),
    ("corpora.1.source", "elsewhere", "the parts of NTREX must have the same source"),
    ("corpora.1.part", "test", "evalsets.ntrex.part: NTREX+test is one of the corpora too"),
    ("corpora.0.fallback", True, "corpora.0.fallback: every pair of Tatoeba is in another"),
    # languages of a benchmark
    ("evalsets.tatoeba.languages", "al", "evalsets.tatoeba.languages ... 'al' ... experiment, all"),
    ("evalsets.tatoeba.languages", ["it", "fr"], "found 'it', 'fr', not trained on ... de, ja"),
    ("evalsets.tatoeba.languages", ["de", "xx"], "unknown language 'xx'; allowed: "),
    ("evalsets.sib200.languages", ["de", "it"], "unknown language 'it'; allowed: en, de, ja"),
    ("evalsets.ntrex.languages", ["en"], "evalsets.ntrex.languages ... 'en' ... de, ja"),
    ("evalsets.sib200.without", ["xx"], "evalsets.sib200.without: unknown language 'xx'"),
    (
        "evalsets.ntrex",
        {"version": "v1", "part": "test", "without": ["de", "ja"]},
        "evalsets.ntrex.without: no language is left without de, ja; remove one of them",
    ),
    ("evalsets.ntrex", GONE, "benchmarks: ntrex has no entry under evalsets"),
    ("evalsets.sib200", GONE, "decontaminate.against: sib200 has no entry under evalsets"),
]
OF_NARROWED = [
    ("systems.one.vocabulary", "fr", "systems.one.vocabulary: fr has no entry ... shared, de"),
    ("systems.pair.each", ["de", "fr"], "systems.pair.each: fr has no entry ... de"),
    ("systems.pair.each", [], "systems.pair.each: []"),
    ("systems.pair.each", {"de": {"layers": 1}}, "systems.pair.each"),
    ("systems.pair.vocabulary", "de", "systems.pair: `each` lists ... remove `vocabulary`"),
    ("systems.pair-de", {}, "systems.pair.each: makes pair-de ... another system's name"),
    ("systems.some.languages", ["en", "fr"], "systems.some.languages: found 'fr' ... en, de, ja"),
    ("systems.one.languages", ["en", "ja"], "systems.one.languages: found 'ja' ... are en, de"),
    ("systems.some.languages", ["de", "ja"], "systems.some: no corpus has a pair of its languages"),
    ("systems.some.languages", ["en"], "systems.some.languages ... too short"),
    ("vocabularies.de.languages", ["en", "xx"], "vocabularies.de.languages: found 'xx'"),
    ("vocabularies.de.languages", GONE, "vocabularies.de.languages: this key is missing"),
    ("vocabularies.de.siz", 1, "vocabularies.de.siz: unknown key (did you mean size?)"),
    ("vocabularies.shared", {"languages": ["en", "de"]}, "vocabularies.shared ... rename it"),
    ("corpora.0.languages", ["de"], "systems.some: no corpus has a pair ... en, ja"),
    ("evalsets.tatoeba.languages", ["ja"], "systems.one: tatoeba has none ... en, de"),
    ("tables.systems", ["fr"], "tables.systems: fr has no entry"),
]
OF_SWEPT = [
    ("sweep.axes", {"model.layer": [2]}, "configs/mine.yaml: sweep.axes.model.layer: unknown"),
    ("sweep.axes", {"layers": [2]}, "sweep.axes.layers: unknown ... mean model.layers?"),
    ("sweep.axes", {"temperature": [1]}, "objectives.contrastive.temperature"),
    ("sweep.axes", {"model": [1]}, "sweep.axes.model: unknown setting"),
    ("sweep.axes", {"zzz": [1]}, "sweep.axes.zzz: unknown setting ... like model."),
    ("sweep.axes", {"model.layers": [6, "two"]}, "sweep.axes: model.layers: found 'two'"),
    ("sweep.axes", {"model.layers": [6, -1]}, "sweep.axes: model.layers: -1 is less"),
    ("sweep.axes", {"model.layers": [1, 2]}, "sweep.axes.model.layers: 6, the value of the"),
    ("sweep.axes", {"model.layers": []}, "sweep.axes.model.layers: []"),
    ("sweep.axes", {"model.heads": [16, 3]}, "systems.ems.heads-3: model.width 1024"),
    ("sweep.axes", {}, "sweep.axes"),
    ("sweep.base", "emz", "sweep.base: emz is not a trained system ... ems"),
    ("sweep.base", "ngram", "sweep.base: ngram is not a trained system"),
    ("sweep.axis", {}, "sweep.axis: unknown key (did you mean axes?)"),
    ("sweep.train", {"step": 1}, "sweep.train.step: unknown key (did you mean steps?)"),
    ("systems", {"ems": {}, "ems.layers-2": {}}, "model.layers ... 2 ... named ems.layers-2"),
    ("systems", {"ems": {}, "ems.chosen": {}}, "systems.ems.chosen: the sweep makes a system"),
    ("validation", None, "sweep: points are compared by validation loss"),
]
OF_MINED = {  # settings that cannot be meant together
    # no pair could pass
    "clean: {min_characters: 9, max_characters: 8}": "clean.min_characters: 9 ... 8",
    "clean: {min_words: 9, max_words: 8}": "clean.min_words: 9 ... 8",
    "clean: {min_characters: 9, max_bytes: 8}": "clean.min_characters: 9 ... max_bytes: 8",
    "clean: {min_words: 5, max_characters: 8}": "clean.min_words: 5 ... 8",
    "clean: {max_ratio: 0.5}": "clean.max_ratio: 0.5 ... at least 1",
    # the vocabulary has no room for text
    "vocabulary: {size: 262, byte_fallback: true}": "vocabulary.size: 262 ... 262",
    "vocabularies: {de: {languages: [en, de], byte_fallback: true, size: 200}}": "vocabularies.de."
    "size: 200 ... 261",
    # a rate of 0 for the rest of a training
    "train: {steps: 100, schedule: linear, schedule_steps: 99}": "systems.ems: "
    "train.schedule_steps: 99 ... 100",
    "systems: {ems: {train: {schedule: cosine, schedule_steps: 9}}}": "systems.ems: "
    "train.schedule_steps: 9 ... 10",
    # more queries than sentences
    "evalsets: {paracrawl: {version: v5, protocol: {queries: 61, candidates: 60}}}": "evalsets."
    "paracrawl.protocol.queries: cannot sample 61 of 60 candidates",
    "evalsets: {paracrawl: {version: v5, protocol: {candidates: 1999}}}": "evalsets.paracrawl."
    "protocol.queries: cannot sample 2,000 of 1,999 candidates",
}
ALLOWED = [
    "clean: {min_characters: 8, max_characters: 8}",
    "clean: {min_characters: 9, max_characters: 0}",  # 0 is no limit
    "clean: {min_words: 5, max_characters: 9}",
    "clean: {max_ratio: 1}",
    "clean: {max_ratio: 0}",
    "vocabulary: {size: 263, byte_fallback: true}",
    "train: {steps: 100, schedule: linear, schedule_steps: 100}",
    "train: {steps: 100, schedule: constant, schedule_steps: 9}",  # of other systems
    "train: {steps: 0, schedule: linear, schedule_steps: 9}",
    "train: {steps: 10, warmup_steps: 99, validate_every: 99, checkpoint_every: 99}",
    "evalsets: {paracrawl: {version: v5, protocol: {queries: 60, candidates: 60}}}",
]
CASES = [
    *((REAL, *case) for case in OF_REAL),
    *(
        (REAL, "systems.b", yaml.safe_load(text), f"systems.b: {line}")
        for text, line in OF_SYSTEM_B.items()
    ),
    *((DIVIDED, *case) for case in OF_PARTS),
    *((NARROWED, *case) for case in OF_NARROWED),
    *((SWEPT, *case) for case in OF_SWEPT),
]


def check(message, line):
    """Check that the parts of a line stand in the message in their order."""
    at = 0
    for words in line.split(" ... "):
        assert words in message[at:], message
        at = message.index(words, at) + len(words)


@pytest.mark.parametrize(("base", "path", "new", "line"), CASES, ids=[case[1] for case in CASES])
def test_a_mistake_is_one_line_with_the_key_and_what_is_allowed(tmp_path, base, path, new, line):
    check(Settings(tmp_path).error(edited(base, path, new)), line)


@pytest.mark.parametrize(("text", "line"), OF_MINED.items())
def test_what_cannot_be_meant_together_is_one_line(tmp_path, text, line):
    check(Settings(tmp_path).error(changed(MINED, yaml.safe_load(text))), line)


@pytest.mark.parametrize("text", ALLOWED)
def test_what_can_be_meant_together_is_allowed(tmp_path, text):
    assert Settings(tmp_path).load(changed(MINED, yaml.safe_load(text))).name == "mine"


@pytest.mark.parametrize("base", [REAL, DIVIDED, NARROWED, SWEPT, MINED])
def test_without_the_mistake_the_experiment_is_fine(tmp_path, base):
    assert Settings(tmp_path).load(base).name == "mine"
