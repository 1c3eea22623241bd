"""
What is forgotten
=================

Remove source rows from a condensed table, and see which condensed rows change. ``c2tc
forget small --ids rows.txt`` does the same to a folder of results.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from c2tc_pipeline import condense
from c2tc_pipeline.condensation.forget import forget_rows

rng = np.random.default_rng(0)
people = pd.DataFrame({"age": rng.normal(45, 12, 400), "hours": rng.normal(35, 8, 400)})
people["income"] = np.where(
    people["age"] + people["hours"] + rng.normal(0, 8, 400) > 85, "high", "low"
)
small = condense(people, label="income", rows=25, random_state=0)

# %%
# Twenty people ask to be forgotten.

rows = rng.choice(len(people), 20, replace=False)
forgotten = forget_rows(small, people, rows)
print(forgotten.counts())

# %%
# Condensed rows that contained one of them are recomputed from their other members; all
# others stay the same to the bit. The result is that of condensing without these rows,
# with the same clusters.

before, after = small.original, forgotten.table.original
touched = small.membership.set_index("source_row").loc[rows, "condensed_row"].unique()
others = before.index.difference(touched)
assert after.loc[others].equals(before.loc[others])

plt.figure(figsize=(7, 4), layout="constrained")
plt.scatter(people["age"], people["hours"], s=4, color="0.85", label="source rows")
plt.scatter(
    *people.loc[rows, ["age", "hours"]].to_numpy().T,
    marker="x",
    color="C3",
    label="forgotten rows",
)
plt.scatter(
    *before.loc[others, ["age", "hours"]].to_numpy().T,
    color="C0",
    label="unchanged condensed rows",
)
plt.scatter(
    *before.loc[touched, ["age", "hours"]].to_numpy().T,
    facecolor="none",
    edgecolor="C1",
    label="before",
)
plt.scatter(
    *after.loc[touched, ["age", "hours"]].to_numpy().T, color="C1", label="recomputed"
)
plt.xlabel("age")
plt.ylabel("hours")
plt.legend(fontsize=8)
plt.show()

# %%
# The encoder keeps what it learnt from the forgotten rows: see :doc:`/privacy`.
