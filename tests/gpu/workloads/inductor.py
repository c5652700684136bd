# SPDX-License-Identifier: Apache-2.0
"""Compiles a transformer block with torch.compile; counts hits of Inductor's FX graph cache."""

import json
import time

import torch
from torch._dynamo.utils import counters

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True).cuda().eval()
data = torch.randn(8, 64, 256, device="cuda")
begin = time.monotonic()
with torch.no_grad():
    torch.compile(layer)(data)
torch.cuda.synchronize()
counted = counters["inductor"]
print(json.dumps({"counter": "fxgraph_cache_hit, fxgraph_cache_miss",
                  "hits": counted["fxgraph_cache_hit"], "misses": counted["fxgraph_cache_miss"],
                  "seconds": time.monotonic() - begin}))
