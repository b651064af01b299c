"""ParaCrawl v5: finding the translations of 2,000 sentences among 200,000."""

from ems.config.benchmarks import DrawnProtocol
from ems.config.plugins import read_record

BENCHMARK = read_record(__file__, protocol=DrawnProtocol)
