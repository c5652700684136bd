#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM's OpenAI server for a model that needs no download: a small Llama with dummy weights, whose
configuration is written to MODEL_DIR (default /tmp/model). Arguments are those of vLLM's server.

The model's path is part of vLLM's cache key: keep it the same everywhere. The server answers
GET /health on --port (default 8000) once it is ready. Prompts are token ids. In a pod it needs an
emptyDir of medium Memory at /dev/shm.
"""

import json
import os
import sys
from pathlib import Path

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 1024,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
OPTIONS = "--load-format dummy --skip-tokenizer-init --max-model-len 256 --max-num-seqs 4"


def main() -> None:
    model = Path(os.environ.get("MODEL_DIR", "/tmp/model"))
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIG))
    server = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    arguments = [*server, *OPTIONS.split(), "--dtype", "bfloat16", *sys.argv[1:]]
    os.execve(sys.executable, arguments, {**ENVIRONMENT, **os.environ})


if __name__ == "__main__":
    main()
