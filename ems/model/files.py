"""The files of a model folder besides model.json, which names them and is written last."""

ENCODER = "model.safetensors"
HEADS = "heads.safetensors"  # of training alone
VOCABULARY = "vocabulary.model"
