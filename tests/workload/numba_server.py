#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that compiles three functions with Numba at start.

NUMBA_CACHE_DIR decides where the compiled code is kept. Prints compile_s, and hits and misses as
Numba's dispatchers count them, summed over the functions.
"""

import numba
import numpy as np
import ready_server


@numba.njit(cache=True)
def smooth(x, rounds):
    for _ in range(rounds):
        y = x.copy()
        for i in range(1, x.size - 1):
            y[i] = (x[i - 1] + 2.0 * x[i] + x[i + 1]) / 4.0
        x = y
    return x


@numba.njit(cache=True)
def distances(points):
    found = np.zeros((len(points), len(points)))
    for i in range(len(points)):
        for j in range(len(points)):
            found[i, j] = np.sqrt(((points[i] - points[j]) ** 2).sum())
    return found


@numba.njit(cache=True)
def ranks(x):
    return np.argsort(np.argsort(x))


def compile_model() -> dict[str, object]:
    x = np.linspace(0.0, 1.0, 64)
    total = smooth(x, 3).sum() + distances(x.reshape(16, 4)).sum() + ranks(x).sum()
    stats = [function.stats for function in (smooth, distances, ranks)]
    return {
        "hits": sum(sum(each.cache_hits.values()) for each in stats),
        "misses": sum(sum(each.cache_misses.values()) for each in stats),
        "value": f"{total:.6g}",
    }


if __name__ == "__main__":
    ready_server.serve(compile_model)
