#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a transformer block that is split over two processes (tensor parallelism on CPU,
gloo): compiles a step, runs it and ends. Reads torch.distributed's variables.

Usage: rank.py [--autotune]. With it Inductor measures variants of its matrix products."""

import argparse

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.nn import functional

WIDTH, HEADS, TOKENS, BLOCKS = 128, 4, 32, 1


class Block(nn.Module):
    """Attention and feed-forward part: each rank has a share of the heads and of the width."""

    def __init__(self, ranks, group):
        super().__init__()
        self.group, self.heads, share = group, HEADS // ranks, WIDTH // ranks
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * share), nn.Linear(share, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * share), nn.Linear(4 * share, WIDTH)

    def sum(self, x):
        return funcol.all_reduce(x, "sum", self.group)

    def attention(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, -1))

    def forward(self, x):
        x = x + self.sum(self.attention(self.first(x)))
        return x + self.sum(self.down(functional.gelu(self.up(self.second(x)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--autotune", action="store_true")
    arguments = parser.parse_args()
    if arguments.autotune:
        from torch._inductor import config
        config.max_autotune = config.max_autotune_gemm = config.freezing = True
        config.max_autotune_gemm_backends = "CPP,ATEN"
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())  # the weights of a rank are its own
    model = nn.Sequential(*(Block(dist.get_world_size(), dist.group.WORLD) for _ in range(BLOCKS)))
    torch.manual_seed(7)
    x = torch.randn(1, TOKENS, WIDTH)
    with torch.no_grad():
        compiled = torch.compile(model.eval())(x)
        difference = float((compiled - model(x)).abs().max())
    dist.destroy_process_group()
    assert difference < 1e-3, f"compiled and eager results differ by {difference}"


if __name__ == "__main__":
    main()
