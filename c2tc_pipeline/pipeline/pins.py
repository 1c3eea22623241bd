"""What a store must not lose when old versions are collected; free of Dagster, so that the command starts at once."""

from __future__ import annotations

from c2tc_pipeline.storage.store_leftovers import as_pins

# Deliveries are held against the first table that was accepted under a baseline, see orchestration/baseline.py.
PINNED = as_pins(validated_table="baseline")
