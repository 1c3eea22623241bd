"""How good and how fast: scores of models on test rows, and speed against references.

What belongs here: models and their trainer, scores, reference implementations and experiments. What does not: anything
that ``condense`` itself needs.
"""

SCORES_VERSION = 5
"""Raise it when the same rows give a model another score; part of the key of cached scores."""
