"""
In a scikit-learn pipeline
==========================

Encoder, condenser and classifier as one estimator, which is fitted to raw rows and
predicts raw rows.

Samplers need the pipeline of imbalanced-learn; scikit-learn's own accepts none.
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from c2tc_pipeline import Condenser, HybridEncoder
from c2tc_pipeline.bench.rivals import make_rival

flights = pd.read_parquet("../data/departures.parquet").sample(6_000, random_state=0)
X, y = flights.drop(columns="arrival"), flights["arrival"]
model = make_pipeline(
    HybridEncoder(random_state=0),
    Condenser(ratio=0.01),
    LogisticRegression(max_iter=500),
)
model.fit(X, y)
print(model.predict(X.head(3)))

# %%
# The condenser can be swapped for another sampler, here random rows of each class, and
# its settings can be searched like any others.

ratios = [0.005, 0.01, 0.02]
found = {"condensed": [], "random": []}
for ratio in ratios:
    for name, sampler in (
        ("condensed", Condenser(ratio)),
        ("random", make_rival("stratified", ratio=ratio)),
    ):
        candidate = clone(model)
        candidate.steps[1] = ("sampler", sampler)
        found[name].append(
            cross_val_score(candidate, X, y, cv=2, scoring="roc_auc_ovr").mean()
        )

plt.figure(figsize=(6, 3.5), layout="constrained")
for name, scores in found.items():
    plt.plot(
        [100 * ratio for ratio in ratios], scores, marker="o", label=f"{name} rows"
    )
plt.xlabel("% of the rows")
plt.ylabel("AUC of logistic regression")
plt.legend()
plt.show()
