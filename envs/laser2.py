# /// script
# requires-python = "==3.10.*"
# dependencies = [
#     "laser_encoders==0.0.2",
#     "torch==2.5.1",  # 2.6 refuses its checkpoint
#     "torchaudio==2.5.1",
#     "numpy==1.23.5",  # fairseq's time
#     "setuptools<82",
# ]
# ///
"""LASER2 (Heffernan et al. 2022) in an environment of its own: lines of a file -> a .npy.

    uv run --script envs/laser2.py LINES LANGUAGE OUT

uv (`pip install uv`) reads the lines at the top, makes the environment once and keeps it; the model
is downloaded to ~/.cache/laser_encoders at first. It is one encoder for all languages: LANGUAGE
is not used. fairseq, which laser_encoders needs, is why this cannot be part of our environment: it
has no release for Python 3.11. It is built from source, so a C++ compiler is needed once.
"""

import sys

import numpy as np
from laser_encoders import LaserEncoderPipeline


def main(lines: str, _: str, out: str) -> None:
    """Encode the lines (UTF-8, LF) of a file; float32[n, 1024], a row a line."""
    with open(lines, encoding="utf-8", newline="\n") as reader:
        texts = reader.read().split("\n")[:-1]
    encoder = LaserEncoderPipeline(lang="eng_Latn")  # of any language LASER2 knows: one model
    vectors = np.asarray(encoder.encode_sentences(texts), np.float32)
    with open(out, "wb") as writer:
        np.save(writer, vectors)


if __name__ == "__main__":
    main(*sys.argv[1:])
