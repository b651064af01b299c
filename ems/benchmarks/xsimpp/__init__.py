"""xsim++: xsim with slightly altered English sentences among the candidates."""

from ems.config.plugins import Benchmark

BENCHMARK = Benchmark(
    title="xsim++",
    licence="FLORES-200's, CC BY-SA 4.0",
    source="a directory or a URL with eng_Latn_augmented.devtest",
    codes={"en": "eng_Latn"},
    sets=("flores200", "xsimpp"),
    family="xsim",
    between="en",
    parallel=True,
)
