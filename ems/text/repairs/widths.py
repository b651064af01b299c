"""Give letters their usual width (`ＡＢＣ` -> `ABC`, `ｶﾞｽ` -> `ガス`).

In Chinese, Japanese and Korean, full-width letters and punctuation are usual and stay.
"""

import re
import unicodedata
from functools import partial

from ems.text.repairs.base import Repair


def repair(language: str) -> Repair:
    full = "" if language in ("zh", "ja", "ko", "yue", "wuu") else "\uff01-\uff5e\uffe0-\uffe6"
    signs = f"[{full}\uff61-\uff9f\uffa1-\uffdc]"
    runs = re.compile(f"{signs}+")
    return Repair(
        ((signs, ""),), partial(runs.sub, lambda run: unicodedata.normalize("NFKC", run[0]))
    )
