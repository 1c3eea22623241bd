"""The pipeline in Dagster: assets for each table, code versions, checks, sensors and storage of artefacts.

Only this package and ``definitions.py`` import dagster, and this file does not, so that commands start fast.
"""

# Deliveries are compared with the first table accepted under a baseline, so that version must never be collected.
PINNED = {"validated_table": "baseline"}
