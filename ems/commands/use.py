"""Commands that use an encoder: encode lines, score and mine pairs, search, serve."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from ems.base.errors import EmsError, needs_extra
from ems.base.outputs import Writes
from ems.commands import common
from ems.commands.flags import Bounds, Mark

MODEL = "model folder, exported folder, or sentence-transformers model (default: the one in EMS)"
ModelName = Annotated[str | None, MODEL, Mark.PLACE]
LineLanguage = Annotated[str | None, "language of the lines, if the model segments by language"]
OtherLanguage = Annotated[str | None, "language of the second side"]
QueryLanguage = Annotated[str | None, "language of the queries, if the model segments by language"]
TextPath = Annotated[Path, "text with a sentence per line, or compressed; - for stdin", Mark.STREAM]
VectorsPath = Annotated[Path, "file .npy or .f32; - for stdout", Mark.STREAM, Writes()]
PairLines = Annotated[Path, "TSV with a pair per line, or compressed; - for stdin", Mark.STREAM]
BAD = "action for a line that is not UTF-8, has a NUL or over 1 MB"
BadLines = Annotated[Literal["error", "skip"], BAD]
Device = Annotated[Literal["auto", "cpu", "cuda"], "device; auto: a GPU if there is one"]
PRODUCTS = "precision of matrix products; int8 on a CPU only"
Precision = Annotated[Literal["float32", "bfloat16", "int8"], PRODUCTS]
MARGIN = "score relative to the neighbours; absolute: the cosine"
MarginKind = Annotated[Literal["ratio", "distance", "absolute"], MARGIN]
NeighbourCount = Annotated[int, "number of neighbours, for the margin", Bounds(1, 100)]
MANY = "many: a folder of NAME.de and NAME.fr; or a TSV of two paths, or of Bitextor"
FORM = "form of the output; moses: two files, OUT.<language>"
Faiss = Annotated[int, "lines above which faiss searches (default: never)", Bounds(0, 1 << 40)]


def encode(
    model: ModelName = None,
    text: Annotated[Path | None, "same as --source", Mark.POSITIONAL, Mark.STREAM] = None,
    source: TextPath = Path("-"),
    out: VectorsPath = Path("-"),
    language: LineLanguage = None,
    normalise: Annotated[bool, "vectors of length 1"] = False,
    half: Annotated[bool, "vectors of float16"] = False,
    dimensions: common.Dimensions = 0,
    bad: BadLines = "error",
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Encode the lines of a text to vectors."""
    from ems.use import files
    from ems.use.encoder import Encoder
    from ems.use.stream import TextInput

    if half and out.suffix == ".f32":
        raise EmsError(f"--out {out}: .f32 holds float32; with --half write to .npy")
    if text and source != Path("-"):
        raise EmsError(f"{text}: --source {source} is a text, too; give one of them")
    lines = TextInput(text or source, (language,), bad == "skip")
    form = files.VectorForm(dimensions, normalise, half)
    files.encode(Encoder(model, device, precision), lines, out, form)


def score(
    model: ModelName = None,
    source: PairLines = Path("-"),
    out: Annotated[Path, "file to write; - for stdout", Mark.STREAM, Writes()] = Path("-"),
    source_language: LineLanguage = None,
    target_language: OtherLanguage = None,
    margin: MarginKind = "absolute",
    neighbours: NeighbourCount = 4,
    threshold: Annotated[float | None, "minimum score; writes the rows themselves"] = None,
    bad: BadLines = "error",
    device: Device = "auto",
    precision: Precision = "float32",
    faiss_above: Faiss = 0,
) -> None:
    """Score pairs of sentences, or filter them by score."""
    from ems.use import files, mining
    from ems.use.encoder import Encoder
    from ems.use.stream import TextInput

    encoder = Encoder(model, device, precision)
    pairs = TextInput(source, (source_language, target_language), bad == "skip")
    if margin == "absolute":
        files.score(encoder, pairs, out, threshold)
    else:
        search = mining.SearchOptions(neighbours, margin, device, faiss_above, threshold)
        mining.score_by_margin(encoder, pairs, out, search)


def mine(
    *,
    model: ModelName = None,
    source: TextPath,
    target: TextPath,
    out: Annotated[Path, "TSV to write: score, source, target", Writes()],
    source_language: LineLanguage = None,
    target_language: OtherLanguage = None,
    neighbours: NeighbourCount = 4,
    margin: MarginKind = "ratio",
    threshold: Annotated[float | None, "minimum score"] = None,
    one_to_one: Annotated[bool, "pairs that use each line at most once"] = False,
    numbers: Annotated[bool, "two more columns: the line numbers of both sides"] = False,
    bad: BadLines = "error",
    device: Device = "auto",
    precision: Precision = "float32",
    faiss_above: Faiss = 0,
) -> None:
    """Find likely translation pairs in two texts."""
    from ems.use import mining
    from ems.use.encoder import Encoder
    from ems.use.stream import TextInput

    encoder, skip = Encoder(model, device, precision), bad == "skip"
    sides = ((source, source_language), (target, target_language))
    texts = [TextInput(path, (language,), skip) for path, language in sides]
    search = mining.SearchOptions(neighbours, margin, device, faiss_above, threshold, one_to_one)
    mining.mine(encoder, texts, out, search, numbers)


def align(
    *,
    model: ModelName = None,
    source: Annotated[Path | None, "document with a sentence per line, or compressed"] = None,
    target: Annotated[Path | None, "its translation"] = None,
    documents: Annotated[Path | None, MANY, Mark.STREAM] = None,
    out: Annotated[Path, "file to write; - for stdout", Mark.STREAM, Writes()] = Path("-"),
    format: Annotated[Literal["tsv", "jsonl", "moses", "tmx", "vecalign", "html"], FORM] = "tsv",
    source_language: LineLanguage = None,
    target_language: OtherLanguage = None,
    split: Annotated[bool, "splitting of lines into sentences"] = False,
    largest: Annotated[int, "most sentences of an alignment, both sides", Bounds(2, 32)] = 8,
    threshold: Annotated[float | None, "minimum score; without it, also lone sentences"] = None,
    threads: Annotated[int, "processes for --documents", Bounds(1, 1024)] = 1,
    bad: BadLines = "error",
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Align the sentences of translated documents."""
    # numpy reads them once; its products are small here
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    from ems.use import aligned

    languages = source_language, target_language
    job = aligned.AlignJob(model, languages, largest, split, bad == "skip", device, precision)
    output = aligned.Output(out, format, languages, threshold)
    if documents and not (source or target):
        aligned.align_documents(job, documents, output, threads)
    elif source and target and not documents:
        aligned.align_files(job, source, target, output)
    else:
        raise EmsError("expected --source and --target, or --documents")


def check_model(model: common.ModelFolder) -> None:
    """Check the checksums and weights of a model, and one vector."""
    from ems.use import files

    common.log.info("%s: %s files are whole", model, files.check_model(model))


def search(
    *,
    model: ModelName = None,
    index: Annotated[Path, "text to search; its index is the folder NAME.index"],
    query: Annotated[str, "text to search for", Mark.POSITIONAL] = "",
    queries: Annotated[Path | None, "text with a query per line; - for stdin", Mark.STREAM] = None,
    build: Annotated[bool, "writing of the index, for later searches"] = False,
    k: Annotated[int, "number of lines to show", Bounds(1, 1000)] = 5,
    language: LineLanguage = None,
    query_language: QueryLanguage = None,
    half: Annotated[bool, "index of float16"] = False,
    bad: BadLines = "error",
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Find the lines of a text that mean the same as a query."""
    from ems.base.texts import STREAM, one_field
    from ems.use.encoder import Encoder
    from ems.use.search import build_index, index_folder, index_of
    from ems.use.stream import TextInput

    texts: dict[int, str] = {0: query} if query else {}  # by line number
    if queries or not (build or query or (sys.stdin and sys.stdin.isatty())):
        texts.update(TextInput(queries or STREAM, (query_language,), bad == "skip").texts())
    if not (build or texts or queries):
        raise EmsError("ems search: expected a query, --queries or --build, found none")
    encoder = Encoder(model, device, precision)
    corpus = TextInput(index, (language,), bad == "skip")
    if build:
        build_index(encoder, corpus, index_folder(index), half)
    if not texts:
        return
    with index_of(encoder, corpus) as opened_index:
        results = opened_index.search(list(texts.values()), query_language, k)
    for number, hits in zip(texts, results, strict=True):
        prefix = f"{number}\t" if queries or len(texts) > 1 else ""
        for hit in hits:
            language = "" if hit.language is None else f"{hit.language}\t"
            line = one_field(hit.line)
            sys.stdout.write(f"{prefix}{hit.score:.4f}\t{hit.number}\t{language}{line}\n")


def serve(
    model: ModelName = None,
    index: Annotated[Path | None, "text to search; its index is the folder NAME.index"] = None,
    build: Annotated[bool, "writing of the index, for later starts"] = False,
    host: Annotated[str, "address to listen on"] = "127.0.0.1",
    port: Annotated[int, "port; 0: any free port", Bounds(0, 65535)] = 8000,
    language: LineLanguage = None,
    query_language: QueryLanguage = None,
    bad: BadLines = "error",
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Serve a search page and OpenAI's API of embeddings."""
    import signal
    from contextlib import ExitStack

    from ems.use.encoder import Encoder
    from ems.use.search import build_index, index_folder, index_of
    from ems.use.stream import TextInput

    with needs_extra("ems serve", "serve"):
        from ems.use import serve as server
    if build and not index:
        raise EmsError("--build: expected a text with --index, found none")
    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, signal.default_int_handler)
            stack.callback(signal.signal, number, before)
        encoder, opened = Encoder(model, device, precision), None
        if index:
            corpus = TextInput(index, (language,), bad == "skip")
            if build:
                build_index(encoder, corpus, index_folder(index))
            opened = stack.enter_context(index_of(encoder, corpus))
        server.serve(server.Service(encoder, opened, language, query_language), host, port)


def align_documents(
    *,
    model: ModelName = None,
    source: Annotated[Path, "folder of documents with a sentence per line, or compressed"],
    target: Annotated[Path, "folder of documents in another language"],
    out: Annotated[Path, "TSV to write: score, source path, target path", Writes()],
    source_language: LineLanguage = None,
    target_language: OtherLanguage = None,
    threshold: Annotated[float | None, "minimum score"] = None,
    bad: BadLines = "error",
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Find the documents of two folders that are translations."""
    from ems.use import align_documents as documents
    from ems.use.encoder import Encoder

    encoder, skip = Encoder(model, device, precision), bad == "skip"
    first = documents.DocumentFolder(source, (source_language,), skip)
    second = documents.DocumentFolder(target, (target_language,), skip)
    documents.align_documents(encoder, (first, second), out, threshold, device)
