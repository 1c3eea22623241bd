"""From raw columns to numbers in [0, 1]: HCFE and the encodings it is compared with.

What belongs here: fitting to training rows, encoding any rows, storing what was learnt. What does not: which rows are
training rows, and what the encoded rows are for.
"""

ENCODER_VERSION = 5
"""Raise it when an encoder fitted to the same rows gives other columns."""
AUTOENCODER_VERSION = 5
"""Raise it when the same strings train another autoencoder; part of the key of cached weights."""
