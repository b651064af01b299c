"""The word segmenters, one file each (EMS v2 section IV-B names Moses, jieba and Juman++).

To add one, write one file, here or in the project's folder `extensions/segmenters/`. Its name,
with `-` for `_`, is a value of `segmenters` in an experiment. Its `SEGMENTER`, an
`ems.text.segmenters.base.Segmenter`, says how to load the tool and what it needs. For several
segmenters in one file, it is a dictionary of records by name:

    SEGMENTER = Segmenter(make=lambda language: lambda lines: [...], needs=(package("toy"),))
"""

from pathlib import Path

__path__.append(str(Path("extensions/segmenters").absolute()))
