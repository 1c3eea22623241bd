"""The benchmark of speed: everything beside its references, as ratios within one run on one machine.

Each part is a file with one function that takes its tables and a :class:`Bench` and yields rows. The references that
nobody else needs are here, too: the authors' search and the dense autoencoder.
"""

from __future__ import annotations

from c2tc_pipeline.evaluation.speed.bench import Bench
from c2tc_pipeline.evaluation.speed.noise import Noise, NoiseProbe
from c2tc_pipeline.evaluation.speed.row import SpeedRow
from c2tc_pipeline.evaluation.speed.run import PARTS, SpeedRun, measure_speed

__all__ = ["PARTS", "Bench", "Noise", "NoiseProbe", "SpeedRow", "SpeedRun", "measure_speed"]
