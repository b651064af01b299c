"""xsim++: xsim with slightly altered English sentences among the candidates."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
