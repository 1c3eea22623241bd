"""
From S3 and back
================

Read a table from S3 and store the pipeline's artefacts there.

Address and keys come from the environment, as for any tool of S3: ``AWS_ENDPOINT_URL``,
``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``. This script writes to the bucket in
``EXAMPLE_BUCKET``.
"""

# %%
# A table in the bucket, as its owner would have put it there.

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import s3fs

from c2tc_pipeline import CondensedTable
from c2tc_pipeline.cli.main import main

bucket = os.environ["EXAMPLE_BUCKET"]
flights = pd.read_parquet("../data/departures.parquet").sample(10_000, random_state=0)
flights.to_parquet(f"s3://{bucket}/flights.parquet", index=False)

# %%
# ``c2tc condense s3://...`` reads it, here called from Python.

folder = Path(tempfile.mkdtemp())
main(
    [
        "condense",
        f"s3://{bucket}/flights.parquet",
        "--label",
        "arrival",
        "--rows",
        "60",
        "--out",
        str(folder / "small"),
    ],
    standalone_mode=False,
)

# %%
# A folder of results can be copied anywhere: its manifest holds the checksum of every
# file, and ``load`` verifies them.

files = s3fs.S3FileSystem()
files.put(str(folder / "small"), f"{bucket}/small", recursive=True)
files.get(f"{bucket}/small/", str(folder / "again"), recursive=True)
again = CondensedTable.load(folder / "again")

sizes = {"flights.parquet": files.size(f"{bucket}/flights.parquet") / 1e3}
sizes |= {
    name: files.size(f"{bucket}/small/{name}") / 1e3
    for name in ("condensed.parquet", "spread.parquet")
}
plt.figure(figsize=(6, 2.2), layout="constrained")
plt.barh(list(sizes), list(sizes.values()))
plt.xlabel("kB on S3")
plt.gca().invert_yaxis()
plt.show()
assert again.original.equals(CondensedTable.load(folder / "small").original)

# %%
# The pipeline stores its artefacts on S3 with ``C2TC_STORAGE=s3://bucket/prefix``; see
# :doc:`/production`.
