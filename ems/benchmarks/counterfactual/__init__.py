"""Amazon counterfactual sentences: does a review describe something that did not happen?"""

from ems.config.benchmarks import ProbeSettings
from ems.config.plugins import read_record

BENCHMARK = read_record(__file__, probe=ProbeSettings)
