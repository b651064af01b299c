"""Moses with `-a`: a hyphen between letters becomes `@-@`."""

from ems.text.segmenters.moses import with_flags

SEGMENTER = with_flags("-a", "-no-escape")
