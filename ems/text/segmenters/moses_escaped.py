"""Moses with escapes: an apostrophe becomes `&apos;`."""

from ems.text.segmenters.moses import with_flags

SEGMENTER = with_flags()
