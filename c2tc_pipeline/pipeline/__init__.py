"""The pipeline in Dagster: assets, partitions, version keys, checks, automation and storage of artefacts.

Only this package and ``definitions.py`` import dagster, and this file does not, so that commands start fast.
"""

# Deliveries are compared with the first table accepted under a baseline, so that version must never be collected.
PINNED = {"validated_table": "baseline"}
