"""``python -m c2tc_pipeline`` is ``c2tc``."""

from c2tc_pipeline.cli.main import main

main(prog_name="c2tc")
