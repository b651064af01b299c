"""The demo: its bytes, its corpus, mirror and evaluation sets, and the results of `make all`."""

import hashlib
import json
import re
import zipfile
from collections import Counter
from itertools import combinations

import pytest
from conftest import ROOT, needs
from made.bench import HashEncoder, scored
from made.experiments import shipped
from made.scores import means
from made.text import law

from ems.base.files import sha256_file
from ems.bench.scores import read_score_file
from ems.benchmarks.noisy.damages import DAMAGES
from ems.benchmarks.tatoeba.data import read_language
from ems.config.experiment import UNSEEN
from ems.config.languages import load_languages
from ems.config.plugins import benchmark, benchmarks, has_module, module, sets
from ems.corpora.demo.grammar import BENCHMARK_ONLY, LANGUAGES, OTHERS
from ems.corpora.demo.mirror import STAMP
from ems.corpora.demo.texts import LEAKED_PAIRS, build
from ems.corpora.evalsets.formats import parts
from ems.corpora.evalsets.sets import data_files, read_sides
from ems.corpora.moses import read_pairs
from ems.workflow.sources import missing_evalsets

# SHA-256 of all texts. If a word of the lexicon changes, so do all scores of the demo.
DIGEST = "c2e432457c67e019279b592e0bce4502574e54421d1731e122aac015f3fe662b"
RESULTS = ROOT / "results/demo"

pytestmark = pytest.mark.slow
root = pytest.fixture(scope="module", name="root")(lambda demo_mirror: demo_mirror)
material = pytest.fixture(scope="module", name="material")(build)


@pytest.fixture(scope="module")
def keys(root):
    """The keys of the pairs (English, other), by part and language."""

    def of_pairs(pairs):
        return [(law(first), law(second)) for first, second in pairs]

    parts = {"Demo": {}, "DemoDev": {}, "bench": {}}
    for language in OTHERS:
        pair = "-".join(sorted(("en", language)))
        for corpus in ("Demo", "DemoDev"):
            path = root / "opus" / corpus / "v1" / "moses" / f"{pair}.txt.zip"
            pairs = of_pairs(read_pairs(path, corpus, pair))
            turned = [(second, first) for first, second in pairs]
            parts[corpus][language] = pairs if pair.startswith("en-") else turned
        own, english = read_language(root / "tatoeba", load_languages()[language].tatoeba_v1)
        parts["bench"][language] = of_pairs(zip(english, own, strict=True))
    return parts


def sides(part):
    """All keys of a part."""
    return {key for pairs in part.values() for pair in pairs for key in pair}


@pytest.fixture(scope="module")
def trained(keys):
    """The keys of every sentence of training and validation."""
    return sides(keys["Demo"]) | sides(keys["DemoDev"])


def test_the_texts_never_change(root):
    total = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        if path.name in ("manifest.json", ".ems-demo"):
            continue
        total.update(path.relative_to(root).as_posix().encode())
        if path.suffix != ".zip":
            total.update(path.read_bytes())
            continue
        with zipfile.ZipFile(path) as archive:  # zlib's own versions pack differently
            for member in archive.infolist():
                assert member.date_time == STAMP
                total.update(member.filename.encode() + archive.read(member))
    assert total.hexdigest() == DIGEST


def test_the_leak_is_80_pairs_of_the_benchmark_and_20_of_each_side_alone(keys):
    found = sides(keys["bench"])
    for language in OTHERS:
        bench = set(keys["bench"][language])
        english, other = ({pair[side] for pair in bench} for side in (0, 1))
        leaked = [pair for pair in keys["Demo"][language] if not found.isdisjoint(pair)]
        kinds = Counter((pair[0] in english, pair[1] in other, pair in bench) for pair in leaked)
        assert kinds == {(True, True, True): 80, (True, False, False): 20, (False, True, False): 20}
        kept = [pair for pair in keys["Demo"][language] if found.isdisjoint(pair)]
        assert len(kept) >= 17_500
        assert all(len({pair[side] for pair in kept}) == len(kept) for side in (0, 1))


def test_validation_and_held_out_frames_are_disjoint_from_training(material, keys, trained, root):
    assert sides(keys["DemoDev"]).isdisjoint(sides(keys["Demo"]) | sides(keys["bench"]))
    kinds = Counter(s.template.heldout if s.template else None for s in material.benchmark)
    assert kinds == {True: 300, None: 40, False: 260}
    learnt = [s for listed in material.train.values() for s in listed] + material.dev
    assert not any(s.template.heldout for s in learnt if s.template)
    italian, _ = read_language(root / "tatoeba", "ita")  # of held-out ones alone, and nowhere else
    assert len(italian) == len({law(own) for own in italian}) == 180
    assert trained.isdisjoint(map(law, italian))


def test_the_manifest_counts_and_sums_every_file_and_is_written_last(root):
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    files = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    assert set(manifest["sha256"]) == files - {"manifest.json", ".ems-demo"}
    for path, digest in manifest["sha256"].items():
        assert sha256_file(root / path) == digest
    times = {name: (root / name).stat().st_mtime_ns for name in files}
    assert times["manifest.json"] == max(times.values())
    counts = {"train": 18_120, "leaked": LEAKED_PAIRS, "dev": 300, "benchmark": 600}
    assert manifest["counts"] == dict.fromkeys(OTHERS, counts) | {
        "it": {"train": 0, "leaked": 0, "dev": 0, "benchmark": 180}
    }


# --- the results of `make all`
@pytest.mark.parametrize(
    ("system", "least", "most"), [("ems", 80, 101), ("untrained", 0, 10), ("char-ngram", 0, 25)]
)
def test_only_the_trained_system_finds_most_translations(system, least, most):
    """P@1 of the languages trained on."""
    path = RESULTS / f"scores/{system}/tatoeba.json"
    needs(path.exists(), f"{path} is not there; run `make all` first")
    scores = read_score_file(path)
    seen = [value for code, value in means(scores).items() if scores.languages[code] != UNSEEN]
    assert len(seen) == len(scores.languages) - 1 == 7
    assert least <= sum(seen) / len(seen) < most


def test_exactly_the_leak_is_removed():
    path = RESULTS / "reports/decontamination.json"
    needs(path.exists(), f"{path} is not there; run `make all` first")
    for entry in json.loads(path.read_text())["corpora"]:
        planted = LEAKED_PAIRS if entry["role"] == "train" else 0
        removed = dict.fromkeys(("cap", "both_empty", "one_empty"), 0) | {"evaluation": planted}
        assert entry["removed"] == removed
        assert entry["kept"] == entry["read"] - planted
        assert entry["kept"] >= 15_000 or entry["role"] == "validation"


# --- evaluation sets
PLACES = {name: benchmark(name).demo or name for name in sets() if has_module(name, "demo")}
PLACES |= {"tatoeba": "tatoeba"}  # set -> its folder in the mirror
DRAWN = {name for name in sets() if benchmark(name).drawn}


@pytest.fixture(scope="module")
def experiment():
    return shipped("demo")


@pytest.fixture(scope="module")
def evaluated(root, experiment):
    """The keys of the evaluation sentences of each set."""
    return {
        name: {
            law(text)
            for code in evalset.languages
            for side in read_sides(experiment, name, root / PLACES[name], code)
            for text in side
        }
        for name, evalset in experiment.evalsets.items()
        if name not in DRAWN
    }


def test_sets_share_no_sentence_with_training_or_each_other_except_by_design(trained, evaluated):
    assert set(evaluated) == set(sets()) & set(PLACES) - DRAWN
    leaked = {name: keys & trained for name, keys in evaluated.items() if keys & trained}
    of_tatoeba = {"flores200", "wmt24pp", "alignment"}
    assert set(leaked) == {"tatoeba"} | of_tatoeba
    assert set().union(*map(leaked.get, of_tatoeba)) <= leaked["tatoeba"]
    both = combinations(sorted(evaluated), 2)
    shared = {pair for pair in both if evaluated[pair[0]] & evaluated[pair[1]]}
    assert shared == {
        *(("flores200", "tatoeba"), ("flores200", "wmt24pp"), ("tatoeba", "wmt24pp")),
        *(("alignment", "tatoeba"), ("mldoc", "rcv2")),
    }


def test_classifier_training_text_is_neither_trained_on_nor_scored(root, trained, evaluated):
    xnli, marc, counterfactual, paracrawl = (
        module(name, "data") for name in ("xnli", "marc", "counterfactual", "paracrawl")
    )
    pairs = xnli.read_train(root / "xnli")
    texts = [text for pair in pairs for text in (pair.premise, pair.hypothesis)]
    for code in ("de", "en", "es", "fr", "ja", "zh"):
        texts += parts(marc.read_split(root / "marc", code, "train"))
    for code in ("EN", "DE", "JP"):
        texts += parts(counterfactual.read_split(root / "counterfactual", code, "train"))
    for code in ("de", "fr", "es"):
        for pair in paracrawl.read_language(root / "paracrawl", code, "ParaCrawl"):
            texts += pair
    keys = set(map(law, texts))
    assert not keys & trained
    assert not any(keys & held_out for held_out in evaluated.values())


def test_every_set_of_the_demo_is_embedded_with_all_its_files(root, experiment):
    assert set(experiment.evalsets) == set(sets()) & set(PLACES)
    assert missing_evalsets(experiment) == []
    for name, evalset in experiment.evalsets.items():
        assert evalset.embedded == (name != "tatoeba")
        unseen = BENCHMARK_ONLY if name == "tatoeba" else ()
        assert set(evalset.languages.values()) - set(LANGUAGES) == set(unseen)
        files = data_files(experiment, name, root / PLACES[name])
        assert files
        assert all(path.exists() for path in files), name
    assert sum(path.stat().st_size for path in root.rglob("*.xml")) < 3_000_000  # news are small


def test_the_demo_has_every_benchmark_and_a_language_without_training_text(experiment):
    others = {"own", "noisy"}  # one needs pairs of a user's, the other takes 20 seconds
    assert set(experiment.benchmarks) == set(benchmarks()) - others
    assert experiment.spoken("tatoeba")["ita"] == UNSEEN
    assert all(experiment.scores_unseen("tatoeba", system) for system in experiment.systems)
    assert all("it" not in pair for corpus in experiment.corpora for pair in corpus.pairs)
    assert experiment.segmenters[UNSEEN] == experiment.segmenters["es"] == "sacremoses"
    full, without = shipped("demo-full"), {"alignment", "wmt24pp"}  # some systems lack German
    assert set(full.benchmarks) == set(experiment.benchmarks) - without
    assert full.evalsets == {k: v for k, v in experiment.evalsets.items() if k not in without}
    assert {*full.decontaminate.against} == {*experiment.decontaminate.against} - without
    assert full.probes == experiment.probes


def test_the_demo_has_lines_for_each_damage_of_noisy(root, tmp_path):
    languages = {"flores200": {"version": "demo-v1"}}
    changes = {"languages": list(LANGUAGES), "evalsets": languages, "benchmarks": ["noisy"]}
    scores = scored(tmp_path, "noisy", root / PLACES["flores200"], HashEncoder(), **changes)
    assert {row.split for row in scores.rows} >= set(DAMAGES) - {"English names"}
    assert {row.source for row in scores.rows} == set(scores.languages) - {"eng_Latn"}


def test_the_workflow_writes_the_mirror_and_fetches_only_tatoeba_from_it(fresh):
    keys = "results/demo/text/evalkeys.tsv"
    words = ("-n", "--printshellcmds", "--config", "experiment=demo", "--", keys, "data")
    output = fresh.snakemake(*words)
    assert output.count("rule demo_mirror:") == 1
    fetched = re.findall(r"ems fetch-evalset --evalset (\w+) --source=(\w+)", output)
    assert set(fetched) == {("tatoeba", "embedded")}
    for place in ("flores200=data/embedded/flores200", "mldoc=data/embedded/reuters"):
        assert place in output
    assert "ParaCrawl" not in output
    assert "NTREX" not in output
