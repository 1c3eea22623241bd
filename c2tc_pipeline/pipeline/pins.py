"""What a store must not lose when old versions are collected; free of Dagster, so that the command starts at once."""

from __future__ import annotations

# Deliveries are checked against the first table that was accepted under a baseline, see baseline.py. The first version
# of each value of this setting is kept.
PINNED = {"validated_table": "baseline"}
