"""WMT24++: finding the translation among 960 segments of news, social media, speech and novels."""

from ems.config.plugins import Benchmark, same

TRAINED = "ar bg bn ca cs da de el en es et fa fi fr gu he hi hr hu id it ja ko lt lv ml mr nb nl"
TRAINED += " pl pt ro ru sk sl sr sv sw ta te th tl tr uk ur vi zh"
BENCHMARK = Benchmark(
    title="WMT24++",
    licence="Apache-2.0",
    source="a directory or a URL with en-de_DE.jsonl",
    codes=same(TRAINED),
    unseen=("is", "kn", "pa", "zu"),
    between="en",
    pivot="en",
    parallel=True,
)
