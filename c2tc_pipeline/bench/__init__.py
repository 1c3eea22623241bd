"""Research bench: rivals, the paper's experiments, statistics, speed and scale measurements.

Nothing outside imports it; ``c2tc bench`` finds it lazily, and the rest works without this folder.
"""

import c2tc_pipeline.bench.models  # noqa: F401  registers the networks
