"""
Adding a rival
==============

Write another way to make few rows of many, and compare it with the existing ones.

In the project a rival is one file in ``c2tc_pipeline/bench/rivals`` and one line in its
registry; then every experiment
(``c2tc bench``) can use it.
"""

# %%
# A rival condenses the rows of one class to a given number of rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from c2tc_pipeline import Condenser
from c2tc_pipeline.bench.rivals import RIVALS, ClassRival, CondensedClass, make_rival


class RandomDirections(ClassRival):
    """Pick rows at evenly spaced quantiles of the class along a random direction."""

    def condense_class(
        self, X: np.ndarray, count: int, rng: np.random.Generator
    ) -> CondensedClass:
        order = np.argsort(X @ rng.normal(size=X.shape[1]), kind="stable")
        quantiles = (np.arange(count) + 0.5) / count
        return CondensedClass(chosen=order[(quantiles * len(X)).astype(int)])


RIVALS["random_directions"] = RandomDirections

# %%
# Rivals are samplers like :class:`~c2tc_pipeline.Condenser`: ``fit_resample`` takes
# rows and classes.

X, y = make_classification(
    12_000, 15, n_informative=8, n_classes=3, weights=[0.7, 0.2], random_state=0
)
train, test = slice(0, 8_000), slice(8_000, None)
names = [
    "random",
    "stratified",
    "herding",
    "k_center",
    "lightweight",
    "random_directions",
]
found = {}
for name in [*names, "c2tc"]:
    scores = []
    for seed in range(5):
        if name == "c2tc":
            sampler = Condenser(rows=24, random_state=seed)
        else:
            sampler = make_rival(name, ratio=0.01, rows=24, seed=seed)
        rows, classes = sampler.fit_resample(X[train], y[train])
        model = LogisticRegression(max_iter=500).fit(rows, classes)
        scores.append(
            roc_auc_score(y[test], model.predict_proba(X[test]), multi_class="ovr")
        )
    found[name] = scores
    print(f"{name:18} {np.mean(scores):.3f} ± {np.std(scores):.3f}")

plt.figure(figsize=(7, 3), layout="constrained")
plt.barh(
    list(found),
    [np.mean(scores) for scores in found.values()],
    xerr=[np.std(scores) for scores in found.values()],
)
plt.xlim(0.5, None)
plt.xlabel("AUC of logistic regression on 24 rows of 8,000")
plt.gca().invert_yaxis()
plt.show()
