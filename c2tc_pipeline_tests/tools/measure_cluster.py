"""Measure one class on a Dask cluster and in this process, on the same machine: seconds, processor seconds, memory.

python -m c2tc_pipeline_tests.tools.measure_cluster
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.clustering.kernels import make_kernel
from c2tc_pipeline.common.stages import peak_memory as own_peak
from c2tc_pipeline_tests.clustering.dask_cluster import client_of, peak_memory, running_cluster
from c2tc_pipeline_tests.clustering.mixtures import as_bytes, mixture

MB = 2**20
ROWS, COLUMNS, CLUSTERS, STEPS = 4_000_000, 20, 100, 10
WORKERS, WORKER_MB = 2, 1_024
OPTIONS: dict[str, Any] = {"max_iter": STEPS, "tol": 0.0, "relocate": 1}


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        written = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, COLUMNS))
        for start in range(0, ROWS, 100_000):
            written[start : start + 100_000] = mixture(100_000, COLUMNS, 200, seed=start)
        written.flush()
        del written
        X = np.load(path, mmap_mode="r")
        print(f"{ROWS:,} x {COLUMNS}, {X.nbytes / MB:.0f} MiB, {CLUSTERS} clusters, {STEPS} steps")
        with running_cluster(workers=[""] * WORKERS, memory_limit=WORKER_MB * MB) as address:
            before, begun, used = _worker_seconds(address), time.perf_counter(), time.process_time()
            with open_engine(address) as engine:
                there = ClassKMeans(X, make_kernel("cpu"), engine).cluster(CLUSTERS, **OPTIONS)
            wall, here = time.perf_counter() - begun, time.process_time() - used
            print(
                f"dask, {WORKERS} workers: {wall:.1f} s, processor {_worker_seconds(address) - before:.1f} s at the "
                f"workers and {here:.1f} s here, peak of a worker {max(peak_memory(address)) / MB:.0f} MiB "
                f"(limit {WORKER_MB} MiB)"
            )
        begun, used = time.perf_counter(), time.process_time()
        alone = ClassKMeans(X, make_kernel("cpu")).cluster(CLUSTERS, **OPTIONS)
        wall, here = time.perf_counter() - begun, time.process_time() - used
        print(f"local: {wall:.1f} s, processor {here:.1f} s, peak {own_peak() / MB:.0f} MiB")
        print(f"same bytes: {as_bytes(alone) == as_bytes(there)}; inertia {alone.inertia!r} {there.inertia!r}")


def _worker_seconds(address: str) -> float:
    """Return the processor seconds that the workers used so far."""
    with client_of(address) as client:
        return float(sum(sum(times[:2]) for times in client.run(os.times).values()))


if __name__ == "__main__":
    main()
