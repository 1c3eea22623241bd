"""Digests of condensed tables and of the rows drawn from them: changed results need a raised algorithm version.

``python -m c2tc_pipeline_tests.golden`` prints the digests of the present code; ``--write`` records them in
``golden.json``, and refuses where a digest changed and no version did.

Digests are of exact values up to the fourth decimal, so the computation runs in a process of its own with one thread
and with instruction sets that every x86-64 machine since 2013 has. Training of the autoencoder magnifies the rounding
errors in which processors still differ, so the digests are of its start; its loss after training is a number.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RECORD = Path(__file__).with_name("golden.json")
FIXED_KERNELS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "Haswell",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}


def mixed() -> pd.DataFrame:
    """Numbers with missing values, words, codes, a flag and a timestamp; three classes."""
    rng = np.random.default_rng(1)
    rows = 600
    label = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    amount = rng.normal(label, 1.0)
    amount[rng.random(rows) < 0.05] = np.nan
    jobs = np.array(["senior engineer", "junior engineer", "head nurse", "night nurse", "cook"])
    return pd.DataFrame(
        {
            "amount": amount,
            "age": rng.integers(18, 90, rows),
            "job": jobs[(label + rng.integers(0, 3, rows)) % 5],
            "carrier": rng.choice(["AA1", "BB7", "CX2", "DL9"], rows),
            "day": rng.integers(1, 8, rows),
            "insured": rng.random(rows) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, rows), unit="s"),
            "outcome": np.array(["no", "maybe", "yes"])[label],
        }
    )


def imbalanced() -> pd.DataFrame:
    """Five classes from 70 % down to three rows, with many equal rows."""
    rng = np.random.default_rng(2)
    sizes = [840, 250, 90, 17, 3]
    label = np.repeat(np.arange(5), sizes)
    return pd.DataFrame(
        {
            "level": rng.integers(0, 6, len(label)) + label,
            "ratio": np.round(rng.beta(2, 5, len(label)) + label / 9, 2),
            "code": rng.integers(0, 40, len(label)) * 7,
            "y": label,
        }
    )


def numeric() -> pd.DataFrame:
    """Twelve columns of numbers, two classes."""
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 2_000)
    columns = rng.normal(size=(2_000, 12)) * rng.uniform(0.1, 100, 12) + label[:, None] * rng.normal(size=12)
    return pd.DataFrame(columns, columns=[f"x{number}" for number in range(12)]).assign(y=label)


TABLES = {"mixed": (mixed, "outcome"), "imbalanced": (imbalanced, "y"), "numeric": (numeric, "y")}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "optimal": {"allocation": "optimal", "gamma": "auto"},
    "medoid": {"allocation": "ratio", "representative": "medoid"},
    "minmax": {"numeric": "minmax", "strings": "similarity", "min_rows_per_condensed_row": 4},
    "target": {"strings": "target", "allocation": "fipc", "random_state": 5},
}


def digests() -> dict[str, dict[str, str]]:
    """Condense every table with every setting and return the sha256 of each part of the result."""
    from c2tc_pipeline import condense

    found = {}
    for table, (make, label) in TABLES.items():
        for settings, chosen in SETTINGS.items():
            frame = make()
            rows = 30 if settings != "minmax" else 20
            if settings == "minmax" and table == "imbalanced":
                # Its rarest class is smaller than the minimum size of a cluster.
                frame = frame[frame[label] < 4]
            small = condense(frame, label=label, rows=rows, encoder=_untrained(chosen), **chosen)
            members: Any = small.members
            found[f"{table} {settings}"] = {
                "condensed": _sha256(_rounded(small.X)),
                "membership": _sha256(members[["source_row", "condensed_row"]].to_numpy(dtype=np.int64)),
                "allocation": _sha256(np.asarray(small.allocation.counts, dtype=np.int64)),
                "deviations": _sha256(_rounded(small.spread.deviation)),
                "encoder": _sha256(_rounded(small.encoder.transform(frame))),
                "original": _sha256_of_frame(small.original),
                "drawn": _sha256_of_frame(_drawn(small, "original")),
                "drawn encoded": _sha256(_rounded(_drawn(small, "encoded").drop(columns=label))),
            }
    return found


def autoencoder_loss() -> float:
    """Return the loss of the autoencoder after its training on the words of the mixed table."""
    from c2tc_pipeline import HybridEncoder

    frame = mixed()
    encoder = HybridEncoder("similarity", device="cpu").fit(frame.drop(columns="outcome"), frame["outcome"])
    return float(encoder.losses_[-1])


def _untrained(chosen: dict[str, Any]) -> Any:
    """Return the encoder of some settings, whose autoencoder stays at its start."""
    from c2tc_pipeline import HybridEncoder

    own = {name: value for name, value in chosen.items() if name in ("strings", "numeric", "random_state")}
    return HybridEncoder(**own, learning_rate=1e-12, device="cpu")


def _drawn(small: Any, space: str) -> pd.DataFrame:
    """Return the rows that are drawn with a fixed seed, with label and weight; numbers to the fourth decimal."""
    from c2tc_pipeline.condensation.expand import expanded_frame

    return expanded_frame(small, 200, space=space, random_state=0).round(4)


def _rounded(values: Any) -> np.ndarray:
    # Adding 0 makes -0 and 0 the same bytes.
    return np.round(np.asarray(values, dtype=np.float64), 4) + 0.0


def recompute() -> dict[str, Any]:
    """Return :func:`digests` and :func:`autoencoder_loss` from a process with fixed kernels."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", __name__ if __name__ != "__main__" else "c2tc_pipeline_tests.golden"],
        env={**os.environ, **FIXED_KERNELS},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def versions() -> dict[str, str]:
    """Return the version of every algorithm whose results the digests cover."""
    from c2tc_pipeline.pipeline.versioning import ALGORITHM_VERSIONS

    covered = ("validated_table", "encoder", "encoded_table", "cluster_allocation", "condensed_table", "training_rows")
    return {asset: ALGORITHM_VERSIONS[asset] for asset in covered}


def _sha256(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _sha256_of_frame(frame: pd.DataFrame) -> str:
    return hashlib.sha256(frame.to_json(orient="split", date_format="iso", date_unit="ns").encode()).hexdigest()


def _write() -> None:
    before = json.loads(RECORD.read_text(encoding="utf-8"))
    now: dict[str, Any] = {"versions": versions(), **recompute()}
    if before["digests"] != now["digests"] and before["versions"] == now["versions"]:
        changed = [name for name, parts in now["digests"].items() if before["digests"].get(name) != parts]
        sys.exit(f"Results changed ({', '.join(changed)}) but no algorithm version did; raise the version first.")
    RECORD.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        _write()
    else:
        print(json.dumps({"digests": digests(), "autoencoder_loss": autoencoder_loss()}, indent=1))
