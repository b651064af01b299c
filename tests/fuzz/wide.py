"""Every other evaluation set, its score files and its tables: for `make fuzz`; too long for CI."""

import re
from pathlib import Path

import yaml
from conftest import ROOT
from fuzz.edits import remove
from fuzz.stages import LANGUAGES, TOY, as_words

# fmt: off
BENCHMARKS = [
    "flores200", "ntrex", "bucc2018", "paracrawl", "europarlxsr", "mldoc", "cls", "marc", "rcv2",
    "sib200", "counterfactual", "xnli", "pawsx",
]
OTHER_LANGUAGES = {
    "es", "ru", "zh", "ja", "ar", "it", "spa", "rus", "cmn", "jpn", "ara", "ita", "jp", "zho",
    "spanish", "russian", "japanese", "chinese", "opus",
}
# fmt: on
SETS = {name: f"{name}=data/embedded/{name}" for name in BENCHMARKS}
SETS |= {name: f"{name}=data/embedded/reuters" for name in ("mldoc", "rcv2")}
FLORES = SETS["flores200"]
SETS |= {"xsim": FLORES, "wordorder": FLORES, "xsimpp": f"xsimpp=data/embedded/xsimpp {FLORES}"}
TABLE_OF = {"flores200": ["flores"], "xsimpp": ["xsim"], "xsim": []}
TABLE_OF["bucc2018"] = ["bucc2018", "bucc_missed"]
QUICK = {"seeds": 1, "epochs": 1, "weight_decay": [0], "hidden": []}
ALL = " ".join(SETS[name] for name in BENCHMARKS)
WIDE = [
    *(
        f"bench {{x}} --system char-ngram --model models/char-ngram --benchmark {name}"
        f" --evalset {folders} --out scores/wide/{name}.json"
        for name, folders in SETS.items()
    ),
    *(
        f"table {table} {{x}} --sources scores/wide/{name}.json --out tables/{table}.tex"
        for name in SETS
        for table in TABLE_OF.get(name, [name])
    ),
    f"evalkeys {{x}} --evalset tatoeba=data/embedded/tatoeba xsimpp=data/embedded/xsimpp {ALL}"
    " --out text/wide.tsv",
    "figure flores {x} --sources scores/wide/flores200.json --out figures/flores.svg",
    "pdf --tables tables/tatoeba.tex tables/xnli.tex --caption tatoeba=Retrieval --out tables.pdf",
]
WIDE_COMMANDS = as_words("\n".join(WIDE), "--experiment wide")


def write_wide_settings(project: Path) -> None:
    """The experiment `wide`: all benchmarks on the demo's own data."""
    full = yaml.safe_load((ROOT / "configs" / "demo-full.yaml").read_text())
    wide = full | {key: TOY[key] for key in ("segmenters", "vocabulary", "systems")}
    wide["evalsets"]["tatoeba"] = {"version": "demo-v1"}
    wide["probes"] = {name: own | QUICK for name, own in full["probes"].items()}
    text = yaml.safe_dump(wide | {"languages": [*LANGUAGES, "fr"]}, sort_keys=False)
    (project / "configs" / "wide.yaml").write_text(text, encoding="utf-8")


def narrow(mirror: Path) -> None:
    """Remove the languages of the demo's data that no command here reads."""
    for path in sorted(mirror.rglob("*"), reverse=True):
        words = re.split("[^a-z]+", str(path.relative_to(mirror)).lower())
        if OTHER_LANGUAGES & set(words) or any(word.startswith("reutru") for word in words):
            remove(path)
