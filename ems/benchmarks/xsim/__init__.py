"""xsim: how often the English translation of a FLORES-200 sentence is not the one found."""

from ems.config.plugins import Benchmark, Shown

BENCHMARK = Benchmark(
    title="xsim",
    sets=("flores200",),
    between="en",
    parallel=True,
    tables={
        "xsim": Shown(
            place=240,
            caption="FLORES-200: error rates of xsim and xsim++.",
            report="How often the English translation of a FLORES-200 sentence is not the one "
            "found, in percent, by margin: among the English sentences (xsim), and with sentences "
            "among them that are wrong by a little (xsim++). The lower the better.",
        ),
    },
)
