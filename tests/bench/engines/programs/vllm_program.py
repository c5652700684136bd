#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM with the model of tests/workload/vllm_server.py, as a program that ends after one answer.

The first call is the start of the engine and one answer. `hits` and `misses` count the graphs that
vLLM loaded from its cache and that it compiled, by its own log.
"""

import json
import os
import re
import sys
from pathlib import Path

import start

sys.path.insert(0, sys.argv[1])
import vllm_server  # noqa: E402

LOADED = re.compile(r"Directly load AOT compilation|Directly load the compiled graph")
COMPILED = re.compile(r"saved AOT compiled function|Compiling a graph for")


def answer():
    model = Path("/tmp/model")
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(vllm_server.CONFIG))
    from vllm import LLM, SamplingParams

    llm = LLM(model=str(model), load_format="dummy", skip_tokenizer_init=True, max_model_len=256,
              max_num_seqs=4, dtype="bfloat16")
    llm.generate([{"prompt_token_ids": [1, 5, 7, 9]}],
                 SamplingParams(max_tokens=4, detokenize=False))


def main():
    os.environ.update({**vllm_server.ENVIRONMENT, **os.environ})
    log = os.open("/tmp/vllm.log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    kept = os.dup(1)
    for stream in (1, 2):  # of the workers too
        os.dup2(log, stream)
    with start.FirstCall(os.environ["VLLM_CACHE_ROOT"], "*.main.so") as first:
        answer()
    os.dup2(kept, 1)
    text = Path("/tmp/vllm.log").read_text()
    hits, misses = (len(pattern.findall(text)) for pattern in (LOADED, COMPILED))
    start.report(**first.result, hits=hits, misses=misses)


if __name__ == "__main__":  # vLLM's workers import this file
    main()
