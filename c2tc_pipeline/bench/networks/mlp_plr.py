"""MLP-PLR: a multilayer perceptron over periodic features of every column."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from c2tc_pipeline.common.registry import bench_package
from c2tc_pipeline.evaluation.models.network import mlp_network


def mlp_plr_network(
    features: int,
    classes: int,
    widths: Sequence[int] = (256, 256),
    *,
    frequencies: int = 16,
    embedding: int = 8,
    spread: float = 0.1,
    lite: bool = False,
) -> torch.nn.Module:
    """Return an untrained MLP behind the periodic embedding of Gorishniy et al. 2022 ("PLR").

    A number x becomes cos and sin of 2 pi f x for some learnt frequencies f, which go through a linear layer and a
    rectifier: periodic, linear, ReLU. The embeddings of all columns, side by side, are the input of the MLP.

    Parameters
    ----------
    features, classes : int
        Numbers a row that go in and come out.
    widths : sequence of int, default=(256, 256)
        Units of each hidden layer.
    frequencies : int, default=16
        Frequencies a column.
    embedding : int, default=8
        Numbers that a column becomes.
    spread : float, default=0.1
        Standard deviation of the frequencies at the start: how wiggly a function of a column in [0, 1] can be.
    lite : bool, default=False
        Whether all columns share one linear layer.

    Examples
    --------
    >>> mlp_plr_network(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    rtdl = bench_package("rtdl_num_embeddings")
    periodic = rtdl.PeriodicEmbeddings(
        features, embedding, n_frequencies=frequencies, frequency_init_scale=spread, lite=lite
    )
    return torch.nn.Sequential(periodic, torch.nn.Flatten(), mlp_network(features * embedding, classes, widths))
