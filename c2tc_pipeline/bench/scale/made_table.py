"""A made table of any size, on disk as Parquet parts: mixed columns, skewed classes, and something to learn.

Every class is a mixture of normal distributions in a space of few dimensions, and every column shows one direction of
that space through noise: as a number with a heavy tail, as a count, as a code, or as words of which neighbours share
their letters. Every part is made from its own seed, so that a smaller table is the beginning of a larger one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LABEL = "outcome"
PART_ROWS = 500_000
CLASSES = ("none", "minor", "moderate", "severe", "fatal")
CLASS_SHARES = (0.6, 0.25, 0.1, 0.04, 0.01)
_DIMENSIONS = 8
_CENTRES_A_CLASS = 6
_GROUP_ROWS = 2**17

_AMOUNTS = ("income", "debt", "distance", "duration", "rainfall", "pressure", "speed")
_COUNTS = ("age", "visits", "number_of_cars")
_CODES = {"road_type": 9, "weekday": 7, "district_code": 60}
_FLAGS = ("is_urban", "has_insurance")
_STEMS = ("senior", "junior", "assistant", "chief", "deputy", "retired", "freelance", "trainee")
_ENDS = ("engineer", "nurse", "teacher", "driver", "cook", "clerk", "farmer", "welder", "pilot", "painter", "guard")
_PLACES = ("north", "south", "east", "west", "upper", "lower", "old", "new", "great", "little")
_TOWNS = ("field", "bridge", "haven", "mouth", "wood", "ford", "ham", "ton", "bury", "stead", "worth", "minster")
_WEATHERS = ("clear sky", "clear and windy", "light rain", "heavy rain", "light snow", "heavy snow", "fog", "dense fog")


def vocabularies() -> dict[str, list[str]]:
    """Return the strings of each text column, those that look alike next to each other.

    Examples
    --------
    >>> {name: len(words) for name, words in vocabularies().items()}
    {'job': 88, 'town': 120, 'weather': 8, 'station': 300, 'vehicle': 500}
    """
    letters = "ABCDEFGHKLMNPRSTVWXZ"
    codes = np.random.default_rng(7).permutation(len(letters) ** 3)[:800]
    stations = ["".join(letters[code // 20**place % 20] for place in range(3)) for code in codes]
    return {
        "job": [f"{stem} {end}" for end in _ENDS for stem in _STEMS],
        "town": [f"{place} {town}" for town in _TOWNS for place in _PLACES],
        "weather": list(_WEATHERS),
        "station": stations[:300],
        "vehicle": [f"{code}-{number % 97:02d}" for number, code in enumerate(stations[300:])],
    }


def made_part(rows: int, part: int, *, seed: int = 0) -> pa.Table:
    """Return one part of the table.

    Parameters
    ----------
    rows : int
        Its rows.
    part : int
        Which part it is.
    seed : int
        Determines everything.

    Examples
    --------
    >>> table = made_part(1000, 0)
    >>> table.num_columns, table[LABEL].null_count, table["income"].null_count > 0
    (21, 0, True)
    """
    fixed = np.random.default_rng([seed, 0x5CA1E])
    centres = fixed.normal(0, 1.6, (len(CLASSES), _CENTRES_A_CLASS, _DIMENSIONS)).astype(np.float32)
    names = [*_AMOUNTS, *_COUNTS, *_CODES, *_FLAGS, *vocabularies()]
    directions = fixed.normal(0, _DIMENSIONS**-0.5, (_DIMENSIONS, len(names))).astype(np.float32)
    rng = np.random.default_rng([seed, part])
    classes = rng.choice(len(CLASSES), rows, p=CLASS_SHARES).astype(np.int8)
    latent = centres[classes, rng.integers(_CENTRES_A_CLASS, size=rows)]
    latent += rng.standard_normal(latent.shape, dtype=np.float32)
    seen = dict(zip(names, (latent @ directions).T, strict=True))

    def noisy(name: str, spread: float) -> np.ndarray:
        return seen[name] + spread * rng.standard_normal(rows, dtype=np.float32)

    columns: dict[str, pa.Array] = {}
    for place, name in enumerate(_AMOUNTS):
        amounts = np.exp(1.2 * noisy(name, 0.4)).astype(np.float64) * 10.0**place
        # Gaps in every other column, some of them where amounts are large.
        gaps = rng.random(rows) < 0.02 + 0.1 * (amounts > np.exp(1.5) * 10.0**place) if place % 2 == 0 else None
        columns[name] = pa.array(np.round(amounts, 4), mask=gaps)
    for name in _COUNTS:
        counts = np.maximum(np.round(30 + 12 * noisy(name, 0.5)), 0).astype(np.int64)
        columns[name] = pa.array(counts, mask=rng.random(rows) < 0.01 if name == "visits" else None)
    for name, size in _CODES.items():
        # A code says nothing by its size: neighbours are scattered.
        scattered = np.random.default_rng([seed, size]).permutation(size)
        columns[name] = pa.array(scattered[_places(noisy(name, 0.5), size)])
    for name in _FLAGS:
        columns[name] = pa.array(noisy(name, 0.7) > 0.5)
    for name, words in vocabularies().items():
        places = pa.array(_places(noisy(name, 0.4), len(words)), mask=rng.random(rows) < 0.03)
        columns[name] = pa.array(words).take(places)
    columns[LABEL] = pa.array(CLASSES).take(pa.array(classes))
    return pa.table(columns)


def write_made_table(folder: Path, rows: int, *, seed: int = 0) -> None:
    """Write a table of so many rows as Parquet parts; parts that are there already are kept.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_made_table(folder, 500_100)
    >>> [pq.read_metadata(path).num_rows for path in sorted(folder.iterdir())]
    [500000, 100]
    """
    folder.mkdir(parents=True, exist_ok=True)
    for part, start in enumerate(range(0, rows, PART_ROWS)):
        path = folder / f"part-{part:05d}.parquet"
        if not path.exists():
            partial = path.with_suffix(".partial")
            made = made_part(min(PART_ROWS, rows - start), part, seed=seed)
            pq.write_table(made, partial, compression="zstd", row_group_size=_GROUP_ROWS, write_page_checksum=True)
            partial.rename(path)


def _places(values: np.ndarray, size: int) -> np.ndarray:
    """Return the places of normal values among so many, the middle ones taken most often."""
    return np.clip(np.round((values / 5 + 0.5) * size), 0, size - 1).astype(np.int64)
