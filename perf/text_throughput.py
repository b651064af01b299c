"""How fast the text path is, from zip to shard, beside bare Perl and beside the plain way.

    python perf/text_throughput.py [--demo] [--chinese rjieba] [--shared FOLDER] [--out FILE]

Notable choices:
- one core: CPU seconds of a process and of the tools that it starts, medians of three runs at 1x;
- bare Perl: the script of the package mosestokenizer, streamed over the same lines, and nothing
  else; the plain way: its Python object, jieba and fugashi a sentence at a time, SentencePiece a
  sentence at a time, without any decontamination. pyknp, for Japanese, would need Juman++: absent;
- dictionaries load before the clock starts, here and in the plain way: one load serves a job of
  a million pairs, which 60,000 of seven languages are not;
- memory is the peak of RssAnon, summed over a stage's processes, at 1x, 4x and 16x: the same pairs
  with a number behind them, so that none is a duplicate; the vocabulary is that of 1x;
- 60,000 pairs of tico-19, NTREX and Tatoeba, as many of each language: Chinese and Japanese are
  then a seventh each, about their share of the EMS paper's data. Held against FLORES-200.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from measured import demo_lines, figures, say

from ems.config import load_experiment, load_site, pair_name
from ems.corpora.moses import read_pairs
from ems.files import write_json

ROOT = Path(__file__).resolve().parents[1]
SCALES = (1, 4, 16)
STAGES = ("clean", "segment", "sample", "encode")
OTHERS = ("perl", "plain")
REPEATS = 3
PAPER_LINES = 2 * 143_000_000
LANGUAGES = ["de", "fr", "ru", "ar", "hi", "zh", "ja"]
SOURCES = [("tico-19", "v2020-10-28"), ("NTREX", "v1"), ("Tatoeba", "v2021-08-07")]
PAIRS = 60_000
SETTINGS = """
seed: 1
sources: {}
splits: {}
corpora: [{name: Bench, version: v1, source: made}]
validation: null
segmenters: {default: moses, zh: jieba, ja: fugashi}
model: {}
objectives: {}
train: {steps: 1}
systems: {ems: {}}
tables: {}
"""


class Work:
    """The folder of a measurement: its experiment and its data at each scale."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keys = folder, folder / "keys.tsv"
        self.vocabulary, self.sample = folder / "vocabulary.model", folder / "sample.txt"
        self.experiment = load_experiment(
            "bench", load_site(ROOT / "config.yaml", ROOT / "schemas"), folder, ROOT / "schemas"
        )
        self.pairs = self.experiment.corpora[0].pairs

    def archive(self, scale: int, pair: str) -> Path:
        return self.folder / f"{scale}" / "zip" / f"{pair}.txt.zip"

    def text(self, scale: int, stage: str, pair: str) -> Path:
        return self.folder / f"{scale}" / stage / f"{pair}.tsv"


# --- data


def real_lines(shared: Path, code: str, count: int) -> Iterator[tuple[str, str]]:
    """`count` pairs of a language, of several corpora."""
    pair = pair_name("en", code)
    paths = [
        (name, shared / "opus" / name / v / "moses" / f"{pair}.txt.zip") for name, v in SOURCES
    ]
    every = (line for name, path in paths if path.exists() for line in read_pairs(path, name, pair))
    return islice(every, count)


def prepare(folder: Path, shared: Path | None, chinese: str) -> Work:
    """Write the experiment, the zips of every scale, and the keys of the evaluation sentences."""
    from ems.text.evalkeys import eval_files, write_eval_keys

    settings: dict[str, Any] = {"description": "the text path, measured"} | yaml.safe_load(SETTINGS)
    if shared:
        evalset, version, codes, pieces = "flores200", "v1", LANGUAGES, 16_000
        place = shared / "flores200" / "flores200_dataset"
        source = partial(real_lines, shared, count=PAIRS // len(LANGUAGES))
    else:
        from ems.corpora.demo.mirror import write_mirror

        write_mirror(folder / "mirror")
        evalset, version, codes, pieces = "tatoeba", "demo-v1", ["de", "zh", "ja"], 1_500
        place = folder / "mirror" / "tatoeba"
        source = partial(demo_lines, folder / "mirror")
    settings["segmenters"]["zh"] = chinese
    settings |= {
        "languages": ["en", *codes],
        "evalsets": {"tatoeba": {"version": "v1"}} | {evalset: {"version": version}},
        "benchmarks": ["tatoeba"],
        "decontaminate": {"against": [evalset]},
        "vocabulary": {"size": pieces, "sample_lines": PAIRS},
    }
    (folder / "bench.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    work = Work(folder)
    for code in codes:
        write_zips(work, pair_name("en", code), list(source(code=code)))
    write_eval_keys(
        work.experiment.decontaminate["key"],
        eval_files(work.experiment, {evalset: place}),
        work.keys,
    )
    return work


def write_zips(work: Work, pair: str, lines: list[tuple[str, str]]) -> None:
    for scale in SCALES:
        path = work.archive(scale, pair)
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for side, code in enumerate(pair.split("-")):
                with archive.open(f"Bench.{pair}.{code}", "w", force_zip64=True) as member:
                    for copy in range(scale):
                        number = f" {copy}" if copy else ""
                        text = "".join(f"{line[side]}{number}\n" for line in lines)
                        member.write(text.encode())


# --- what is measured, each in a process of its own


def clean(work: Work, scale: int) -> None:
    from ems.text.clean import Source, clean_corpus

    for pair in work.pairs:
        source = Source("Bench", "v1", pair, (work.archive(scale, pair),))
        clean_corpus(work.experiment, source, work.keys, work.text(scale, "clean", pair))


def segment(work: Work, scale: int) -> None:
    from ems.text.bulk import segment_tsv

    for pair in work.pairs:
        codes = (pair.split("-")[0], pair.split("-")[1])
        names = (work.experiment.segmenters[codes[0]], work.experiment.segmenters[codes[1]])
        source, out = (work.text(scale, stage, pair) for stage in ("clean", "segmented"))
        segment_tsv(source, out, codes, names)


def sample(work: Work, scale: int) -> None:
    from ems.text.subwords import write_sample

    sources = [work.text(scale, "segmented", pair) for pair in work.pairs]
    write_sample(work.experiment, sources, work.folder / f"{scale}" / "sample.txt")


def encode(work: Work, scale: int) -> None:
    from ems.shards.writer import write_shards

    for pair in work.pairs:
        out = work.folder / f"{scale}" / "shards" / pair
        write_shards(work.text(scale, "segmented", pair), work.vocabulary, out)


def perl(work: Work, scale: int) -> None:
    import mosestokenizer

    script = Path(mosestokenizer.__file__).with_name("tokenizer-v1.1.perl")
    for pair in work.pairs:
        for code in pair.split("-"):
            path = work.folder / f"{scale}" / "perl" / f"{pair}.{code}"
            command = ["perl", str(script), "-q", "-no-escape", "-l", code]
            with open(path, "rb") as lines, open(f"{path}.out", "wb") as out:
                subprocess.run(command, stdin=lines, stdout=out, check=True)


def plain(work: Work, scale: int) -> None:
    """What one writes first: a loop over sentences."""
    import numpy as np

    from ems.text.subwords import load_vocabulary

    processor = load_vocabulary(work.vocabulary)
    for pair in work.pairs:
        codes, ids = pair.split("-"), ([], [])
        tools = [plain_tool(work.experiment.segmenters[code], code) for code in codes]
        for line in read_pairs(work.archive(scale, pair), "Bench", pair):
            for side, text in enumerate(line):
                words = " ".join(tools[side](text))
                ids[side].append(np.array(processor.encode(words.lower()), np.uint16))
        for side, code in enumerate(codes):
            np.save(work.folder / f"{pair}.{code}.npy", np.concatenate(ids[side]))
        for tool in tools:
            if hasattr(tool, "close"):
                tool.close()  # so that its CPU time is counted


def plain_tool(name: str, code: str) -> Callable[[str], list[str]]:
    if name == "jieba":
        import jieba

        return jieba.lcut
    if name == "fugashi":
        from fugashi import Tagger

        tagger = Tagger("-Owakati")
        return lambda text: tagger.parse(text).split()
    from mosestokenizer import MosesTokenizer

    return MosesTokenizer(code, no_escape=True)


MEASURED = {"clean": clean, "segment": segment, "sample": sample, "encode": encode}
MEASURED |= {"perl": perl, "plain": plain}


def inside(name: str, folder: Path, scale: int) -> None:
    """Run one of MEASURED in this process; print its CPU and wall seconds as JSON."""
    import ems.shards.writer
    import ems.text.bulk
    import ems.text.clean  # noqa: F401
    from ems.text.segment import segmenter

    work = Work(folder)
    if name in ("segment", "plain"):  # dictionaries
        chinese = "jieba" if name == "plain" else work.experiment.segmenters["zh"]
        segmenter(chinese, "zh")(["预热"])
        segmenter("fugashi", "ja")(["準備"])
    before, started = cpu_seconds(), time.monotonic()
    MEASURED[name](work, scale)
    print(json.dumps({"cpu": cpu_seconds() - before, "wall": time.monotonic() - started}))


def cpu_seconds() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


# --- measuring


def measure(name: str, work: Work, scale: int) -> dict[str, float]:
    """{"cpu", "wall", "anon_mb"} of one run in a fresh process."""
    command = [sys.executable, __file__, "--inside", name, "--folder", str(work.folder)]
    found, anon_mb = figures([*command, "--scale", str(scale)], f"{name} at {scale}x")
    return {**found, "anon_mb": anon_mb}


def run_all(work: Work, repeats: int) -> dict[str, dict[int, dict[str, float]]]:
    """name -> scale -> medians of its measurements."""
    from ems.text.subwords import train_vocabulary

    found: dict[str, dict[int, dict[str, float]]] = {}
    for scale in SCALES:
        for name in STAGES if scale > 1 else (*STAGES, *OTHERS):
            if name == "encode" and scale == 1:
                shutil.copy(work.folder / "1" / "sample.txt", work.sample)
                train_vocabulary(work.experiment, work.sample, work.vocabulary)
            if name == "perl":
                write_plain_text(work)
            runs = [measure(name, work, scale) for _ in range(repeats if scale == 1 else 1)]
            medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            found.setdefault(name, {})[scale] = medians
            say(f"{name} at {scale}x: {medians['cpu']:.1f} s CPU, {medians['anon_mb']:.0f} MB")
        if scale > 1:
            shutil.rmtree(work.folder / f"{scale}")
    return found


def write_plain_text(work: Work) -> None:
    for pair in work.pairs:
        sides = zip(*read_pairs(work.archive(1, pair), "Bench", pair), strict=True)
        for code, lines in zip(pair.split("-"), sides, strict=True):
            path = work.folder / "1" / "perl" / f"{pair}.{code}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def size_of(work: Work) -> tuple[int, int]:
    """(lines, bytes of text) at 1x, both sides."""
    lines = size = 0
    for pair in work.pairs:
        for sides in read_pairs(work.archive(1, pair), "Bench", pair):
            lines += 2
            size += sum(len(side.encode()) + 1 for side in sides)
    return lines, size


def summary(found: dict[str, dict[int, dict[str, float]]], lines: int, size: int) -> dict[str, Any]:
    """The rows of the table, and the figures of the last line."""
    path = {
        scale: {
            "cpu": sum(found[stage][scale]["cpu"] for stage in STAGES),
            "wall": sum(found[stage][scale]["wall"] for stage in STAGES),
            "anon_mb": max(found[stage][scale]["anon_mb"] for stage in STAGES),
        }
        for scale in SCALES
    }
    rows = {**{stage: found[stage] for stage in STAGES}, "zip to shard": path}
    rows |= {"bare Perl": found["perl"], "the plain way": found["plain"]}
    table = {
        name: {
            "lines_per_s_core": lines / scales[1]["cpu"],
            "mb_per_s_core": size / 1e6 / scales[1]["cpu"],
            "cpu_s": scales[1]["cpu"],
            "wall_s": scales[1]["wall"],
            "anon_mb": {scale: value["anon_mb"] for scale, value in scales.items()},
        }
        for name, scales in rows.items()
    }
    rate = table["zip to shard"]["lines_per_s_core"]
    last = {
        "vs_perl": rate / table["bare Perl"]["lines_per_s_core"],
        "vs_plain": rate / table["the plain way"]["lines_per_s_core"],
        "lines_per_s_core": rate,
        "anon_growth_16x": path[SCALES[-1]]["anon_mb"] / path[1]["anon_mb"],
    }
    hours = PAPER_LINES / rate / 3600
    return {"lines": lines, "bytes": size, "table": table, "core_hours_143m": hours, **last}


def show(found: dict[str, Any]) -> None:
    say(f"\n{found['lines']:,} lines, {found['bytes'] / 1e6:.1f} MB, 1x; CPU of one core")
    say(f"{'':14}{'lines/s':>10}{'MB/s':>7}{'CPU s':>8}{'wall s':>8}   RssAnon MB at 1x, 4x, 16x")
    for name, row in found["table"].items():
        memory = "  ".join(f"{value:6.0f}" for value in row["anon_mb"].values())
        say(
            f"{name:14}{row['lines_per_s_core']:10,.0f}{row['mb_per_s_core']:7.2f}"
            f"{row['cpu_s']:8.2f}{row['wall_s']:8.2f}   {memory}"
        )
    say(f"143M pairs (286M lines) from zip to shard: {found['core_hours_143m']:.1f} core-hours")
    say(
        f"vs_perl={found['vs_perl']:.2f} vs_plain={found['vs_plain']:.2f} "
        f"lines_per_s_core={found['lines_per_s_core']:.0f} "
        f"anon_growth_16x={found['anon_growth_16x']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--demo", action="store_true", help="300 pairs each of the demo corpus")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/text_throughput.json")
    parser.add_argument("--chinese", choices=["jieba", "rjieba"], default="jieba", help="ours")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--inside", choices=MEASURED, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside, options.folder, options.scale)
        return
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    with tempfile.TemporaryDirectory() as folder:
        work = prepare(Path(folder), None if options.demo else options.shared, options.chinese)
        found = summary(run_all(work, options.repeats), *size_of(work))
    write_json(options.out, found)
    show(found)


if __name__ == "__main__":
    main()
