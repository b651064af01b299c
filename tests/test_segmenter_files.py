"""Laws of the segmenter that is one file: nothing else of the project is edited, and it segments in
the workflow, is the default of its language, and is a part of the source of its own jobs.

The file is the recipe of docs/extend.md.
"""

import importlib
import re
import sys
from types import SimpleNamespace

import pytest
from conftest import ROOT, copy_project, planned
from made.corpora import write_opus, write_tatoeba
from made.experiments import MINIMAL
from made.recipes import files, write_files
from made.segmenters import _look_for_the_tools_anew  # noqa: F401

from ems.base.errors import EmsError
from ems.base.provenance import source_files
from ems.config.languages import load_languages
from ems.text import segmenters
from ems.text.segmenters.base import defaults, module_name, names, segmenter
from ems.workflow.jobs import segment_modules

((FILE, TOY),) = files("A segmenter").items()
ITEMS = [{"en": f"{at} Cats.", "de": f"Katze {at}", "fr": f"Chat {at}."} for at in range(5)]
PAIRS = [f"results/own/text/segmented/Own/v1/{pair}.tsv" for pair in ("de-en", "en-fr")]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with the toy, whose experiment names none for German, and that has segmented."""
    folder = tmp_path_factory.mktemp("segmenter")
    write_opus(folder / "mirror", "Own", "v1", ITEMS)
    for code in ("deu", "fra"):
        write_tatoeba(folder / "mirror", code, [("A toy.", "B toy.")])
    project = copy_project(folder / "project")
    write_files("A segmenter", project.folder)
    own = MINIMAL | {
        "corpora": [{"name": "Own", "version": "v1", "source": str(folder / "mirror/opus")}],
        "sources": {"tatoeba": str(folder / "mirror/tatoeba")},
        "segmenters": {"en": "none", "fr": "to-letters"},
    }
    project.select("own", own)
    project.snakemake(*PAIRS)
    return project


def test_it_segments_where_it_is_named_and_where_it_is_the_default(project):
    german, french = [(project.folder / path).read_text().split("\n") for path in PAIRS]
    assert german[3] == "k a t z e _ 3\t3 cats.\t4"
    assert french[3] == "3 cats.\tc h a t _ 3 .\t4"


def test_an_edit_of_it_segments_again_and_cleans_nothing_again(project):
    assert planned(project.snakemake("-n", *PAIRS)) == {}
    project.edit(FILE, '"json"', '"re"')
    assert planned(project.snakemake("-n", *PAIRS)) == {"segment": 2, "total": 2}
    project.edit(FILE, '"re"', '"json"')


def test_without_its_file_its_name_is_an_error_with_those_that_there_are(project):
    path = project.folder / FILE
    text = path.read_text()
    path.unlink()
    done = project.run(sys.executable, "-m", "ems", "check", "--experiment", "own", expect=1)
    path.write_text(text)
    expected = r"segmenters\.fr: found 'to-letters'; allowed values: .*jieba, jumanpp, .*, none, "
    assert re.search(expected, done.stderr)


# --- in this process


MISTAKES = {  # message -> the files
    "segmenter to-letters: needs the Python package `toy`": {
        "to_letters": TOY.replace('"json"', '"no_such_module", "toy"')
    },
    r"nothing\.py: expected SEGMENTER, a record of ems": {"nothing": "SEGMENTERS = []"},
    "one and two are both the default of de": {"one": TOY, "two": TOY},
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_in_a_file_is_an_error_that_names_it(tmp_path, monkeypatch, message):
    monkeypatch.setattr(segmenters, "__path__", [*segmenters.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    for name, text in MISTAKES[message].items():
        (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(EmsError, match=message):
        segmenter(defaults(["de"])["de"], "de")
    for name in MISTAKES[message]:
        sys.modules.pop(f"ems.text.segmenters.{name}", None)
        vars(segmenters).pop(name, None)


def test_the_defaults_are_those_of_the_paper():
    others = {c: name for c, name in defaults(load_languages()).items() if name != "moses"}
    assert others == {"zh": "jieba", "ja": "jumanpp"}


def test_a_segment_job_depends_on_its_own_segmenters_and_encoding_on_all():
    experiment = SimpleNamespace(segmenters={"en": "moses-escaped", "zh": "jieba"})

    def of(*modules):
        paths = {path for module in modules for path in source_files(module)}
        return {path.stem for path in paths if path.parent == ROOT / "ems/text/segmenters"}

    assert of(*segment_modules(experiment, "en-zh")) == {"base", "moses", "jieba"}
    every = {"__init__", "base", *(module_name(name).rpartition(".")[2] for name in names())}
    assert of("ems.model.encode") == every
    assert len(every) > 10
