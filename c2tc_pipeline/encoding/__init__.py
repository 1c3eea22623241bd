"""From raw columns to numbers in [0, 1]: HCFE and the encodings it is compared with.

What belongs here: fitting to training rows, encoding any rows, storing what was learnt. What does not: which rows are
training rows, and what the encoded rows are for.
"""

from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder
from c2tc_pipeline.encoding.onehot import OneHotPcaEncoder
from c2tc_pipeline.encoding.storage import load_encoder, save_encoder
from c2tc_pipeline.encoding.string_choice import StringChoice
from c2tc_pipeline.encoding.target_encoder import TargetEncoder

__all__ = [
    "HybridEncoder",
    "LabelEncoder",
    "OneHotPcaEncoder",
    "StringChoice",
    "TableEncoder",
    "TargetEncoder",
    "load_encoder",
    "save_encoder",
]
