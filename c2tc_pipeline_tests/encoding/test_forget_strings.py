"""Strings taken out of an encoder: those that nobody has any more, and only where others' codes stay the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder
from c2tc_pipeline.encoding.onehot import OneHotPcaEncoder
from c2tc_pipeline.encoding.storage import load_encoder, save_encoder, without_unused_strings
from c2tc_pipeline_tests.encoding.mixed_tables import ENCODERS, QUICK, encoder_name, mixed_table


def test_categories_by_target_go() -> None:
    rows = pd.DataFrame({"port": ["SFO", "LAX", "JFK", None, "SFO"], "day": [1, 2, 3, 1, 2]})
    encoder = HybridEncoder(strings="target", roles={"day": "code"}).fit(rows, [0, 1, 1, 0, 1])
    left = rows.iloc[[0, 3, 4]]
    trimmed = without_unused_strings(encoder, left)
    assert (trimmed.removed, trimmed.kept) == (3, 0)
    np.testing.assert_array_equal(trimmed.encoder.transform(left), encoder.transform(left))
    # What is gone is as if it had never been seen.
    np.testing.assert_array_equal(
        trimmed.encoder.transform(rows.iloc[[1]]),
        encoder.transform(pd.DataFrame({"port": ["XXX"], "day": [2]})),
    )


def test_a_string_stays_while_another_resembles_it() -> None:
    rows = pd.DataFrame({"job": ["head nurse", "night nurse", "cook", "ivy", "head nurse", "cook"]})
    encoder = HybridEncoder(strings="similarity", **QUICK).fit(rows, [0, 1, 0, 1, 0, 1])
    left = rows.iloc[[0, 2, 4, 5]]
    trimmed = without_unused_strings(encoder, left)
    # "night nurse" shares letters with "head nurse", "ivy" with nothing that is left.
    assert (trimmed.removed, trimmed.kept) == (1, 1)
    [part] = trimmed.encoder.parts_
    assert sorted(part.state().values["prototypes"][0]) == ["cook", "head nurse", "night nurse"]
    np.testing.assert_allclose(trimmed.encoder.transform(left), encoder.transform(left), atol=1e-6)


@pytest.mark.parametrize("encoder", ENCODERS, ids=encoder_name)
def test_remaining_rows_are_encoded_as_before(encoder: HybridEncoder, tmp_path: object) -> None:
    rows, labels = mixed_table()
    encoder = clone(encoder).fit(rows, labels)
    left = rows.iloc[::7]
    trimmed = without_unused_strings(encoder, left)
    np.testing.assert_allclose(trimmed.encoder.transform(left), encoder.transform(left), atol=1e-6)
    save_encoder(trimmed.encoder, str(tmp_path))
    np.testing.assert_array_equal(load_encoder(str(tmp_path)).transform(left), trimmed.encoder.transform(left))
    unchanged = without_unused_strings(encoder, rows)
    assert (unchanged.removed, unchanged.kept) == (0, 0)


@pytest.mark.parametrize("encoder", [HybridEncoder(roles={"branch": "code"}), LabelEncoder(), OneHotPcaEncoder()])
def test_values_that_cannot_go_are_counted(encoder: TableEncoder) -> None:
    # Of a column of two values one is 0 and the other 1, because there are both.
    rows = pd.DataFrame({"branch": [1001, 1002] * 6, "amount": np.arange(12) / 7})
    encoder = encoder.set_params(roles={"branch": "code"}).fit(rows, [0, 0, 1, 1] * 3)
    left = rows.iloc[::2]
    trimmed = without_unused_strings(encoder, left)
    assert (trimmed.removed, trimmed.kept) == (0, 1)
    np.testing.assert_array_equal(trimmed.encoder.transform(left), encoder.transform(left))
