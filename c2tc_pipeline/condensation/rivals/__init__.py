"""What a condensed table has to beat: other ways to make few rows of many, one file each.

Every rival is a sampler with ``fit_resample(X, y)``, as :class:`~c2tc_pipeline.condensation.sampler.Sampler` has it, so
that any of them runs in any experiment. To add one, write a file and name it in :data:`RIVALS`. How rivals are
compared is the business of :mod:`c2tc_pipeline.evaluation`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from c2tc_pipeline.condensation.sampler import Sampler
from c2tc_pipeline.errors import InputError

RivalClass = Callable[[], type[Sampler]]
"""Imports the class of a rival and returns it; torch and others are loaded only for those who use them."""


def _rival(module: str, name: str) -> RivalClass:
    def load() -> type[Sampler]:
        found: type[Sampler] = getattr(import_module(f"{__name__}.{module}"), name)
        return found

    return load


RIVALS: dict[str, RivalClass] = {
    "random": _rival("random_rows", "RandomRows"),
    "stratified": _rival("stratified", "StratifiedRows"),
    "herding": _rival("herding", "Herding"),
    "k_center": _rival("k_center", "KCenter"),
    "cluster_centroids": _rival("cluster_centroids", "ClusterCentroidsRows"),
    "minibatch_kmeans": _rival("minibatch", "MiniBatchRows"),
    "lightweight": _rival("lightweight", "LightweightCoreset"),
    "dm": _rival("dm", "DistributionMatching"),
    "gm": _rival("gm", "GradientMatching"),
    "mtt": _rival("mtt", "TrajectoryMatching"),
}
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
    if name not in RIVALS:
        raise InputError(f"Rival {name!r} is unknown; choose one of: {', '.join(RIVALS)}.")
    rival = RIVALS[name]()
    known = set(inspect.signature(rival).parameters) - {"ratio", "rows", "random_state"}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise InputError(
            f"Rival {name!r} has no setting {unknown[0]!r}; it has "
            f"{', '.join(sorted(known)) if known else 'none beside ratio, rows and seed'}."
        )
    return rival(ratio=ratio, rows=rows, random_state=seed, **settings)
