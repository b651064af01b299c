"""Token shards: what the trainer reads. A folder per corpus and language pair, and in it numbered
shards of at most a million pairs each (`00000/`, `00001/`), memory-mapped. Documents of one
language have the same files of one side, a sentence for a pair; none lies in two shards.

    <a>.ids <b>.ids           uint16 token ids of all sentences, one after the other
    <a>.offsets <b>.offsets   int64, pairs + 1: sentence i is ids[offsets[i]:offsets[i + 1]]
    lines                     int64, pairs: the line of the corpus that pair i comes from
    documents                 int64, documents + 1: the row at which each begins, and the end
    manifest.json             languages, pairs, documents, tokens, pairs dropped, lengths (sentences
                              per length of 0 to 9, 10 to 19, ... tokens; the last: all longer
                              ones), sha256 of the files and of the vocabulary

The manifest of the folder around them adds them up and lists each shard's manifest by its sha256.
A folder without its manifest is no shard; pair i is sentence i of both sides.
"""
