"""Experiments of `ems init` and the starter run from a server to the token shards."""

import json
import zipfile
from collections import defaultdict
from functools import cache, partial

import pytest
import yaml
from conftest import SHARED
from made.corpora import moses_of, translations, write_flores, write_sib, write_tatoeba
from made.web import CERTIFICATES, served

from ems.config.load import load_experiment, load_site
from ems.workflow.search import language_of

BENCHMARKS = {
    "tatoeba": "tatoeba_v1",
    "flores200": "flores200/flores200_dataset",
    "sib200": "sib200",
}


def write_served(folder, experiment, text):
    """The zip of every file of every corpus, at OPUS's names; `text` gives the pairs of two
    languages."""
    for _, corpus in experiment.all_corpora():
        for file in (file for pair in corpus.pairs for file in corpus.files(pair)):
            path = folder / f"OPUS-{corpus.name}/{corpus.version}/moses/{file}.txt.zip"
            languages = [language_of(corpus.name, code) for code in file.split("-")]
            moses_of(path, text(corpus.name, *languages), corpus=corpus.name, pair=file)
    return folder


def made_up(count, corpus, first, second):
    """Pairs of made-up sentences of two languages, other ones for each corpus."""
    items = translations(count, (first, second), f"{corpus} {first}", least=3)
    return [(item[first], item[second]) for item in items]


def shared_text(experiment, most):
    """A function for `write_served`: up to `most` pairs of ../shared for each file, and none of
    them in two corpora.
    """
    holders = defaultdict(list)  # the languages of a pair -> corpora
    for _, corpus in experiment.all_corpora():
        for pair in corpus.pairs:
            names = holders[frozenset(pair.split("-"))]
            names += [corpus.name] * (corpus.name not in names)

    def text(corpus, *languages):
        names = holders[frozenset(languages)]
        return shared_pairs(*languages)[names.index(corpus) :: len(names)][:most]

    return text


def shared_pairs(first, second):
    """The pairs of two languages in ../shared/data/opus; through English where neither is it."""
    if "en" in (first, second):
        pairs = with_english(second if first == "en" else first)
        return pairs if second == "en" else [pair[::-1] for pair in pairs]
    known = {english: text for text, english in with_english(second)}
    return [(text, known[english]) for text, english in with_english(first) if english in known]


@cache
def with_english(language):
    """(sentence, English sentence) of a language in ../shared/data/opus."""
    pair = "-".join(sorted((language, "en")))
    pairs = []
    for path in sorted(SHARED.glob(f"opus/*/*/moses/{pair}.txt.zip")):
        with zipfile.ZipFile(path) as archive:
            names = [f"{path.parts[-4]}.{pair}.{code}" for code in (language, "en")]
            sides = [archive.read(name).decode().split("\n")[:-1] for name in names]
        pairs += zip(*sides, strict=True)
    return list(dict.fromkeys(pairs))


def sources(address):
    """The `sources` of config.yaml that fetch everything from there."""
    return {"opus": address, **{name: f"{address}/{name}" for name in BENCHMARKS}}


pytestmark = pytest.mark.slow
TEXT = 60  # lines of an evaluation set


def write_benchmarks(mirror, experiment):
    """Write the three open benchmarks in their published form, with made-up sentences."""
    for name in BENCHMARKS:
        for code in experiment.evalsets[name].languages:
            lines = made_up(TEXT, f"{name} {code}", "en", "de")
            if name == "tatoeba":
                write_tatoeba(mirror, code, lines)
            elif name == "flores200":
                write_flores(mirror, code, [own for own, _ in lines])
            else:
                examples = [("travel", own) for own, _ in lines]
                write_sib(mirror, code, dict.fromkeys(("train", "dev", "test"), examples))


@pytest.fixture
def project(fresh):
    """A project whose sources are an https server of its folder `mirror`."""
    with served(fresh.folder / "mirror") as (address, trusted):
        fresh.environment |= {CERTIFICATES: str(trusted), "NO_PROXY": "127.0.0.1"}
        path = fresh.folder / "config.yaml"
        site = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**site, "sources": sources(address)}))
        yield fresh


@pytest.mark.parametrize("name", ["mine", "starter"])
def test_experiments_run_from_a_server_with_the_names_of_opus(project, name):
    """`ems init` writes `mine`; `starter` uses the text of ../shared if it is there. Both fetch the
    evaluation files of their own languages only.
    """
    real = name == "starter" and SHARED.is_dir()
    if name == "mine":
        project.run("ems", "init", "--languages", "en,gd", "--budget", "20k")
    path = project.folder / f"configs/{name}.yaml"
    value = yaml.safe_load(path.read_text())
    value["vocabulary"] |= {"size": 4000 if real else 400, "sample_lines": 9000 if real else 2000}
    for benchmark in ("tatoeba", "flores200") if name == "starter" else ():
        del value["evalsets"][benchmark]["languages"]
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    site = load_site(project.folder / "config.yaml", {"experiment": name})
    experiment = load_experiment(name, site, project.folder / "configs")
    text = shared_text(experiment, 3000) if real else partial(made_up, 3000)
    write_served(project.folder / "mirror", experiment, text)
    write_benchmarks(project.folder / "mirror", experiment)
    project.snakemake("-j2", "--config", f"experiment={name}", "--", "text")
    results = project.folder / "results" / name
    for made in ("shards/shared/index.json", "reports/decontamination.json"):
        assert json.loads((results / made).read_text())
