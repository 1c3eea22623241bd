"""How the pipeline bears a large catalogue and many runs: measurements, and the small versions of them that are tests.

``python -m c2tc_pipeline_tests.tools.load --help`` lists the commands; ``docs/load.md`` has what they told.
"""
