# SPDX-License-Identifier: Apache-2.0
"""The contract suite of our stores on the registries of others."""
import os
import subprocess

import pytest

from conftest import DEV, REGISTRIES

# go-containerregistry's registry is one of tests: it keeps the blobs of all repositories together,
# looks at no manifest's blobs, keeps the half of a manifest that breaks off, has no password, and
# forgets everything with its process.
LEFT_OUT = {"goregistry": (
    "*guarded_registry:*.RepositoriesAreIsolated/*:*.AMountedBlobIsReadable*:"
    "*.AManifestWhoseBlobsAreMissing*:*.WhatRefersToNothingOrLacksItsBlobs*:"
    "RealRegistry.*:RegistryWithPassword.*:RegistryWithTls.*:RegistryWithTokens.*:"
    "RegistryThatIsDown.*:*RegistryThatRedirects.*:RegistryOnAFullDisk.*:"
    "BrokenUpload.*:*KilledPublisher.*")}


@pytest.mark.parametrize("name", list(REGISTRIES))
def test_the_store_contract_holds_on_it(name):
    suite = DEV / "tests/contract/store/store_contract_test"
    chosen = ("*registry:*Registry*:BrokenUpload.*:BrokenDownload.*:*KilledPublisher.*"
              f"-{LEFT_OUT.get(name, '')}")
    done = subprocess.run(
        [str(suite), f"--gtest_filter={chosen}"],
        env={**os.environ, "CACHEWARM_REGISTRY_BIN": str(REGISTRIES[name])}, text=True,
        capture_output=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "SKIPPED" not in done.stdout
    assert "ReferrersAreListed/registry" in done.stdout
