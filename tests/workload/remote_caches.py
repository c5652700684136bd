#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives the Redis remote caches of torch and Triton with their own clients.

  remote_caches.py torch URL            compiles a function with an empty local cache and prints one
                                        JSON object: what torch counted, and the SHA-256 of every
                                        value that it read and wrote
  remote_caches.py triton URL           writes a kernel's files through Triton's remote cache, reads
                                        them back into an empty local cache, and prints their bytes
  remote_caches.py copy FROM TO KEY...  copies entries between two servers and compares them
  remote_caches.py refused URL          connects to a server that is absent and prints whether torch
                                        ignores the error (only redis.exceptions.ConnectionError)

Triton connects to a host and port only, so its client is given the URL's connection. Needs no GPU.
"""

import atexit
import hashlib
import json
import os
import shutil
import sys
import tempfile


def empty_directory(prefix: str) -> str:
    path = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, path, True)
    return path


def digest(value) -> str:
    return hashlib.sha256(value).hexdigest()


def run_torch(url: str) -> dict:
    os.environ.update(
        TORCHINDUCTOR_REDIS_URL=url,
        TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE="1",
        TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE="1",
        TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE="1",
        TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS="0",
        TORCHINDUCTOR_VEC_ISA_OK="1",
        TORCHINDUCTOR_COMPILE_THREADS="1",
        TORCHINDUCTOR_CACHE_DIR=empty_directory("inductor-"),
    )
    import torch
    from torch._dynamo.utils import counters
    from torch._inductor import remote_cache

    read, written = {}, {}
    backend = remote_cache.RedisRemoteCacheBackend
    get, put = backend._get, backend._put

    def recorded_get(self, key):
        value = get(self, key)
        if value is not None:
            read[key] = digest(value)
        return value

    def recorded_put(self, key, data):
        written[key] = digest(data)
        put(self, key, data)

    backend._get, backend._put = recorded_get, recorded_put

    @torch.compile
    def model(x):
        return (torch.sin(x) * 2 + x.cos()).sum()

    x = torch.arange(64, dtype=torch.float32, requires_grad=True)
    model(x).backward()
    expected = 2 * torch.cos(x) - torch.sin(x)
    stats = {
        name: vars(each)
        for name, each in remote_cache.cache_stats._stats.items()
        if name.startswith("Remote")
    }
    return {
        "stats": stats,
        "fx_hits": counters["inductor"]["fxgraph_cache_hit"],
        "fx_misses": counters["inductor"]["fxgraph_cache_miss"],
        "autograd_hits": counters["aot_autograd"]["autograd_cache_hit"],
        "read": read,
        "written": written,
        "max_diff": (x.grad - expected).abs().max().item(),
    }


def run_triton(url: str) -> dict:
    os.environ.update(
        TRITON_CACHE_MANAGER="triton.runtime.cache:RemoteCacheManager",
        TRITON_REMOTE_CACHE_BACKEND="triton.runtime.cache:RedisRemoteCacheBackend",
    )
    import redis

    connect = redis.Redis
    redis.Redis = lambda host, port: connect.from_url(url)
    from triton import knobs
    from triton.runtime.cache import get_cache_manager

    # Triton 3.9 reads knobs.cache.redis, which does not exist: its client needs this to start.
    knobs.cache.redis = knobs.redis
    key = digest(b"kernel")
    files = {"k.cubin": b"\x7fELF\x00\xff\r\n" * 1000, "k.json": b'{"name": "k"}'}
    os.environ["TRITON_CACHE_DIR"] = empty_directory("triton-")
    writer = get_cache_manager(key)
    missing = writer.get_group("k.json")
    writer.put_group("k.json", {name: writer.put(data, name) for name, data in files.items()})
    os.environ["TRITON_CACHE_DIR"] = empty_directory("triton-")
    found = get_cache_manager(key).get_group("k.json") or {}
    restored = {name: open(path, "rb").read() for name, path in found.items()}
    return {
        "missing": missing,
        "equal": restored == files,
        "files": {name: digest(data) for name, data in sorted(restored.items())},
    }


def copy(source: str, target: str, keys: list[str]) -> dict:
    import redis

    old, new = redis.Redis.from_url(source), redis.Redis.from_url(target)
    values = old.mget(keys)
    for key, value in zip(keys, values):
        new.set(key, value)
    return {"equal": new.mget(keys) == values and None not in values, "keys": len(keys)}


def refused(url: str) -> dict:
    import redis

    try:
        redis.Redis.from_url(url).get("key")
    except redis.exceptions.RedisError as error:
        return {"ignored": isinstance(error, redis.exceptions.ConnectionError)}
    return {"ignored": False}


def main() -> None:
    action, *rest = sys.argv[1:]
    runs = {"torch": run_torch, "triton": run_triton, "refused": refused}
    result = copy(rest[0], rest[1], rest[2:]) if action == "copy" else runs[action](*rest)
    print("RESULT " + json.dumps(result, sort_keys=True))


if __name__ == "__main__":
    main()
