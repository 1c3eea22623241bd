"""Evaluation of condensed tables: models, their training, and scores on test rows."""

SCORES_VERSION = 8
"""Raise it when the same rows give a model another score; part of the key of cached scores."""
