# SPDX-License-Identifier: Apache-2.0
"""Loads and saves of a program that carries its cache itself: by torch's mega-cache, by fal's
toolkit and by b10-transfer. fal and b10-transfer are the published packages, called as their
documentation shows. /data and /cache are volumes that all machines share."""

import importlib.util
from pathlib import Path

MEGA = Path("/data/mega.bin")
KEY = "bench/model"
FAL = "fal/toolkit/compilation.py"


class Mega:
    def load(self):
        import torch

        torch.compiler.load_cache_artifacts(MEGA.read_bytes())

    def save(self):
        import torch

        artifacts = torch.compiler.save_cache_artifacts()
        assert artifacts is not None, "torch has no cache artifacts"
        MEGA.write_bytes(artifacts[0])


class Fal:
    """The module is loaded by its file: importing the whole package would take a second."""

    def __init__(self):
        file = Path(importlib.util.find_spec("b10_transfer").origin).parents[1] / FAL
        spec = importlib.util.spec_from_file_location("fal_compilation", file)
        self._module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._module)
        self._hash = ""

    def load(self):
        self._hash = self._module.load_inductor_cache(KEY)
        assert self._hash, "fal loaded nothing"

    def save(self):
        self._module.sync_inductor_cache(KEY, self._hash)


class B10:
    def load(self):
        from b10_transfer import OperationStatus, load_compile_cache

        status = load_compile_cache()
        assert status == OperationStatus.SUCCESS, f"b10-transfer: load: {status}"

    def save(self):
        from b10_transfer import OperationStatus, save_compile_cache

        status = save_compile_cache()
        assert status == OperationStatus.SUCCESS, f"b10-transfer: save: {status}"


CARRIERS = {"mega": Mega, "fal": Fal, "b10": B10}
