"""
A nightly table in Dagster
==========================

Run a table of a catalogue through the pipeline for four nights: a first delivery, the
same one again, a damaged one, and a larger one.

``c2tc run`` executes the Dagster jobs in one process; ``c2tc ui`` shows the same runs
in Dagster's dashboard, where sensors and schedules launch them by themselves. See
:doc:`/nightly`.
"""

# %%
# The catalogue says where the table is, what to predict, and how small it should
# become.

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from c2tc_pipeline.cli.main import main

folder = Path(tempfile.mkdtemp())
os.environ["C2TC_CACHE_DIR"] = str(folder / "cache")
(folder / "catalog.yaml").write_text("""
tables:
  flights:
    source: flights.parquet
    label: arrival
    ratios: [0.02]
    evaluation: {models: [logistic], seeds: 2}
""")


def night():
    """Run what is out of date, as the nightly schedule does."""
    places = {"catalogue": "catalog.yaml", "storage": "store"}
    places |= {"home": "dagster", "out": "results"}
    arguments = [f"--{name}={folder / place}" for name, place in places.items()]
    try:
        main(["run", *arguments], standalone_mode=False)
    except SystemExit as failure:
        print(f"Exit code {failure.code}")


def deliver(rows, **changes):
    flights = pd.read_parquet("../data/departures.parquet", columns=columns).head(rows)
    flights.assign(**changes).to_parquet(folder / "flights.parquet", index=False)


def scores():
    """Read the scores of the newest results."""
    results = folder / "results" / "flights"
    return pd.read_parquet(next(results.rglob("scores.parquet")))


columns = ["month", "sched_dep_time", "dep_delay", "airline", "origin", "distance"]
columns += ["visib", "arrival"]

# %%
# The first night makes everything.

deliver(2_000)
night()
first = scores()

# %%
# The same bytes are delivered again: nothing is made.

night()

# %%
# A damaged delivery, whose delays are text, is refused; earlier results stay.

deliver(2_500, dep_delay="late")
night()

# %%
# A larger delivery is made from source to report.

deliver(4_000)
night()

# %%
# The scores of each night are in its results, and as metadata in the dashboard, which
# plots them over time.

last = scores()
nights = pd.concat(
    [first.assign(delivery="2,000 rows"), last.assign(delivery="4,000 rows")]
)
means = nights.pivot_table(index="delivery", columns="training_set", values="auc")
means = means[["random", "condensed", "whole"]]
means.plot.bar(rot=0, figsize=(6, 3), ylabel="AUC", ylim=(0.5, 1))
plt.legend(loc="upper center", ncols=3)
plt.tight_layout()
plt.show()
