"""The benchmark of speed: everything beside its references, as ratios within one run on one machine.

Each part is a file with one function that takes its tables and a :class:`Bench` and yields rows. The references that
nobody else needs are here, too: the authors' search and the dense autoencoder.
"""
