"""Networks as plain torch modules, from rows of numbers to one number a class.

What belongs here: what a network looks like. What does not: how it is trained (:mod:`c2tc_pipeline.evaluation`) and
what it is used for: models that judge a table and the relays of rival methods are built from the same modules.
"""
