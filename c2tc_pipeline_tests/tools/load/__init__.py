"""Load measurements of the pipeline, whose small versions are tests; ``docs/load.md`` has results.

``python -m c2tc_pipeline_tests.tools.load --help`` lists the commands.
"""
