"""Rival methods: other ways to condense rows, each a sampler with ``fit_resample(X, y)``.

To add a rival, write a file with a subclass of :class:`Rival` or :class:`ClassRival` and name it in :data:`RIVALS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from c2tc_pipeline.bench.rivals.base import ClassSampler, CondensedClass, CondensedRows, Sampler, centred_float32
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import Registry

__all__ = ["CondensedClass", "CondensedRows", "centred_float32"]

SAME_CLASSES = "random_same_classes"
"""The rival with the class counts and class weights of our condensed table."""

RIVALS = Registry(
    "rival",
    {
        "random": f"{__name__}.random_rows:RandomRows",
        "stratified": f"{__name__}.random_rows:StratifiedRows",
        SAME_CLASSES: f"{__name__}.random_rows:StratifiedRows",
        "herding": f"{__name__}.herding:Herding",
        "k_center": f"{__name__}.k_center:KCenter",
        "cluster_centroids": f"{__name__}.cluster_centroids:ClusterCentroidsRows",
        "minibatch_kmeans": f"{__name__}.minibatch:MiniBatchRows",
        "lightweight": f"{__name__}.random_rows:LightweightCoreset",
        "dm": f"{__name__}.dm:DistributionMatching",
        "gm": f"{__name__}.gm:GradientMatching",
        "mtt": f"{__name__}.mtt:TrajectoryMatching",
    },
)
"""Every rival by its name in tables of scores."""

COSTLY = ("dm", "gm", "mtt")
"""Rivals that train networks, and take minutes where the others take seconds."""


@dataclass(eq=False, repr=False)
class Rival(Sampler):
    """Base of rivals; subclasses are dataclasses too, whose fields are the estimator's parameters.

    ``ratio`` is the share of the rows that is kept, ``rows`` the number in all, ``class_counts`` the number of each
    class, instead of a ratio; uniform samples ignore the latter.
    """

    ratio: float = 0.01
    _: KW_ONLY
    rows: int | None = None
    class_counts: Sequence[int] | None = None
    random_state: int = 0


@dataclass(eq=False, repr=False)
class ClassRival(Rival, ClassSampler):
    """Base of rivals that condense each class by itself, with budgets in proportion to class sizes."""


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
    known = sorted(set(inspect.signature(rival).parameters) - {"ratio", "rows", "random_state"})
    for setting in settings:
        if setting not in known:
            raise InputError(f"Rival {name!r} has no setting {setting!r}; it has {', '.join(known) or 'none'}.")
    return rival(ratio=ratio, rows=rows, random_state=seed, **settings)
