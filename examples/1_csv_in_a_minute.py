"""
A CSV in a minute
=================

Condense a CSV file, look at the result, and draw training rows from it.

The same by command: ``c2tc condense flights.csv --label arrival --ratio 0.005 --out
small``, then ``c2tc expand small --out train.parquet``.
"""

# %%
# A table with numbers, strings, codes and gaps, as a CSV file.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from c2tc_pipeline import condense

folder = Path(tempfile.mkdtemp())
pd.read_parquet("../data/departures.parquet").sample(20_000, random_state=0).to_csv(
    folder / "flights.csv", index=False
)
flights = pd.read_csv(folder / "flights.csv")

# %%
# Flight numbers are identifiers, not quantities: the role ``code`` says so. All other
# roles are inferred.

small = condense(
    flights, label="arrival", ratio=0.005, roles={"flight": "code"}, random_state=0
)
print(small)

# %%
# The condensed rows in the columns of the source. ``weight`` is the number of source
# rows behind each.

columns = ["month", "sched_dep_time", "dep_delay", "airline", "dest", "arrival"]
print(small.original[columns].assign(weight=small.weight).head())

# %%
# Training rows are drawn from the condensed rows and their spread.

X, y, weight = small.expand(5_000)
print(X[columns[:-1]].head())

# %%
# Source, condensed and drawn rows by two of the columns.

figure, axes = plt.subplots(
    1, 3, figsize=(9, 3), sharex=True, sharey=True, layout="constrained"
)
parts = {
    "source": flights.head(5_000),
    "condensed": small.original,
    "drawn": X.assign(arrival=y),
}
for axis, (name, rows) in zip(axes, parts.items(), strict=True):
    for color, arrival in enumerate(["early", "on_time", "late", "very_late"]):
        own = rows[rows["arrival"] == arrival]
        size = 3 if len(rows) > 1_000 else 20
        axis.scatter(
            own["sched_dep_time"] / 100,
            own["dep_delay"],
            s=size,
            color=f"C{color}",
            label=arrival,
        )
    axis.set(
        title=f"{len(rows):,} {name} rows", xlabel="hour of departure", ylim=(-25, 200)
    )
axes[0].set_ylabel("delay at departure, minutes")
axes[1].legend(fontsize=7)
plt.show()

# %%
# Keep all of it, with a report page, in a folder that ``c2tc expand`` and
# ``CondensedTable.load`` read.

small.save(folder / "small", report=True)
print(sorted(path.name for path in (folder / "small").iterdir()))
