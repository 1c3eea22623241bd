"""FT-Transformer: every column becomes a token, and attention lets the tokens look at each other."""

from __future__ import annotations

import torch

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import bench_package


class FtTransformerNetwork(torch.nn.Module):
    """The FT-Transformer of Gorishniy et al. 2021, over rows of numbers only.

    Rows hold no integer codes: categories come as numbers from the encoder, so that the network has a gradient in its
    inputs. Without dropout it draws nothing by lot and looks at each row by itself.

    Parameters
    ----------
    transformer : torch.nn.Module
        ``rtdl_revisiting_models.FTTransformer`` without categorical columns.
    """

    def __init__(self, transformer: torch.nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return one number a class for each row."""
        return torch.as_tensor(self.transformer(rows, None))


def ft_transformer_network(
    features: int, classes: int, *, blocks: int = 2, width: int = 64, heads: int = 8, dropout: float = 0.0
) -> torch.nn.Module:
    """Return an untrained FT-Transformer from ``features`` numbers to ``classes`` numbers a row.

    Parameters
    ----------
    features, classes : int
        Numbers a row that go in and come out.
    blocks : int, default=2
        Blocks of attention and feed-forward layers.
    width : int, default=64
        Numbers a token; a multiple of ``heads``.
    heads : int, default=8
        Heads of each attention.
    dropout : float, default=0.0
        Share of the attention's weights that are left out at a time while training.

    Examples
    --------
    >>> ft_transformer_network(3, 2, blocks=1, width=8)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    if width % heads:
        raise InputError(f"The FT-Transformer's width {width} is no multiple of its {heads} heads; choose one that is.")
    rtdl = bench_package("rtdl_revisiting_models")
    return FtTransformerNetwork(
        rtdl.FTTransformer(
            n_cont_features=features,
            cat_cardinalities=[],
            d_out=classes,
            n_blocks=blocks,
            d_block=width,
            attention_n_heads=heads,
            attention_dropout=dropout,
            # Two thirds of a ReLU layer's 2: a gated layer has half as many weights again.
            ffn_d_hidden_multiplier=4 / 3,
            ffn_dropout=0.0,
            residual_dropout=0.0,
        )
    )
