# SPDX-License-Identifier: Apache-2.0
"""The contract suite of the stores, run on several registries."""
import os
import subprocess

import pytest

from conftest import DEV, REGISTRIES

# go-containerregistry's registry is made for tests: it does not separate the blobs of repositories,
# does not check the blobs of a manifest, stores truncated manifests, has no password, and keeps
# everything in memory.
LEFT_OUT = {"goregistry": (
    "*guarded_registry:*.RepositoriesAreIsolated/*:*.MountedBlobIsReadable*:"
    "*.ManifestWithMissingBlobs*:*.ReferrerWithoutSubjectOrBlobs*:"
    "RealRegistry.*:RegistryWithPassword.*:RegistryWithTls.*:RegistryWithTokens.*:"
    "RegistryThatIsDown.*:*RegistryThatRedirects.*:RegistryOnAFullDisk.*:"
    "BrokenUpload.*:*KilledPublisher.*")}


@pytest.mark.parametrize("name", list(REGISTRIES))
def test_registry_fulfils_store_contract(name):
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
