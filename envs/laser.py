# /// script
# requires-python = "==3.10.*"
# dependencies = ["laserembeddings[zh,ja]==1.1.2", "setuptools<82"]
# ///
"""LASER (Artetxe and Schwenk 2019, 93 languages) in an environment of its own: lines -> a .npy.

    uv run --script envs/laser.py LINES LANGUAGE OUT

uv (`pip install uv`) reads the lines at the top, makes the environment once and keeps it. Through
laserembeddings, LASER's first model with its own preprocessing: laser_encoders has only LASER2, 3.
The model is downloaded beside the package at the first run. LANGUAGE chooses the tokenizer; a
language that LASER never saw is tokenized as English.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
from laserembeddings import Laser


def main(lines: str, language: str, out: str) -> None:
    """Encode the lines (UTF-8, LF) of a file; float32[n, 1024], a row a line."""
    with open(lines, encoding="utf-8", newline="\n") as reader:
        texts = reader.read().split("\n")[:-1]
    if not Path(Laser.DEFAULT_ENCODER_FILE).is_file():
        subprocess.run([sys.executable, "-m", "laserembeddings", "download-models"], check=True)
    known = "en" if language == "und" else language
    vectors = np.asarray(Laser().embed_sentences(texts, lang=known), np.float32)
    with open(out, "wb") as writer:
        np.save(writer, vectors)


if __name__ == "__main__":
    main(*sys.argv[1:])
