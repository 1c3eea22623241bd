"""The pipeline as Dagster sees it: assets, partitions, versions, checks, automation and storage.

What belongs here: when something is made, from what, and where it is kept. What does not: how it is made. An asset
reads its settings, calls the core and returns a value; only this package and ``definitions.py`` import dagster.
"""
