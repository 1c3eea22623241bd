"""Tables with columns of every kind, as examples and as hypothesis strategies, and the encoders to try them on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from c2tc_pipeline.bench.encoders import LabelEncoder, OneHotPcaEncoder, TargetEncoder
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder

QUICK: dict[str, Any] = {"epochs": 1, "hidden_dim": 4, "device": "cpu"}
"""Settings that train an autoencoder in no time."""

ENCODERS: list[TableEncoder] = [
    HybridEncoder(**QUICK),
    HybridEncoder.as_in_paper(**QUICK),
    HybridEncoder(strings="target", **QUICK),
    LabelEncoder(),
    OneHotPcaEncoder(max_categories=3),
    TargetEncoder(numeric="quantile"),
]

WORDS = ["Husband", "House-husband", "Wife", "Housewife", "Own-child", "Unmarried"]
CODES = ["SFO", "LAX", "JFK", "EWR", "ORD"]


def encoder_name(encoder: TableEncoder) -> str:
    return f"{type(encoder).__name__}-{getattr(encoder, 'strings', '')}".rstrip("-")


each_encoder = pytest.mark.parametrize("encoder", ENCODERS, ids=encoder_name)


def mixed_table(rows: int = 90, *, gaps: bool = True, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows with numbers, dates, flags, codes, words, coded strings and mixed types, and three classes."""
    rng = np.random.default_rng(seed)
    mixed: list[object] = [1, "one", 2, "two"]
    frame = pd.DataFrame(
        {
            "height": rng.normal(170, 9, rows),
            "visits": rng.integers(0, 900, rows),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9_000, rows), unit="D"),
            "is_member": rng.random(rows) < 0.4,
            "ward_code": rng.integers(1, 6, rows),
            "relation": rng.choice(WORDS, rows),
            "airport": rng.choice(CODES, rows),
            "odd": pd.Series([mixed[i] for i in rng.integers(0, 4, rows)], dtype=object),
        }
    )
    if gaps:
        frame = frame.astype({"is_member": object}).mask(rng.random(frame.shape) < 0.1)
    return frame, rng.choice(["early", "late", "on time"], rows)


def new_rows() -> pd.DataFrame:
    """Return rows that :func:`mixed_table` has never seen: unseen strings and codes, far numbers, gaps everywhere."""
    return pd.DataFrame(
        {
            "height": [1e300, -1e300, 171.5, None],
            "visits": [10**9, -(10**9), 17, None],
            "born": pd.to_datetime(["1066-10-14", "2222-02-22", "1999-09-09", "NaT"]),
            "is_member": pd.Series([True, 7, 1.0, None], dtype=object),
            "ward_code": [1, 99, 3, None],
            "relation": ["Husbands", "Grüße 🚀", "", None],
            "airport": ["SFO", "XXX", "sfo", None],
            "odd": pd.Series([1, "three", 4.5, None], dtype=object),
        }
    )


short_text = st.text(alphabet="abA é🚀\t0-", max_size=6)
_CELLS: dict[str, st.SearchStrategy[Any]] = {
    "numeric": st.floats(allow_infinity=False, allow_nan=False),
    "whole": st.integers(-3, 3),
    "string": short_text,
    "code": st.integers(0, 4) | st.sampled_from(["0", "7"]),
    "flag": st.booleans(),
    "mixed": st.integers(0, 4) | st.booleans() | short_text,
}


@st.composite
def labelled_tables(draw: st.DrawFn) -> tuple[pd.DataFrame, np.ndarray, dict[str, str]]:
    """Draw a table with gaps anywhere, its labels, and a role for each column, so that none is dropped."""
    rows = draw(st.integers(2, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(_CELLS)), min_size=1, max_size=4))
    columns, roles = {}, {}
    for number, kind in enumerate(kinds):
        cells = draw(st.lists(st.none() | _CELLS[kind], min_size=rows, max_size=rows))
        name = f"{kind}{number}"
        columns[name] = pd.Series(cells, dtype=None if kind in ("numeric", "whole") and any(cells) else object)
        whole = draw(st.sampled_from(["numeric", "code", "string"]))
        roles[name] = {"whole": whole, "mixed": "string", "flag": "code"}.get(kind, kind)
    labels = draw(st.lists(st.sampled_from("abc"), min_size=rows, max_size=rows))
    return pd.DataFrame(columns), np.array(labels), roles
