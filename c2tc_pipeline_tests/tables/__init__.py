"""Tests of c2tc_pipeline.tables."""
