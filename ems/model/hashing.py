"""How n-grams of letters are hashed to rows of a table. An exported model has this file."""

WEIGHT = 4  # weight of n-grams, about eight per piece; 1, 2 and 8 are worse (docs/log.md)
MOST = 4  # letters in an n-gram, at most; at least 2
LONGEST = 32  # letters of a piece that are used; a piece has up to 16 characters
GAP = ord(" ")
BASE, MIX = 0x100000001B3, 0x1E3779B97F4A7C15  # for hashes of 64 bits, which wrap around
POSITIVE, SHIFT = 0x7FFFFFFFFFFFFFFF, 24  # keep the highest bits, which are mixed best
