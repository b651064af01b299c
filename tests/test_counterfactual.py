"""Laws of the reader of Amazon counterfactual sentences."""

import pytest
from conftest import SHARED, needs
from made.classified import experiment_of
from made.corpora import write_lines

import ems.benchmarks.counterfactual.data as counterfactual
from ems.base.errors import EmsError
from ems.corpora.evalsets.sets import read_sides, set_files

HEADER = "sentence\tis_counterfactual"
SIZES = {  # train, valid, test: of the demo, and as published
    "demo": dict.fromkeys(("EN", "DE", "JP"), (120, 40, 100)),
    "real": {"EN": (4018, 335, 670), "DE": (None, 466, 934), "JP": (None, 466, 934)},
}


@pytest.fixture
def folder(demo_mirror):
    return demo_mirror / "counterfactual"


def test_quoted_sentences_are_read_as_they_were_written(tmp_path):
    quoted = '"He said ""no""\tand left"\t1'
    write_lines(tmp_path / "DE_test.tsv", [HEADER, quoted, "plain\t0"])
    examples = counterfactual.read_split(tmp_path, "DE", "test")
    assert [(d.label, d.text) for d in examples] == [
        ("1", 'He said "no"\tand left'),
        ("0", "plain"),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["sentence\tlabel", "a\t1"], "expected the columns sentence, is_counterfactual"),
        ([HEADER, "a"], "line 2 has 1 columns, expected 2"),
        ([HEADER, "a\t1", ""], "line 3 has 0 columns, expected 2"),
        ([HEADER, " \t1"], "line 2 has an empty sentence"),
        ([HEADER, "a\tyes"], "line 2: found the label 'yes'; expected 0 or"),
        ([HEADER, '"a\t1'], "line 2: "),
        ([HEADER], "expected sentences, found none"),
    ],
)
def test_a_malformed_file_of_counterfactual_sentences_is_told_by_line(lines, message, tmp_path):
    write_lines(tmp_path / "DE_test.tsv", lines)
    with pytest.raises(EmsError) as error:
        counterfactual.read_split(tmp_path, "DE", "test")
    assert str(error.value).startswith(f"{tmp_path}/DE_test.tsv: ")
    assert message in str(error.value)


def test_decontamination_takes_what_is_evaluated_on_and_not_what_is_learnt(folder, tmp_path):
    experiment = experiment_of("counterfactual", tmp_path / "s", folder)
    sides = read_sides(experiment, "counterfactual", folder, "EN")
    texts = [text for side in sides for text in side]
    learnt = {document.text for document in counterfactual.read_split(folder, "EN", "train")}
    assert (len(texts), len(learnt)) == (140, 120)
    assert learnt.isdisjoint(texts)


@pytest.mark.parametrize("kind", SIZES)
def test_the_published_files_are_read_whole(kind, folder):
    if kind == "real":
        folder = SHARED / "amazon_counterfactual"
        needs(folder.is_dir(), "real data beside the project")
    for code, sizes in SIZES[kind].items():
        for split, count in zip(counterfactual.SPLITS, sizes, strict=True):
            if count:
                examples = counterfactual.read_split(folder, code, split)
                assert len(examples) == count
                assert {document.label for document in examples} == {"0", "1"}


def test_files_to_learn_from_are_expected_of_a_copy_only_where_it_is_a_benchmark(folder, tmp_path):
    def names(**changes):
        experiment = experiment_of("counterfactual", tmp_path / "s", folder, **changes)
        return [path.name for path in set_files(experiment, "counterfactual", folder)]

    assert names().count("EN_train.tsv") == 1
    assert "DE_train.tsv" not in names()
    other = {"evalsets": {"tatoeba": {"version": "toy"}}, "benchmarks": ["tatoeba"]}
    assert "EN_train.tsv" not in names(**other)
