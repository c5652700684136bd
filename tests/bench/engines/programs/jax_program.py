#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The JAX server of tests/workload as a program that ends after its first call."""

import os
import sys

import start

sys.path.insert(0, sys.argv[1])
import jax_server  # noqa: E402


def main():
    with start.FirstCall(os.environ["JAX_COMPILATION_CACHE_DIR"], "*-cache") as first:
        found = jax_server.compile_model()
    start.report(**first.result, hits=found["hits"], misses=found["misses"])


if __name__ == "__main__":
    main()
