"""Moses with escapes: an apostrophe becomes `&apos;`."""

from ems.segmenters.moses import with_flags

SEGMENTER = with_flags()
