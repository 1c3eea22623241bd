"""Measure one class on this process and on a Dask cluster on the same machine, beside each other.

    python -m c2tc_pipeline_tests.tools.measure_cluster --rows 4000000 --columns 20 --clusters 100

prints seconds, processor seconds and peak memory of each, and whether the bytes are the same.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import click
import numpy as np
from distributed import Client

from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.clustering.kernels import make_kernel
from c2tc_pipeline.clustering.lloyd import ClassClusters
from c2tc_pipeline.common.stages import peak_memory as own_peak
from c2tc_pipeline_tests.clustering.dask_cluster import peak_memory, running_cluster
from c2tc_pipeline_tests.clustering.mixtures import mixture

MB = 2**20


@click.command()
@click.option("--rows", default=4_000_000, show_default=True)
@click.option("--columns", default=20, show_default=True)
@click.option("--clusters", default=100, show_default=True)
@click.option("--steps", default=10, show_default=True, help="Lloyd steps on all rows.")
@click.option("--workers", default=2, show_default=True)
@click.option("--memory", default=1_024, show_default=True, help="Limit of each worker, in MiB.")
def main(rows: int, columns: int, clusters: int, steps: int, workers: int, memory: int) -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        X = np.lib.format.open_memmap(path, "w+", np.float32, (rows, columns))
        for start in range(0, rows, 100_000):
            stop = min(start + 100_000, rows)
            X[start:stop] = mixture(stop - start, columns, 200, seed=start)
        X.flush()
        del X
        mapped = np.load(path, mmap_mode="r")
        click.echo(f"{rows:,} x {columns}, {mapped.nbytes / MB:.0f} MiB, {clusters} clusters, {steps} steps")
        options = {"max_iter": steps, "tol": 0.0, "relocate": 1}
        with running_cluster(workers=[""] * workers, memory_limit=memory * MB) as address:
            before = _worker_seconds(address)
            begun, used = time.perf_counter(), _seconds()
            with open_engine(address) as engine:
                there = ClassKMeans(mapped, make_kernel("cpu"), engine).cluster(clusters, **options)  # type: ignore[arg-type]
            wall, here = time.perf_counter() - begun, _seconds() - used
            at_workers = _worker_seconds(address) - before
            peak = max(peak_memory(address)) / MB
        click.echo(
            f"dask, {workers} workers: {wall:.1f} s, processor {at_workers:.1f} s at the workers and {here:.1f} s "
            f"here, peak of a worker {peak:.0f} MiB (limit {memory} MiB)"
        )
        begun, used = time.perf_counter(), _seconds()
        alone = ClassKMeans(mapped, make_kernel("cpu")).cluster(clusters, **options)  # type: ignore[arg-type]
        wall, here = time.perf_counter() - begun, _seconds() - used
        peak = own_peak() / MB
        click.echo(f"local: {wall:.1f} s, processor {here:.1f} s, peak {peak:.0f} MiB")
        click.echo(f"same bytes: {_as_bytes(alone) == _as_bytes(there)}; inertia {alone.inertia!r} {there.inertia!r}")


def _as_bytes(result: ClassClusters) -> tuple[bytes, ...]:
    return tuple(part.tobytes() for part in (result.centers, result.labels, result.counts, result.nearest))


def _seconds() -> float:
    return time.process_time()


def _worker_seconds(address: str) -> float:
    """Return the processor seconds that the workers used so far."""
    with Client(address.replace("dask://", "tcp://", 1), set_as_default=False) as client:
        return float(sum(sum(times[:2]) for times in client.run(os.times).values()))


if __name__ == "__main__":
    main()
