"""Text of one's own in each form that an experiment takes, plain and packed."""

import bz2
import gzip
import json
import lzma

from conftest import needs

PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
FORMS = ("tsv", "two", "jsonl", "translation", "parquet", "columns")


def packed(content, suffix):
    """The bytes as they are in a file with this suffix."""
    if suffix != ".zst":
        return PACKERS[suffix](content)
    zstd = package_of("zstd", "backports.zstd")
    return zstd.compress(content)


def package_of(name, package):
    """A package of the extra `files`, or the test is skipped."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        needs(None, f"{name}: pip install -e '.[files]'")


def write_form(folder, form, codes, rows, suffix=""):
    """Write rows of two texts in a form; what stands under `files` of the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    first, second = codes
    path = folder / f"mine.{first}-{second}"
    if form in ("parquet", "columns"):
        return str(_parquet(path, form, codes, rows))
    if form == "two":
        texts = zip(*rows, strict=True)
        paths = [path.with_name(f"mine.{code}{suffix}") for code in codes]
        for place, column in zip(paths, texts, strict=True):
            place.write_bytes(packed("".join(f"{text}\n" for text in column).encode(), suffix))
        return list(map(str, paths))
    lines = {
        "tsv": lambda row: "\t".join(row),
        "jsonl": lambda row: json.dumps(dict(zip(codes, row, strict=True)), ensure_ascii=False),
        "translation": lambda row: json.dumps({"translation": dict(zip(codes, row, strict=True))}),
    }[form]
    ending = "tsv" if form == "tsv" else "jsonl"
    place = path.with_name(f"{path.name}.{ending}{suffix}")
    place.write_bytes(packed("".join(f"{lines(row)}\n" for row in rows).encode(), suffix))
    return str(place)


def _parquet(folder, form, codes, rows):
    """A folder as the Hugging Face hub has it: two files to train on, one to test."""
    pyarrow = package_of("parquet", "pyarrow")
    parquet = package_of("parquet", "pyarrow.parquet")
    half = len(rows) // 2
    parts = {"train-0": rows[:half], "train-1": rows[half:], "test-0": [("no", "no")]}
    (folder / "data").mkdir(parents=True)
    for name, part in parts.items():
        values = [dict(zip(codes, row, strict=True)) for row in part]
        if form == "parquet":
            values = [{"id": at, "translation": value} for at, value in enumerate(values)]
        table = pyarrow.Table.from_pylist(values)
        parquet.write_table(table, folder / "data" / f"{name}-of-00002.parquet")
    return folder
