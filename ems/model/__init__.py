"""The encoder, its pooling, and the heads of the training objectives (EMS v2 section III)."""
