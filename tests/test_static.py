"""The encoder without layers in NumPy: PyTorch's vectors, and the same bits in any company."""

import random
from pathlib import Path

import numpy as np
import pytest
from made.models import write_model
from made.places import SHARED

from ems.base.errors import Damaged
from ems.model.encode import SentenceEncoder
from ems.model.static import StaticEncoder, Table, load_encoder
