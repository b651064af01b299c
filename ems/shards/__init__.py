"""Token shards: what the trainer reads. One folder per corpus and language pair, memory-mapped.

    <a>.ids <b>.ids           uint16 token ids of all sentences, one after the other
    <a>.offsets <b>.offsets   int64, pairs + 1: sentence i is ids[offsets[i]:offsets[i + 1]]
    manifest.json             languages, pairs, tokens, sha256 of the files and of the vocabulary

A folder without its manifest is no shard; pair i is sentence i of both sides (DESIGN "On disk").
"""
