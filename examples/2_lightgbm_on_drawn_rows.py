"""
LightGBM on drawn rows
======================

Train LightGBM on rows drawn from a condensed table, with the columns of the source, and
compare with random rows.
"""

# %%
# Test rows take no part in condensing.

import lightgbm
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.metrics import roc_auc_score

from c2tc_pipeline import condense

flights = pd.read_parquet("../data/departures.parquet").sample(25_000, random_state=0)
train, test = flights[:20_000], flights[20_000:]
categories = dict.fromkeys(
    ["airline", "origin", "dest", "manufacturer", "model"], "category"
)


def auc(X, y, weight=None):
    model = lightgbm.LGBMClassifier(
        n_estimators=30, num_leaves=15, n_jobs=1, verbose=-1, random_state=0
    )
    model.fit(X.astype(categories), y, weight)
    probabilities = model.predict_proba(test[X.columns].astype(categories))
    return roc_auc_score(
        test["arrival"], probabilities, multi_class="ovr", labels=model.classes_
    )


# %%
# 100 condensed rows stand for 20,000. As many training rows as you like can be drawn
# from them.

small = condense(train, label="arrival", rows=100, random_state=0)
X, y, weight = small.expand(10_000)
drawn = auc(X, y, weight)
print(f"AUC {drawn:.3f} from {len(small)} condensed rows")

# %%
# How many random rows give the same?

sizes = [100, 300, 1_000, 3_000, 20_000]
found = []
for rows in sizes:
    sample = train.sample(rows, random_state=0)
    found.append(auc(sample[X.columns], sample["arrival"]))

plt.figure(figsize=(7, 3.5), layout="constrained")
plt.semilogx(sizes, found, marker="o", label="random rows")
plt.axhline(drawn, color="C1", label=f"rows drawn from {len(small)} condensed rows")
plt.xlabel("random rows")
plt.ylabel("AUC of LightGBM")
plt.legend()
plt.show()
assert drawn > found[0]
