"""Laws of divided corpora: whole documents, parts that share no line, the same in all languages."""

import hashlib
import itertools
import random
import re
from collections import Counter

import pytest
import yaml
from conftest import SHARED, needs
from made.corpora import DOCUMENTS, translations, write_divided, write_lines
from made.experiments import MINIMAL, Settings, edited, one_line

from ems.base.errors import EmsError
from ems.benchmarks.ntrex.data import read_language
from ems.config.corpus_entries import Split
from ems.config.stages import stage_hash
from ems.corpora.evalsets.sets import data_files
from ems.corpora.split import lines_of_part, part_of_line, read_document_names
from ems.text.clean import CleanSource, clean_corpus
from ems.text.evalkeys import eval_files, write_eval_keys, write_keys

PARTS = {"train": 0.5, "validation": 0.1, "test": 0.4}
CODES = ["de", "fr", "sw"]


def documents_of_sizes(sizes):
    """The document of each line, for documents of these sizes that lie one after the other."""
    return [f"paper.{at}" for at, size in enumerate(sizes) for _ in range(size)]


def made_up_documents(seed):
    draw = random.Random(seed)
    return documents_of_sizes([draw.randint(1, 30) for _ in range(draw.randint(20, 90))])


# --- which line is in which part


@pytest.mark.parametrize("parts", [PARTS, {"a": 0.98, "b": 0.02}, dict.fromkeys("abcdefgh", 0.125)])
@pytest.mark.parametrize("seed", range(3))
def test_parts_are_those_of_a_plain_loop_over_the_documents_in_the_order_of_hashes(seed, parts):
    """Whole documents, in whatever order the lines come, and close to the shares."""
    documents = made_up_documents(seed)
    names = sorted(parts)
    bounds = [(part, sum(parts[name] for name in names[: at + 1])) for at, part in enumerate(names)]
    expected, passed = {}, 0
    for name in sorted(set(documents), key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        size = documents.count(name)
        middle = (passed + size / 2) / len(documents)
        expected[name] = next(part for part, end in bounds if middle < end)
        passed += size
    turned = random.Random(2).sample(documents, len(documents))
    for lines in (documents, turned):
        assert part_of_line(lines, parts) == [expected[name] for name in lines]
    counts = Counter(part_of_line(documents, parts))
    for part, share in parts.items():
        assert abs(counts[part] - share * len(documents)) <= max(Counter(documents).values())
    assert set(expected.values()) == set(parts) or len(parts) == 2


DIVIDED = MINIMAL | yaml.safe_load(f"""
languages: [en, de, fr, sw]
splits: {{NTREX: {{documents: {DOCUMENTS}, parts: {{train: 0.5, validation: 0.1, test: 0.4}}}}}}
corpora: [{{name: NTREX, version: v1, part: train}}]
validation: {{name: NTREX, version: v1, part: validation}}
evalsets: {{ntrex: {{version: v1, part: test}}}}
decontaminate: {{against: [ntrex]}}
benchmarks: [ntrex]
""")


def test_lines_that_are_divided_otherwise_never_share_a_hash(tmp_path):
    """Also when only the order in which the file names the parts differs."""
    documents, settings, seen = made_up_documents(3), Settings(tmp_path, DIVIDED), {}
    for names in itertools.permutations(PARTS):
        parts = {name: PARTS[name] for name in names}
        experiment = settings.load(edited(DIVIDED, "splits.NTREX.parts", parts))
        divided = part_of_line(documents, experiment.splits["NTREX"].parts)
        job = {"label": "NTREX+train", "version": "v1", "pair": "de-en"}
        assert seen.setdefault(stage_hash(experiment, "clean", **job), divided) == divided


# --- the file of documents


@pytest.mark.parametrize("breaker", ["", "\u2028", "\x85", "\x0b", "\x1c"])
def test_only_a_line_feed_ends_the_name_of_a_document_and_spaces_around_it_go(tmp_path, breaker):
    path = tmp_path / DOCUMENTS
    path.write_bytes(f"b{breaker}bc.1\r\nbbc.1\nzürich 2 \nlast".encode())
    assert read_document_names(path) == [f"b{breaker}bc.1", "bbc.1", "zürich 2", "last"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found an empty line"),
        (b"a\n\nb\n", "found an empty line"),
        (b"a\n  \n", "found an empty line"),
        (b"a\n\xff\n", "not UTF-8 at byte 2"),
        (None, "no such file"),
    ],
)
def test_a_bad_file_of_documents_is_one_line_that_names_it(tmp_path, content, message):
    path = tmp_path / DOCUMENTS
    if content is not None:
        path.write_bytes(content)
    assert re.search(f"{path}: .*{message}", one_line(read_document_names, path))


# --- parts of a whole corpus


def numbered(count):
    """Translations of which each knows its line; no two are alike in any language."""
    items = translations(count, ["en", *CODES], seed=1)
    return [{code: f"{text} {at}" for code, text in item.items()} for at, item in enumerate(items)]


class Divided:
    """A made-up NTREX of 3 languages on disk, and what the stages make of its parts."""

    def __init__(self, root, items, documents, **changes):
        self.root = root
        self.experiment = Settings(root / "settings", DIVIDED | changes).load()
        self.folder = write_divided(root, "NTREX", "v1", items, documents)

    def keys(self):
        """The evaluation sentences of the experiment's sets."""
        out = self.root / "evalkeys.tsv"
        write_eval_keys("folded", eval_files(self.experiment, {"ntrex": self.folder}), out)
        return out

    def clean(self, part, code):
        """(pairs as (sentence, English), the report) of a language of a part of the corpus."""
        pair = "-".join(sorted(("en", code)))
        archive = self.folder / "moses" / f"{pair}.txt.zip"
        source = CleanSource(f"NTREX+{part}", "v1", pair, (archive,), self.folder / DOCUMENTS)
        out = self.root / part / f"{pair}.tsv"
        entry = clean_corpus(self.experiment, source, self.keys(), out)
        sides = [tuple(line.split("\t")[:2]) for line in out.read_text().splitlines()]
        return [side if pair.startswith(code) else side[::-1] for side in sides], entry

    def test_part(self, code):
        """The pairs of the part that is the benchmark."""
        split = self.experiment.splits["NTREX"]
        return list(zip(*read_language(self.folder, code, split, "test"), strict=True))


ITEMS = numbered(200)
PAPERS = documents_of_sizes([7] * 20 + [12] * 5)


def test_the_parts_share_no_line_and_together_they_are_the_corpus(tmp_path):
    corpus = Divided(tmp_path, ITEMS, PAPERS)
    document = {item["en"]: name for item, name in zip(ITEMS, PAPERS, strict=True)}
    for code in CODES:
        parts = [corpus.clean(part, code)[0] for part in ("train", "validation")]
        parts.append(corpus.test_part(code))
        own = [{document[english] for _, english in part} for part in parts]
        assert sum(map(len, own)) == len(set(PAPERS))  # whole documents
        together = [pair for part in parts for pair in part]
        assert all(len(part) >= 10 for part in parts)
        assert len(together) == len(set(together)) == 200
        assert set(together) == {(item[code], item["en"]) for item in ITEMS}


def test_a_part_has_the_same_lines_in_every_language_and_with_every_seed(tmp_path):
    corpora = [
        Divided(tmp_path / name, ITEMS, PAPERS, **changes)
        for name, changes in (
            ("one", {}),
            ("seed", {"seed": 9}),
            ("few", {"languages": ["en", "fr", "sw"]}),
        )
    ]
    for read in (lambda c, code: c.clean("train", code)[0], Divided.test_part):
        english = [
            [pair[1] for pair in read(corpus, code)] for corpus in corpora for code in ("fr", "sw")
        ]
        assert all(lines == english[0] for lines in english)


def test_the_report_of_a_part_is_named_with_it_and_counts_its_lines_only(tmp_path):
    pairs, entry = Divided(tmp_path, ITEMS, PAPERS).clean("validation", "de")
    names = [entry[key] for key in ("corpus", "version", "role", "pair")]
    assert names == ["NTREX+validation", "v1", "validation", "de-en"]
    assert entry["read"] == entry["kept"] == len(pairs) < 40
    assert sum(entry["removed"].values()) == 0


def test_a_cap_draws_from_the_part(tmp_path):
    corpora = [{"name": "NTREX", "version": "v1", "part": "train", "max_pairs": 30}]
    whole = Divided(tmp_path / "whole", ITEMS, PAPERS).clean("train", "de")[0]
    pairs, entry = Divided(tmp_path / "cap", ITEMS, PAPERS, corpora=corpora).clean("train", "de")
    assert len(pairs) == 30
    assert set(pairs) < set(whole)
    assert entry["removed"]["cap"] == entry["read"] - 30 == len(whole) - 30


def test_no_english_sentence_of_the_test_part_is_left_in_another_part(tmp_path):
    """Documents quote each other: here every second other line is a test sentence in English."""
    part = part_of_line(PAPERS, PARTS)
    tested = [item["en"] for item, name in zip(ITEMS, part, strict=True) if name == "test"]
    others = [at for at, name in enumerate(part) if name != "test"]
    quoting = dict(zip(others[::2], tested, strict=False))
    assert len(quoting) > 50
    items = [
        {**item, "en": f"«{quoting[at].upper()}!»"} if at in quoting else item
        for at, item in enumerate(ITEMS)
    ]
    corpus = Divided(tmp_path, items, PAPERS)
    assert [english for _, english in corpus.test_part("de")] == tested
    for name, code in itertools.product(("train", "validation"), CODES):
        pairs, entry = corpus.clean(name, code)
        mine = [at for at in range(200) if part[at] == name]
        assert pairs == [(items[at][code], items[at]["en"]) for at in mine if at not in quoting]
        lost = sum(at in quoting for at in mine)
        assert entry["removed"]["evaluation"] == lost
        assert entry["by_benchmark"] == {"ntrex": {"en": lost, "pairs": lost}}


# --- what does not belong together


def test_counts_that_disagree_are_one_line_that_names_both_files(tmp_path):
    corpus = Divided(tmp_path, ITEMS, PAPERS)
    documents = write_lines(corpus.folder / DOCUMENTS, PAPERS[:-1])
    archive = corpus.folder / "moses" / "de-en.txt.zip"
    split = Split(documents=DOCUMENTS, parts=PARTS)
    source = CleanSource("NTREX+train", "v1", "de-en", (archive,), documents)
    keys = tmp_path / "none.tsv"
    write_keys({}, keys)
    for read in (
        lambda: lines_of_part(documents, split, "test", 200, archive),
        lambda: corpus.test_part("de"),
        lambda: clean_corpus(corpus.experiment, source, keys, tmp_path / "out.tsv"),
    ):
        message = one_line(read)
        assert all(part in message for part in (str(documents), str(archive), "199 lines", "200"))
    assert not (tmp_path / "out.tsv").exists()


def test_a_part_is_never_read_without_its_documents(tmp_path):
    """Else the whole corpus, its test part too, would become training data."""
    corpus = Divided(tmp_path, ITEMS, PAPERS)
    archive = corpus.folder / "moses" / "de-en.txt.zip"
    source = CleanSource("NTREX+train", "v1", "de-en", (archive,), None)
    with pytest.raises(EmsError, match="documents"):
        clean_corpus(corpus.experiment, source, corpus.keys(), tmp_path / "out.tsv")
    assert not (tmp_path / "out.tsv").exists()


def test_the_documents_are_among_the_files_that_the_scores_depend_on(tmp_path):
    experiment = Settings(tmp_path, DIVIDED).load()
    names = [path.name for path in data_files(experiment, "ntrex", tmp_path)]
    assert names == ["de-en.txt.zip", "en-fr.txt.zip", "en-sw.txt.zip", DOCUMENTS]


def test_the_real_ntrex_is_divided_by_whole_documents_in_every_language(tmp_path):
    needs(SHARED.is_dir(), "the real corpora do not lie beside the project")
    folder, split = SHARED / "opus" / "NTREX" / "v1", Split(documents=DOCUMENTS, parts=PARTS)
    documents = read_document_names(folder / DOCUMENTS)
    counts = Counter(part_of_line(documents, PARTS))
    largest = max(Counter(documents).values())
    assert all(abs(counts[part] - 1997 * share) <= largest for part, share in PARTS.items())
    english = [read_language(folder, code, split, "test")[1] for code in ("de", "zh", "yo")]
    assert len(english[0]) == counts["test"]
    assert english[0] == english[1] == english[2]
