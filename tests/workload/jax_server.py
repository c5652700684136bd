#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model server that compiles with JAX at start: the gradient of a small transformer, on CPU.

JAX_COMPILATION_CACHE_DIR decides where its compile cache is. Prints compile_s, hits and misses, as
JAX itself counts them. Entries of any compile time are kept, so that a warm start has no misses.
"""

import collections
import os

import ready_server

LAYERS = int(os.environ.get("MODEL_LAYERS", "6"))
WIDTH = 128


def compile_model() -> dict[str, object]:
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    import jax
    import jax.numpy as jnp

    counts: collections.Counter[str] = collections.Counter()
    jax.monitoring.register_event_listener(lambda event, **_: counts.update([event]))

    def block(x, weights):
        qkv = jnp.split(x @ weights["qkv"], 3, axis=-1)
        scores = jax.nn.softmax(qkv[0] @ qkv[1].T / WIDTH**0.5, axis=-1)
        x = x + scores @ qkv[2]
        return x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]

    def loss(layers, x):
        for weights in layers:
            x = block(x, weights)
        return (x**2).mean()

    keys = jax.random.split(jax.random.key(0), LAYERS)
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    layers = [
        {name: jax.random.normal(key, shape) * 0.02 for name, shape in shapes.items()}
        for key in keys
    ]
    x = jax.random.normal(jax.random.key(1), (32, WIDTH))
    value, _ = jax.jit(jax.value_and_grad(loss))(layers, x)
    return {
        "hits": counts["/jax/compilation_cache/cache_hits"],
        "misses": counts["/jax/compilation_cache/cache_misses"],
        "value": f"{float(value):.6g}",
    }


if __name__ == "__main__":
    ready_server.serve(compile_model)
