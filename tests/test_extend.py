"""Laws of docs/extend.md: its recipe for a corpus and a language runs as it stands there.

The other recipes are run by test_benchmark_folder, test_objective_files and test_segmenter_files.
"""

import yaml
from conftest import copy_project
from recipes_made import commands, write_files


def test_a_corpus_and_a_language_of_the_users_own_become_segmented_pairs(tmp_path):
    project = copy_project(tmp_path)
    write_files("A corpus", tmp_path)
    tiny = yaml.safe_load((tmp_path / "configs/tiny.yaml").read_text(encoding="utf-8"))
    part = yaml.safe_load((tmp_path / "configs/mine.part.yaml").read_text(encoding="utf-8"))
    (tmp_path / "configs/mine.yaml").write_text(yaml.safe_dump({**tiny, **part}))
    *prepare, check, run = commands("A corpus")
    for command in prepare:
        project.run("bash", "-c", command)
    done = project.run("bash", "-c", check)
    assert "3 languages, train Demo/v1, train Mine/v1" in done.stderr
    project.run("bash", "-c", run)
    pairs = (tmp_path / "results/mine/text/segmented/Mine/v1/cy-en.tsv").read_text().splitlines()
    assert len(pairs) == 3
    assert pairs[1].split("\t")[:2] == ["ble mae ' r orsaf ?", "where is the station ?"]
