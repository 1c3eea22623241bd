"""Forgetting rows, against everything computed anew from the other rows, cluster by cluster."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline import CondensedTable, HybridEncoder, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.forget import Forgotten, forget_rows
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline_tests.tools.made_tables import labelled_frames, mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")


def mean_of(column: pd.Series[Any], members: np.ndarray) -> Any:
    """The mean in the column's units; missing where most members have none."""
    own = column.iloc[members]
    if 2 * int(own.notna().sum()) < len(own):
        return None
    mean = own.mean()
    whole = pd.api.types.is_numeric_dtype(column.dtype) and (column.dropna() % 1 == 0).all()
    return round(mean) if whole else mean


def is_close(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, pd.Timestamp):
        return abs(value - wanted) <= pd.Timedelta(microseconds=2)
    return bool(value == pytest.approx(wanted))


def modes_of(column: pd.Series[Any], members: np.ndarray, kept: np.ndarray) -> set[Any]:
    """The values that most members have; of equals those that are most frequent in the column."""
    spelled = column.astype(object).where(column.notna(), None)
    votes, overall = Counter(spelled.iloc[members]), Counter(spelled.iloc[kept])
    most = max(votes.values())
    best = [value for value, count in votes.items() if count == most]
    top = max(overall[value] for value in best)
    return {value for value in best if overall[value] == top}


def check_forgotten(before: CondensedTable, frame: pd.DataFrame, rows: list[int], found: Forgotten) -> None:
    """Hold a table against one computed anew from its membership and the source; untouched rows must be as before."""
    after, label = found.table, before.label_name
    old = before.membership.set_index("source_row")["condensed_row"]
    new = after.membership.set_index("source_row")["condensed_row"]
    kept = [row for row in old.index if row not in rows]
    assert new.index.tolist() == kept
    assert found.rows == len(old) - len(kept)
    # The same membership: rows that shared a condensed row share one, and the others do not.
    pairs = {(int(old[row]), int(new[row])) for row in kept}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(after)
    assert found.disappeared == len(before) - len(after)
    assert after.weight.tolist() == np.bincount(new, minlength=len(after)).tolist()
    touched = {int(old[row]) for row in old.index if row in rows}
    numeric = {row["column"] for row in before.roles.to_dict("records") if row["role"] == Role.NUMERIC.value}
    dropped = {row["column"] for row in before.roles.to_dict("records") if row["role"] == Role.DROP.value}
    condensed, rows_of = frame.iloc[old.index], frame.iloc[kept]
    encoded = before.encoder.encode_training(rows_of, rows_of[label], row_ids=np.array(kept)).astype(np.float64)
    for number, place in sorted(pairs):
        if number not in touched:
            pd.testing.assert_series_equal(after.X.iloc[place], before.X.iloc[number], check_names=False, rtol=0)
            same = [a == b or (pd.isna(a) and pd.isna(b)) for a, b in row_pairs(after, place, before, number)]
            assert all(same)
            continue
        members = np.array([row for row in kept if new[row] == place])
        own = encoded[np.searchsorted(kept, members)]
        np.testing.assert_allclose(after.X.iloc[place], own.mean(axis=0), atol=2e-6)
        assert after.original[label].iloc[place] == frame[label].iloc[members[0]]
        for name in after.original.columns.drop(label):
            value = after.original[name].iloc[place]
            if name in numeric:
                wanted = mean_of(condensed[name], np.searchsorted(old.index, members))
                assert pd.isna(value) if wanted is None else is_close(value, wanted)
            elif name not in dropped:
                assert (None if pd.isna(value) else value) in modes_of(frame[name], members, np.array(kept))
    assert found.recomputed == len({b for a, b in pairs if a in touched})
    assert after.class_rows == [int((rows_of[label] == value).sum()) for value in after.classes]
    assert after.classes == sorted(rows_of[label].unique())
    assert after.summary["rows_in"] == len(kept)
    assert after.summary["rows_out"] == len(after) == int(after.allocation.counts.sum())
    assert after.summary["singletons"] == int((after.weight == 1).sum())
    assert (after.projection["kind"] == "source").sum() == min(len(kept), 2_000)
    means = pd.DataFrame(encoded).groupby(new.to_numpy()).mean().to_numpy()
    losses = pd.Series(((encoded - means[new.to_numpy()]) ** 2).sum(axis=1)).groupby(rows_of[label].to_numpy()).sum()
    sizes = np.array(after.class_rows, dtype=np.float64)
    measured = float((losses.to_numpy() / sizes**after.allocation.gamma).sum())
    assert after.allocation.objective == pytest.approx(measured, rel=1e-4, abs=1e-9)
    np.testing.assert_allclose(after.encoder.transform(rows_of), before.encoder.transform(rows_of), atol=1e-5)


def row_pairs(after: CondensedTable, place: int, before: CondensedTable, number: int) -> list[tuple[Any, Any]]:
    return [(after.original[name].iloc[place], before.original[name].iloc[number]) for name in after.original.columns]


@settings(max_examples=8)
@given(data=st.data(), frame=labelled_frames(), ratio=st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_any_rows_of_any_table(data: st.DataObject, frame: pd.DataFrame, ratio: float) -> None:
    small = condense(frame, "outcome", ratio)
    rows = data.draw(st.lists(st.integers(0, len(frame) - 1), unique=True, max_size=len(frame)))
    left = frame.drop(rows)["outcome"].nunique()
    if left < 2:
        with pytest.raises(InputError, match="one class only"):
            forget_rows(small, frame, np.array(rows))
        return
    found = forget_rows(small, frame, np.array(rows, dtype=int))
    if set(rows).isdisjoint(small.membership["source_row"]):
        assert found.table is small
        return
    check_forgotten(small, frame, rows, found)
    # Bit by bit or all at once: the same.
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    steps = forget_rows(forget_rows(small, frame, np.array(first, dtype=int)).table, frame, np.array(second, dtype=int))
    pd.testing.assert_frame_equal(steps.table.membership, found.table.membership)
    # Class shares are those of the rows that were left when a condensed row was made again.
    sources = small.encoder.sources()
    alike = [str(name) for name in small.X if not {"carrier", "day"} & set(sources[str(name)])]
    np.testing.assert_allclose(steps.table.X[alike], found.table.X[alike], atol=1e-6)
    assert steps.table.summary["forgotten"]["rows"] == found.rows


@pytest.mark.parametrize("words", [False, True], ids=["codes", "words"])
def test_columns_of_every_kind(words: bool) -> None:
    frame = mixed_table(200, words=words)
    small = condense(frame, "outcome", 0.1)
    rows = [0, 7, 50, 51, 52, 199]
    found = forget_rows(small, frame, np.array(rows))
    check_forgotten(small, frame, rows, found)
    assert found.table.original.dtypes.tolist() == small.original.dtypes.tolist()
    assert small.summary["rows_in"] == 200, "the table before must stay as it was"


@pytest.mark.parametrize("labels", [[7, 8], [True, False], [0.5, 1.5], ["?", "é"]], ids=str)
def test_labels_of_every_kind(labels: list[Any], tmp_path: Path) -> None:
    frame = mixed_table(60, classes=2).assign(outcome=np.array(labels * 30))
    condense(frame, "outcome", 0.2).save(tmp_path / "small")
    small = CondensedTable.load(tmp_path / "small")
    found = forget_rows(small, frame, np.array([4, 5, 30]))
    check_forgotten(small, frame, [4, 5, 30], found)
    assert set(found.table.projection["label"]) == set(labels)
    found.table.save(tmp_path / "small", replace=True)
    pd.testing.assert_frame_equal(CondensedTable.load(tmp_path / "small").original, found.table.original)


def test_a_condensed_row_and_a_class_disappear() -> None:
    frame = mixed_table(90, classes=3)
    small = condense(frame, "outcome", 0.3)
    group = small.membership["condensed_row"]
    lost = group.index[group == 0].tolist()
    found = forget_rows(small, frame, np.array(lost))
    check_forgotten(small, frame, lost, found)
    assert found.disappeared == 1
    rarest = frame["outcome"].value_counts().index[-1]
    lost = frame.index[frame["outcome"] == rarest].tolist()
    found = forget_rows(small, frame, np.array(lost))
    check_forgotten(small, frame, lost, found)
    assert rarest not in found.table.classes
    assert all(len(step.counts) == 2 for step in found.table.allocation.trace)


def test_below_the_minimum_neighbours_of_the_class_are_joined() -> None:
    frame = mixed_table(200, classes=2)
    small = condense(frame, "outcome", 0.05, min_rows_per_condensed_row=8)
    group = small.membership["condensed_row"].to_numpy()
    smallest = int(small.weight.argmin())
    lost = np.flatnonzero(group == smallest)[: int(small.weight.min()) - 2]
    found = forget_rows(small, frame, lost)
    assert (found.merged, found.disappeared, len(found.table)) == (1, 0, len(small) - 1)
    assert found.table.weight.min() >= 8
    # The two rows that were left went together, to the nearest mean of their class.
    left = np.setdiff1d(np.flatnonzero(group == smallest), lost)
    now = found.table.membership.set_index("source_row")["condensed_row"]
    [joined] = set(now[left])
    partner = {int(g) for g in group[now.index[now == joined]]} - {smallest}
    kept = np.setdiff1d(np.arange(len(frame)), lost)
    rows = frame.iloc[kept]
    encoded = small.encoder.encode_training(rows, rows["outcome"], row_ids=kept).astype(np.float64)
    own = encoded[np.searchsorted(kept, left)].mean(axis=0)
    same_class = np.flatnonzero((small.y == small.y[smallest]) & (np.arange(len(small)) != smallest))
    assert partner == {int(same_class[((small.X.to_numpy()[same_class] - own) ** 2).sum(axis=1).argmin()])}
    members = now.index[now == joined]
    mean = encoded[np.searchsorted(kept, members)].mean(axis=0)
    np.testing.assert_allclose(found.table.X.iloc[joined], mean, atol=2e-6)


def test_a_class_below_the_minimum_is_refused() -> None:
    frame = mixed_table(60, classes=2).assign(outcome=["rare"] * 6 + ["usual"] * 54)
    small = condense(frame, "outcome", 0.05, min_rows_per_condensed_row=5)
    with pytest.raises(InputError, match=r"'rare'.* 4 rows"):
        forget_rows(small, frame, np.array([0, 1]))


def test_medoids_are_chosen_anew_among_the_others() -> None:
    frame = mixed_table(120)
    small = condense(frame, "outcome", 0.1, representative="medoid")
    group = small.membership["condensed_row"].to_numpy()
    encoded = small.encoder.encode_training(frame, frame["outcome"])
    medoid = int(np.flatnonzero((encoded == small.X.iloc[0].to_numpy()).all(axis=1) & (group == 0))[0])
    found = forget_rows(small, frame, np.array([medoid]))
    kept = np.setdiff1d(np.arange(len(frame)), [medoid])
    rows = frame.iloc[kept]
    encoded[kept] = small.encoder.encode_training(rows, rows["outcome"], row_ids=kept)
    members = np.setdiff1d(np.flatnonzero(group == 0), [medoid])
    gaps = ((encoded[members] - encoded[members].mean(axis=0, dtype=np.float64)) ** 2).sum(axis=1)
    wanted = members[gaps.argmin()]
    np.testing.assert_array_equal(found.table.X.iloc[0], encoded[wanted])
    assert found.table.original.iloc[0].tolist() == frame[found.table.original.columns].iloc[wanted].tolist()


def test_strings_of_forgotten_rows_leave_the_encoder() -> None:
    frame = mixed_table(100).assign(port="SFO")
    frame["port"] = ["LAX" if i % 3 else "JFK" for i in range(100)]
    frame.loc[5, "port"] = "QQQ"
    small = condense(frame, "outcome", 0.1)
    found = forget_rows(small, frame, np.array([5]))
    assert (found.strings_removed, found.strings_kept) == (1, 0)
    assert "QQQ" in str([part.state().values for part in small.encoder.parts_])
    assert "QQQ" not in str([part.state().values for part in found.table.encoder.parts_])


def test_another_source_is_refused() -> None:
    frame = mixed_table(80)
    small = condense(frame, "outcome", 0.1)
    for other in (
        frame.iloc[:40],
        frame.drop(columns="age"),
        frame.assign(outcome=frame["outcome"].to_numpy()[::-1]),
        frame.assign(outcome=frame["outcome"].mask(frame.index == 9)),
    ):
        with pytest.raises(InputError, match="made from another source"):
            forget_rows(small, other, np.array([0]))


def test_noise_is_refused() -> None:
    frame = mixed_table(80)
    small = condense(frame, "outcome", 0.1, encoder=HybridEncoder(strings="target", noise=0.1))
    with pytest.raises(InputError, match="encoded with noise"):
        forget_rows(small, frame, np.array([0]))
