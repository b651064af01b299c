"""Accuracy and average precision per language; no paper of ours prints them."""

from ems.tables.declarations import accuracy_table

TABLES = {
    "pawsx": accuracy_table(
        "pawsx", "PAWS-X, cosine with the threshold of English dev; Avg. without English"
    ),
}
