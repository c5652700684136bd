#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_program.py MODEL [load CARRIER | save CARRIER...]: compiles a model with its first call.

`load` fetches the cache before the first call; `save` saves it afterwards, with each carrier. Fails
if the result differs from eager mode.
"""

import os
import sys
import time

import torch

import carriers
import models
import start


def main():
    name, verb, names = sys.argv[1], "".join(sys.argv[2:3]), sys.argv[3:]
    torch.manual_seed(0)
    build, inputs, dynamic = models.MODELS[name]()
    model = build.eval()
    fields = {"restore_seconds": None, "save_seconds": {}}
    chosen = {each: carriers.CARRIERS[each]() for each in names}
    if verb == "load":
        began = time.monotonic()
        chosen[names[0]].load()
        fields["restore_seconds"] = time.monotonic() - began
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic or None)
    with start.FirstCall(os.environ["TORCHINDUCTOR_CACHE_DIR"], "*.main.so") as first:
        with torch.no_grad():
            outputs = [compiled(each) for each in inputs]
    with torch.no_grad():
        wrong = max((model(x) - y).abs().max().item() for x, y in zip(inputs, outputs))
    assert wrong < 1e-3, f"{name}: differs from eager mode by {wrong}"
    from torch._dynamo.utils import counters

    inductor = counters["inductor"]
    fields |= {"hits": inductor["fxgraph_cache_hit"], "misses": inductor["fxgraph_cache_miss"]}
    if verb == "save":
        for each in names:
            began = time.monotonic()
            chosen[each].save()
            fields["save_seconds"][each] = time.monotonic() - began
    start.report(**first.result, **fields)


if __name__ == "__main__":
    main()
