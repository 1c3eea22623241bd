"""Hostile input by the thousand: ``python -m c2tc_pipeline_tests.tools.fuzzing --cases 100000``.

A case is a sequence of bytes made from a number, so that it can be made again. It passes if the reader returns a value,
or raises the project's own error with one sentence, in bounded time and memory; anything else is a crash. Inputs that
once crashed are kept in ``found/`` and are tested for ever after (``test_fuzzing.py``).
"""
