"""moses-fast has the words of the Perl script in every language; a segmenter can be one file.

`python tests/test_moses_fast.py` prints the table of its characters, as Perl has them.
"""

import importlib
import random
import re
import subprocess
import sys
import textwrap
from functools import cache
from importlib.resources import files as package_files
from itertools import groupby
from types import SimpleNamespace

import pytest
from conftest import ROOT, copy_project, planned
from made.cli import files as recipe_files
from made.cli import write_files
from made.corpora import write_opus
from made.experiments import MINIMAL
from made.text import NASTY, usable

from ems.base.errors import EmsError
from ems.base.provenance import source_files
from ems.config.languages import load_languages
from ems.text import segmenters
from ems.text.segmenters import moses_fast
from ems.text.segmenters.base import defaults, module_name, names, segmenter
from ems.workflow.jobs import prepare_modules

FOLDER = package_files("mosestokenizer").joinpath("nonbreaking_prefixes")
LANGUAGES = sorted(path.name.partition(".")[2] for path in FOLDER.iterdir() if path.name[0] == "n")
WITHOUT = ["", "af", "th", "und", "zh"]  # English abbreviations, apostrophes apart
LINES = 1000
PREFIXES = moses_fast._abbreviations

# Parts of words; each character has the same category in every version of Unicode.
LETTERS = [*"aZßéñДяλΩאشहกあ漢한ªǅ", "e\u0301", "क\u093f", "ก\u0e34", "\U00010400", "𝐚"]
NUMBERS = [*"0159²½٣५Ⅳ①", "𝟙"]
OTHERS = [*'"!?;:()[]{}<>|&/\\@#$%^*_+=~«»“”‘’…–—。、、·§€№✓️😀', "\u0e48", "\u094d"]
OTHERS += ["\u200b", "\u200d", "\U000e0041", "\ue000", "\ufffd", "\u00ad", "\u1ab0"]
MARKS = [*"..,,''-`", "..", "...", ",,", "''", "--", "'s", "' '", ",'", ".,"]
SPACES = [*" " * 12, "  ", *"\u00a0\u3000\u2009\u202f", "' '", " '", "' ", " ,", ", ", ". 𝐚"]


@cache
def nasty(language):
    """Return lines of everything that the rules look at, including abbreviations."""
    draw = random.Random(f"moses {language}")
    prefixes = [f"{each.split()[0]}." for each in PREFIXES(language) if each.strip()]
    kinds = [LETTERS, LETTERS, NUMBERS, OTHERS, MARKS, MARKS]

    def word():
        if draw.random() < 0.25:
            return draw.choice(prefixes)
        return "".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randint(1, 5)))

    def line():
        return "".join(word() + draw.choice(SPACES) for _ in range(draw.randint(1, 8)))

    lines = [line() for _ in range(LINES)]
    plain = [each.rstrip() for each in lines[::2]]  # ends in a word
    return [*NASTY, *plain, *lines[1::2]]


@pytest.mark.parametrize("language", [*LANGUAGES, *WITHOUT])
def test_its_words_are_those_of_the_perl_script(language):
    ours = segmenter("moses-fast", language)(nasty(language))
    rows = zip(nasty(language), usable("moses", language)(nasty(language)), ours, strict=True)
    assert [row for row in rows if row[1] != row[2]] == []


def test_a_line_has_the_same_words_among_any_others():
    segment, lines = usable("moses-fast", "fr"), [*nasty("fr"), "a DOTMULTI. b"]
    words = segment(lines)
    assert words[-1] == "a DOTMULTI. b"  # a placeholder of the script
    assert [segment([line])[0] for line in lines] == words
    assert segment(lines[::-1] * 3) == words[::-1] * 3


# --- characters
KINDS = {"A": r"\p{IsAlpha}", "D": r"\p{IsDigit}", "N": r"\p{IsN}", "L": r"\p{IsLower}"}
PROGRAM = r"""
no warnings; use Unicode::UCD; print Unicode::UCD::UnicodeVersion(), "\n";
my @kinds = map { qr/$_/ } @ARGV;
for my $code (0 .. 0x10ffff) {
    my $c = chr $code; utf8::upgrade($c);
    my $alnum = $c =~ /\p{IsAlpha}/ || $c =~ /\p{IsDigit}/;
    die "IsAlnum" unless !!$alnum == !!($c =~ /\p{IsAlnum}/);
    die "white space" if $c =~ /\s/ && ($alnum || $c =~ /\p{IsN}/);
    my @found = grep { $c =~ $kinds[$_] } 0 .. $#kinds;
    print join(" ", $code, @found), "\n" if @found;
}
"""


def of_perl():
    """Return Perl's version of Unicode, and the code points of each kind."""
    command = ["perl", "-e", PROGRAM, *KINDS.values()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    version, *rows = done.stdout.splitlines()
    kinds = {name: set() for name in KINDS}
    for code, *places in (map(int, row.split()) for row in rows):
        for place in places:
            kinds[list(KINDS)[place]].add(code)
    return version, kinds


def ranges(codes):
    """Return code points as ranges in hex."""
    runs = groupby(enumerate(sorted(codes)), key=lambda each: each[1] - each[0])
    ends = [[code for _, code in run] for _, run in runs]
    return " ".join(f"{e[0]:x}-{e[-1]:x}" if len(e) > 1 else f"{e[0]:x}" for e in ends)


def table(kinds):
    blocks = [f"{name} {ranges(codes)}" for name, codes in kinds.items()]
    return "\n\n".join(textwrap.fill(block, 100, break_on_hyphens=False) for block in blocks) + "\n"


@pytest.mark.slow
def test_its_characters_are_those_of_perl():
    usable("moses", "en")
    version, kinds = of_perl()
    text = package_files("ems.text.segmenters").joinpath("moses_fast.txt").read_text()
    ours = text.partition("\n\n")[2]
    if version == "14.0.0":
        assert ours == table(kinds)
    else:  # newer letters, most of them Chinese
        for name, *each in (block.split() for block in ours.split("\n\n")):
            ends = [[int(end, 16) for end in one.split("-")] for one in each]
            codes = {code for one in ends for code in range(one[0], one[-1] + 1)}
            assert len(codes ^ kinds[name]) < 0.2 * len(codes), (name, version)


# --- a segmenter of one file: the recipe of docs/extend.md, in a project that is not edited
((FILE, TOY),) = recipe_files("A segmenter").items()
ITEMS = [{"en": f"{at} Cats.", "de": f"Katze {at}", "fr": f"Chat {at}."} for at in range(5)]
PAIRS = [f"results/own/text/segmented/Own/v1/{pair}.tsv" for pair in ("de-en", "en-fr")]


@pytest.fixture(scope="module")
def toy_project(tmp_path_factory):
    """A segmented project with the toy, which is also the default of German."""
    folder = tmp_path_factory.mktemp("segmenter")
    write_opus(folder / "mirror", "Own", "v1", ITEMS)
    project = copy_project(folder / "project")
    write_files("A segmenter", project.folder)
    own = MINIMAL | {
        "corpora": [{"name": "Own", "version": "v1", "source": str(folder / "mirror/opus")}],
        "decontaminate": {"against": []},
        "segmenters": {"en": "none", "fr": "to-letters"},
    }
    project.select("own", own)
    project.snakemake(*PAIRS)
    return project


@pytest.mark.slow
def test_it_segments_where_it_is_named_and_where_it_is_the_default(toy_project):
    german, french = [(toy_project.folder / path).read_text().split("\n") for path in PAIRS]
    assert german[3] == "k a t z e _ 3\t3 cats.\t4"
    assert french[3] == "3 cats.\tc h a t _ 3 .\t4"


@pytest.mark.slow
def test_an_edit_of_it_prepares_its_pairs_again(toy_project):
    assert planned(toy_project.snakemake("-n", *PAIRS)) == {}
    toy_project.edit(FILE, '"json"', '"re"')
    assert planned(toy_project.snakemake("-n", *PAIRS)) == {"pair": 2, "total": 2}
    toy_project.edit(FILE, '"re"', '"json"')


@pytest.mark.slow
def test_without_its_file_its_name_is_an_error_with_the_allowed_values(toy_project):
    path = toy_project.folder / FILE
    text = path.read_text()
    path.unlink()
    done = toy_project.run(sys.executable, "-m", "ems", "check", "--experiment", "own", expect=1)
    path.write_text(text)
    expected = r"segmenters\.fr: found 'to-letters'; allowed values: .*jieba, jumanpp, .*, none, "
    assert re.search(expected, done.stderr)


MISTAKES = {  # message -> the files
    "segmenter to-letters: needs the Python package `toy`": {
        "to_letters": TOY.replace('"json"', '"no_such_module", "toy"')
    },
    r"nothing\.py: expected SEGMENTER, a record of ems": {"nothing": "SEGMENTERS = []"},
    "one and two are both the default of de": {"one": TOY, "two": TOY},
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_in_its_file_is_an_error_that_names_it(tmp_path, monkeypatch, message):
    monkeypatch.setattr(segmenters, "__path__", [*segmenters.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    for name, text in MISTAKES[message].items():
        (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(EmsError, match=message):
        segmenter(defaults(["de"])["de"], "de")
    for name in MISTAKES[message]:
        sys.modules.pop(f"ems.text.segmenters.{name}", None)
        vars(segmenters).pop(name, None)


def test_a_job_of_text_depends_on_its_own_segmenters_and_encoding_on_all():
    others = {c: name for c, name in defaults(load_languages()).items() if name != "moses"}
    assert others == {"zh": "jieba", "ja": "jumanpp"}  # the defaults of the paper
    segmenters, clean = {"en": "moses-escaped", "zh": "jieba"}, SimpleNamespace(repairs="none")
    experiment = SimpleNamespace(segmenters=segmenters, clean=clean)

    def of(*modules):
        paths = {path for module in modules for path in source_files(module)}
        return {path.stem for path in paths if path.parent == ROOT / "ems/text/segmenters"}

    assert of(*prepare_modules(experiment, ["en-zh"])) == {"base", "moses", "jieba"}
    every = {"__init__", "base", *(module_name(name).rpartition(".")[2] for name in names())}
    assert of("ems.model.encode") == every
    assert len(every) > 10


if __name__ == "__main__":
    print(table(of_perl()[1]), end="")
