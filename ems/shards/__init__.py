"""Token shards, which the trainer reads memory-mapped. Each corpus and language pair has a folder
of numbered shards (`00000/`, `00001/`) of at most a million pairs each. Shards of documents have
the same files for one side, with one sentence per row; no document is split between shards.

    <a>.ids <b>.ids           uint16 token ids of all sentences, one after the other
    <a>.offsets <b>.offsets   int64, pairs + 1: sentence i is ids[offsets[i]:offsets[i + 1]]
    lines                     int64, pairs: the line of the corpus that pair i comes from
    documents                 int64, documents + 1: the row at which each begins, and the end
    manifest.json             languages, pairs, documents, tokens, dropped pairs, lengths (number of
                              sentences of 0 to 9, 10 to 19, ... tokens; the last is open-ended),
                              sha256 of the files and of the vocabulary

Pair i is sentence i of both sides. The manifest of the parent folder has the sums and the sha256 of
each shard's manifest. A folder without a manifest is not a shard.
"""
