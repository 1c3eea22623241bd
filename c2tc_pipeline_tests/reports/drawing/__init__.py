"""Tests of :mod:`c2tc_pipeline.reports.drawing`."""
