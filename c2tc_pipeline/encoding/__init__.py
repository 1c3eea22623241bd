"""Encoders from raw columns to numbers in [0, 1]: the paper's HCFE.

To add an encoder, write a file with its class and its parts, and name it in
:data:`c2tc_pipeline.encoding.storage.ENCODERS`.
"""

ENCODER_VERSION = 6
"""Raise it when an encoder fitted to the same rows gives other columns."""
AUTOENCODER_VERSION = 6
"""Raise it when the same strings train another autoencoder; part of the key of cached weights."""
