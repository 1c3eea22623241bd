"""What a condensed table has to beat: other ways to make few rows of many, one file each.

Every rival is a sampler with ``fit_resample(X, y)``, as :class:`~c2tc_pipeline.condensation.sampler.Sampler` has it, so
that any of them runs in any experiment. To add one, write a file and name it in :data:`RIVALS`. How rivals are
compared is the business of :mod:`c2tc_pipeline.evaluation`.
"""

from __future__ import annotations

import inspect
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import Registry
from c2tc_pipeline.condensation.sampler import Sampler

RIVALS = Registry(
    "rival",
    {
        "random": f"{__name__}.random_rows:RandomRows",
        "stratified": f"{__name__}.stratified:StratifiedRows",
        "herding": f"{__name__}.herding:Herding",
        "k_center": f"{__name__}.k_center:KCenter",
        "cluster_centroids": f"{__name__}.cluster_centroids:ClusterCentroidsRows",
        "minibatch_kmeans": f"{__name__}.minibatch:MiniBatchRows",
        "lightweight": f"{__name__}.lightweight:LightweightCoreset",
        "dm": f"{__name__}.dm:DistributionMatching",
        "gm": f"{__name__}.gm:GradientMatching",
        "mtt": f"{__name__}.mtt:TrajectoryMatching",
    },
)
"""Every rival by its name in tables of scores."""

COSTLY = ("dm", "gm", "mtt")
"""Rivals that train networks, and take minutes where the others take seconds."""


def make_rival(name: str, *, ratio: float, rows: int | None = None, seed: int = 0, **settings: Any) -> Sampler:
    """Return an unfitted rival by its name.

    Parameters
    ----------
    name : str
        One of :data:`RIVALS`.
    ratio : float
        Condensed rows as a share of the rows.
    rows : int, optional
        Condensed rows in all, instead of a ratio.
    seed : int
        The rival's ``random_state``.
    **settings
        Other parameters of that rival.

    Raises
    ------
    InputError
        When there is no rival of that name, or it has no such setting.

    Examples
    --------
    >>> make_rival("herding", ratio=0.1)
    Herding(ratio=0.1)
    """
    rival = RIVALS.load(name)
    known = set(inspect.signature(rival).parameters) - {"ratio", "rows", "random_state"}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise InputError(
            f"Rival {name!r} has no setting {unknown[0]!r}; it has "
            f"{', '.join(sorted(known)) if known else 'none beside ratio, rows and seed'}."
        )
    return rival(ratio=ratio, rows=rows, random_state=seed, **settings)
