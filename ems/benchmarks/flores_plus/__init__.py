"""FLORES+: FLORES-200 as corrected and extended by the Open Language Data Initiative."""

from ems.config.plugins import read_record

BENCHMARK = read_record(__file__)
