"""The summed loss of many rows, with its gradient written out by hand.

Torch would derive the same gradient from ``FactorisedAutoencoder.loss``, in more time. It goes over the rows once for
every operation, fills zeros where a matrix is put together from halves, and does not see that

- nothing lies between the layers ``w_code`` and ``w_back``, so that rows need only meet the product M of the two;
- the quadratic form g A g' of the loss, where A = U'U is symmetric, has the gradient 2 g A, and g A is there already.

The names are those of :mod:`c2tc_pipeline.encoding.autoencoder`; ``d_x`` is the gradient of x.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from c2tc_pipeline.encoding.autoencoder_inputs import WeightedRows


class SummedLoss(torch.autograd.Function):
    """The weighted sum of the squared reconstruction errors of some rows, as a function of all weights.

    Examples
    --------
    >>> from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
    >>> model = FactorisedAutoencoder([torch.eye(3)], latent=1, hidden=4, generator=torch.Generator().manual_seed(0))
    >>> rows = WeightedRows.of(model.inputs_at(torch.tensor([[0], [2]])), torch.tensor([1.0, 3.0]))
    >>> SummedLoss.apply(rows, *model.parameters()).backward()
    >>> model.w_in.grad.shape
    torch.Size([3, 4])
    """

    @staticmethod
    def forward(ctx: Any, rows: WeightedRows, *weights: torch.Tensor) -> torch.Tensor:
        """Return the loss; the weights come in the order in which the autoencoder has them."""
        w_in, b_in, w_code, b_code, w_back, b_back, w_out, b_out = weights
        # Inputs meet the first layer and the output layer in one look-up: x.W and x.U side by side.
        h, crossed = rows.inputs.times(torch.cat([w_in, w_out], dim=1)).tensor_split(2, dim=1)
        h.add_(b_in).relu_()
        between = w_code @ w_back
        g = torch.addmm(b_code @ w_back + b_back, h, between).relu_()
        form = g @ (w_out.T @ w_out)
        missed = torch.sub(w_out.T @ b_out, crossed, out=crossed)
        decoded = rows.weight @ torch.add(form, missed, alpha=2).mul_(g)
        biased = rows.weight.sum() * (b_out @ b_out) - 2 * (rows.summed @ b_out)
        ctx.rows = rows
        ctx.layers = h, between, g, form.add_(missed)
        ctx.save_for_backward(w_code, b_code, w_back, w_out, b_out)
        return rows.power + biased + decoded.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of all weights."""
        rows, (h, between, g, half_d_g) = ctx.rows, ctx.layers
        w_code, b_code, w_back, w_out, b_out = ctx.saved_tensors
        # Every term is twice a row's share in the loss, times something.
        share = 2 * gradients[0] * rows.weight

        # Both halves are written where the look-up wants them: x.W on the left, x.U on the right.
        d_met = g.new_empty(len(g), 2 * g.shape[1])
        d_first, d_crossed = d_met.tensor_split(2, dim=1)
        torch.mul(g, -share[:, None], out=d_crossed)
        d_back = half_d_g * share[:, None]
        _through_relu(d_back, g, out=d_back)
        _through_relu(d_back @ between.T, h, out=d_first)

        d_between, d_b_back = h.T @ d_back, d_back.sum(dim=0)
        d_w_in, d_w_out = rows.inputs.back(d_met).tensor_split(2, dim=1)
        # U is not only in x.U, but also in U'U and in U'b.
        d_bias_term = -d_crossed.sum(dim=0)
        d_w_out.addmm_(w_out, g.T @ d_crossed, alpha=-1).addr_(b_out, d_bias_term)
        return (
            None,
            d_w_in,
            d_first.sum(dim=0),
            d_between @ w_back.T,
            w_back @ d_b_back,
            (w_code.T @ d_between).addr_(b_code, d_b_back),
            d_b_back,
            d_w_out,
            w_out @ d_bias_term + share.sum() * b_out - 2 * gradients[0] * rows.summed,
        )


def _through_relu(gradient: torch.Tensor, output: torch.Tensor, *, out: torch.Tensor) -> None:
    """Write the gradient of what went into a ReLU, given the gradient of what came out."""
    torch.ops.aten.threshold_backward(gradient, output, 0, grad_input=out)
