"""How good and how fast: measurements against references, as ratios within one run.

What belongs here: reference implementations and experiments. What does not: anything that ``condense`` itself needs.
"""
