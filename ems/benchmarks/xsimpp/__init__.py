"""xsim++: FLORES-200's error rate among English sentences that are wrong by a little."""

from ems.benchmarks.record import Benchmark

BENCHMARK = Benchmark(
    title="xsim++",
    licence="FLORES-200's, CC BY-SA 4.0",
    home="https://github.com/facebookresearch/LASER/tree/main/tasks/xsimplusplus",
    source="a directory or a URL with eng_Latn_augmented.devtest",
    codes={"en": "eng_Latn"},
    sets=("flores200", "xsimpp"),
    score="ems.benchmarks.xsim.score",
    shares="xsim",
    between="en",
    demo_place=2,
    parallel=True,
)
