"""A toy experiment, what it downloads, and a good command line of every stage; for `make fuzz` also
of every other evaluation set, which is too long for CI.
"""

import re
import shutil
from pathlib import Path

import yaml
from conftest import ROOT
from fuzz.edits import remove
from made.corpora import translations, write_lines, write_mined, write_opus, write_tatoeba
from made.train import DUMP, page, write_dump

LANGUAGES = ["en", "de"]
MIRROR = "mirror/opus"
TOY = {  # laid over configs/tiny.yaml
    "languages": LANGUAGES,
    "sources": {"opus": MIRROR, "tatoeba": "mirror/tatoeba", "documents": "mirror/texts"},
    "corpora": [
        {"name": "Toy", "version": "v1", "source": MIRROR},
        {"name": "Own", "version": "v1", "kind": "documents"},
    ],
    "validation": {"name": "ToyDev", "version": "v1", "source": MIRROR},
    "evalsets": {"tatoeba": {"version": "toy"}},
    "segmenters": {"default": "none"},
    "vocabulary": {"size": 120, "character_coverage": 1.0, "sample_lines": 200},
    "systems": {
        "ems": {},
        "coherent": {
            "objectives": {
                "xtr": {"weight": 0},
                "contrastive": {"weight": 0},
                "coherence": {"weight": 1, "mining": {"sample": 8, "keep": 4, "pairs": 20}},
            },
            "train": {"start_from": "ems"},
        },
        "char-ngram": {"kind": "char-ngram", "ngrams": {"buckets": 256}},
        "fused": {"kind": "fused", "of": "ems", "ngrams": {"buckets": 64}},
    },
}
MULTI = {  # laid over the toy
    "languages": [*LANGUAGES, "fr"],
    "corpora": TOY["corpora"][:1],
    "multiway": {"through": "en", "most": 2},
    "systems": {"ems": {}},
}
MODEL = {"width": 16, "feed_forward": 24, "max_tokens": 20}
TRAIN = {"steps": 6, "batch_pairs": 8, "warmup_steps": 2}
TRAIN |= {"validate_every": 3, "checkpoint_every": 3}
STAGES = """
fetch --source mirror/opus --corpus Toy --version v1 --pair de-en --out {moses}
fetch --source mirror/opus --corpus ToyDev --version v1 --pair de-en --out {dev}
fetch --source mirror/laser --corpus WikiMatrix --version v1 --pair de-en --format mined --out
    data/mined.tsv.gz
fetch-documents --source mirror/opus --corpus Toy --version v1 --out
    data/opus/Toy/v1/DOCUMENT_IDS.tsv
fetch --source mirror/texts --corpus Own --version v1 --pair de --format text --out data/de.txt
fetch --source mirror/texts --corpus Own --version v1 --pair en --format text --out data/en.txt
fetch --source mirror/dumps --corpus Wikipedia --version 20260101 --pair de --format dump --out
    data/de.xml.bz2
wikipedia --dump data/de.xml.bz2 --language de --out data/wikipedia/de.txt.gz
fetch-evalset --evalset tatoeba --source mirror/tatoeba --code deu --out data/evalsets/tatoeba/toy
evalkeys {x} {e} --out text/evalkeys.tsv
clean {x} --corpus Toy --version v1 --pair de-en --archives {moses} {k} --out text/clean/de-en.tsv
clean {x} --corpus ToyDev --version v1 --pair de-en --archives {dev} {k} --out text/dev/de-en.tsv
evalkeys {x} --validation text/dev/de-en.tsv --out text/heldkeys.tsv
clean {x} --corpus Own --version v1 --pair de --archives data/de.txt {k} --out text/clean/de.tsv
clean {x} --corpus Own --version v1 --pair en --archives data/en.txt {k} --out text/clean/en.tsv
report {x} --entries text/clean/de-en.json text/dev/de-en.json --out reports/decontamination.json
segment {x} --source text/clean/de-en.tsv --out text/segmented/de-en.tsv
segment {x} --source text/clean/de.tsv --out text/segmented/de.tsv
segment {x} --source text/clean/en.tsv --out text/segmented/en.tsv
multiway --experiment multi --sources text/multi/de-en.tsv text/multi/en-fr.tsv --out text/further
    --reports reports/further
sample {x} --sources text/segmented/de-en.tsv --out vocab/sample.txt
vocabulary {x} --sample vocab/sample.txt --out vocab/vocabulary.model
vocabulary-report {x} {v} --sample vocab/sample.txt --out reports/vocabulary.json
shards --source text/segmented/de-en.tsv {v} --out shards/train/de-en
shards --source text/dev/de-en.tsv {v} --out shards/dev/de-en
shards --source text/segmented/de.tsv {v} --out shards/train/de
shards --source text/segmented/en.tsv {v} --out shards/train/en
shards --source text/further {v} --languages de fr --out shards/further
index --training shards/train/de-en shards/train/de shards/train/en --validation shards/dev/de-en
    --out shards/index.json
inspect --index shards/index.json --pair de-en --row 3 {v}
verify --index shards/index.json
verify --data data
train {x} --system ems --shards shards/index.json {v} --state state/ems --times
    costs/train/ems.times.jsonl --out models/ems --costs costs/train/ems.json
mine-documents {x} --system coherent --shards shards/index.json {m} --out mined
validate {m} --shards shards/dev/de-en
fit {x} --system char-ngram --text text/clean/de-en.tsv text/clean/de.tsv --out models/char-ngram
fit {x} --system fused --text text/clean/de-en.tsv --pairs text/dev/de-en.tsv {m} --out models/fused
bench {x} --system ems --benchmark tatoeba {m} {e} --out scores/ems/tatoeba.json
bench {x} --system char-ngram --benchmark tatoeba --model models/char-ngram {e} --out
    scores/char-ngram/tatoeba.json
export {x} {m} --out exports/ems --without-segmenters
eval {m} --bench tatoeba {e} --out by-hand
compare scores/ems scores/char-ngram --out comparison/comparison.csv
encode --language de {m} --source text/lines.de --out vectors.npy
score --source-language de --target-language en {m} --source text/clean/de-en.tsv --out scored.txt
mine --source-language de --target-language de {m} --source text/lines.de --target text/lines.de
    --out mined.tsv
search --language de --query-language de {m} --index text/lines.de Haus
table tatoeba {x} --sources scores/ems/tatoeba.json scores/char-ngram/tatoeba.json --out
    tables/tatoeba.tex
table decontamination {x} --sources reports/decontamination.json --out tables/decontamination.tex
table vocabulary {x} --sources reports/vocabulary.json --out tables/vocabulary.tex
table models {x} --sources reports/decontamination.json --out tables/models.tex
select {x} --sources tables/tatoeba.tex tables/tatoeba.csv --out selected
metrics --scores scores/ems/tatoeba.json --losses models/ems/losses.jsonl --out metrics
figure learning {x} --sources models/ems/losses.jsonl --out figures/learning.svg
costs {x} --folder costs --out tables/costs.tex
timed learning {x} --sources models/ems/losses.jsonl --times costs/train/ems.times.jsonl --out
    figures/timed.svg
check {x}
corpora list {x}
corpora search cy pl
init --languages en,cy --budget 20k --out configs/welsh.yaml
"""  # what is indented goes on the line above
STATE = "state/stopped"
SHORT = {  # what stands for what in braces, besides {x} for the flag of the experiment
    "v": "--vocabulary vocab/vocabulary.model",
    "k": "--keys text/evalkeys.tsv",
    "e": "--evalset tatoeba=data/evalsets/tatoeba/toy",
    "m": "--model models/ems",
    "moses": "data/opus/Toy/v1/moses/de-en.txt.zip",
    "dev": "data/opus/ToyDev/v1/moses/de-en.txt.zip",
}


def as_words(text: str, experiment: str = "toy") -> list[list[str]]:
    """The command lines of a text."""
    lines = text.strip().replace("\n    ", " ").split("\n")
    return [
        ["ems", *line.format(x=f"--experiment {experiment}", **SHORT).split()] for line in lines
    ]


COMMANDS = as_words(STAGES)
RESUME = "train {x} --system ems --shards shards/index.json {v} --out models/stopped"
(RESUMED,) = as_words(f"{RESUME} --state {STATE}")


def write_settings(project: Path) -> None:
    tiny = yaml.safe_load((ROOT / "configs" / "tiny.yaml").read_text())
    toy = {key: value for key, value in tiny.items() if key != "sweep"} | TOY
    toy["model"], toy["train"] = tiny["model"] | MODEL, tiny["train"] | TRAIN
    site = yaml.safe_load((ROOT / "config.yaml").read_text()) | {"experiment": "toy"}
    site["downloads"] = {"per_host": 4, "retries": 0}
    shutil.copytree(ROOT / "configs", project / "configs")
    files = {"configs/toy.yaml": toy, "configs/multi.yaml": toy | MULTI, "config.yaml": site}
    for name, value in files.items():
        (project / name).write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


def write_mirror(mirror: Path) -> None:
    """What the project downloads, in the formats of those who publish it."""
    items = list(translations(80, LANGUAGES, 1))
    folder = write_opus(mirror, "Toy", "v1", items)
    write_lines(folder / "DOCUMENT_IDS.tsv", [f"document-{at // 8}" for at in range(len(items))])
    write_opus(mirror, "ToyDev", "v1", list(translations(16, LANGUAGES, 2)))
    write_mined(mirror, "de-en", items[:9], [1.2 - at / 100 for at in range(9)])
    for code in LANGUAGES:
        texts = [item[code] for item in items[:12]]
        write_lines(mirror / f"texts/Own/v1/{code}.txt", [*texts[:5], "", *texts[5:], ""])
    write_dump(mirror / "dumps" / DUMP, [page(at, text) for at, text in enumerate(texts)], 4)
    pairs = [(item["de"], item["en"]) for item in translations(20, LANGUAGES, 3, least=2)]
    write_tatoeba(mirror, "deu", pairs)
    lines = [item["de"] for item in translations(7, LANGUAGES, 4)]
    write_lines(mirror.parent / "text" / "lines.de", lines)
    for pair in (("de", "en"), ("en", "fr")):
        rows = enumerate(translations(12, MULTI["languages"], 5), start=1)
        lines = [f"{item[pair[0]]}\t{item[pair[1]]}\t{at}" for at, item in rows]
        write_lines(mirror.parent / "text/multi" / f"{'-'.join(pair)}.tsv", lines)


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
WIDE_COMMANDS = as_words("\n".join(WIDE), "wide")


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
