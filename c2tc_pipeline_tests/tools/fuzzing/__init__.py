"""Fuzzing of every reader of untrusted input: ``python -m c2tc_pipeline_tests.tools.fuzzing --cases 100000``."""
