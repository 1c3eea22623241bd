"""
Tuning on a condensed table
===========================

Choose hyper-parameters of gradient boosting on rows drawn from a condensed table, and
see how they do on the whole table.
"""

# %%
# Three parts: training rows, rows for choosing a setting, rows for judging the choice.

import time

import lightgbm
import matplotlib.pyplot as plt
import pandas as pd
from scipy.stats import spearmanr
from sklearn.metrics import log_loss
from sklearn.model_selection import ParameterSampler

from c2tc_pipeline import HybridEncoder, condense

flights = pd.read_parquet("../data/departures.parquet").sample(30_000, random_state=1)
train, choose, judge = flights[:20_000], flights[20_000:25_000], flights[25_000:]
small = condense(train, label="arrival", rows=300, random_state=0)
X_small, y_small, weight = small.expand(3_000, space="encoded")

encoder = HybridEncoder(random_state=0)
y = train["arrival"]
X = encoder.fit_transform(train.drop(columns="arrival"), y)

# %%
# Each of twelve settings is trained on the drawn rows and on the whole table.

grid = {
    "num_leaves": [2, 4, 8, 16, 64],
    "learning_rate": [0.01, 0.03, 0.1, 0.3],
    "min_child_samples": [5, 20, 100],
    "reg_lambda": [0, 10],
}
rows, seconds = [], {"condensed": 0.0, "whole": 0.0}
for setting in ParameterSampler(grid, 12, random_state=0):
    scores = {}
    for name, data, own_encoder in (
        ("condensed", (X_small, y_small, weight), small.encoder),
        ("whole", (X, y), encoder),
    ):
        started = time.process_time()
        model = lightgbm.LGBMClassifier(
            n_estimators=40, n_jobs=1, verbose=-1, random_state=0, **setting
        ).fit(*data)
        seconds[name] += time.process_time() - started
        part = choose if name == "condensed" else judge
        probabilities = model.predict_proba(
            own_encoder.transform(part.drop(columns="arrival"))
        )
        scores[name] = log_loss(part["arrival"], probabilities, labels=model.classes_)
    rows.append({**setting, **scores})
tried = pd.DataFrame(rows).sort_values("condensed")
print(tried.round(3).to_string(index=False))

# %%
# The setting that was best on drawn rows, beside the best of all on the whole table.

chosen = tried.iloc[0]
agreement = spearmanr(tried["condensed"], tried["whole"]).statistic
print("Log-loss on the whole table:")
print(f"{chosen['whole']:.3f} with the chosen setting")
print(f"{tried['whole'].min():.3f} with the best")
print(f"Rank correlation {agreement:.2f}")
print(f"{seconds['condensed']:.1f} s instead of {seconds['whole']:.1f} s of training")

plt.figure(figsize=(5, 4), layout="constrained")
plt.scatter(tried["condensed"], tried["whole"])
plt.scatter(
    chosen["condensed"],
    chosen["whole"],
    marker="*",
    s=200,
    label="chosen on drawn rows",
)
plt.xlabel("log-loss, trained on drawn rows")
plt.ylabel("log-loss, trained on the whole table")
plt.legend()
plt.show()
