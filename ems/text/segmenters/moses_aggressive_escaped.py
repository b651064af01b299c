"""Moses with `-a` and escapes, the default of the package mosestokenizer."""

from ems.text.segmenters.moses import with_flags

SEGMENTER = with_flags("-a")
