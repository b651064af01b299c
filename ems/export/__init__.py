"""A trained encoder as a folder that sentence-transformers, transformers and onnxruntime load."""
