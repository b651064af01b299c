"""The devices that laws run on, a CPU and a GPU where there is one, and the systems to try."""

import torch

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
STILL = {"dropout": 0.0, "attention_dropout": 0.0}
SIZES = {**STILL, "layers": 2, "width": 64, "heads": 4, "feed_forward": 128}
TABLE = {"table": 48, "ngrams": 500}
PLAIN = {"contrastive": {"width": 0}}  # no MLP
NO_XTR = {"xtr": {"weight": 0}}
OBJECTIVES = {
    "EMS": {},
    "without an MLP": PLAIN,
    "a margin alone": {**NO_XTR, "contrastive": {"width": 0, "margin": 0.3}},
    "distinct": {"xtr": {"target": "distinct"}, "contrastive": {"width": 0, "negatives": 8}},
    "sampled": {"xtr": {"sampled": 50}, **PLAIN},
    "UGT": {**NO_XTR, "ugt": {"weight": 1}, "contrastive": {"width": 0, "mask_duplicates": True}},
    "Lightweight": {
        **NO_XTR,
        "contrastive": {"weight": 0},
        **{name: {"weight": 1} for name in ("smlm", "align", "similarity")},
    },
    "MLM": {"mlm": {"weight": 1}, **PLAIN},
    "prefixes": {"matryoshka": {"weight": 1, "dimensions": [8, 32]}, **PLAIN},
}
# our recipe (`ems-plus` of small62), and the same vectors beside layers
PLUS = {
    **NO_XTR,
    "contrastive": {"width": 0, "temperature": 0.05, "margin": 0.4, "mask_duplicates": True},
}
SYSTEMS = {name: ({}, objectives) for name, objectives in OBJECTIVES.items()}
SYSTEMS |= {"a table": ({**TABLE, "layers": 0}, PLUS), "a table beside layers": (TABLE, PLUS)}
