# SPDX-License-Identifier: Apache-2.0
"""The Dockerfiles have no fault that can be found without docker; planted faults are found."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import dockerfiles  # noqa: E402

FILES = sorted((ROOT / "images").glob("Dockerfile.*"))
AGENT = (ROOT / "images/Dockerfile.agent").read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_dockerfile_has_no_fault(file):
    assert not list(dockerfiles.check(file.name, file.read_text(), ROOT))


def test_every_image_has_a_dockerfile():
    assert [file.suffix[1:] for file in FILES] == ["agent", "model-server", "operator"]


@pytest.mark.parametrize("old, new, message", [
    ("ENTRYPOINT", "ENTRYPOIN", 'unknown instruction "ENTRYPOIN"'),
    ("WORKDIR /src", "WORKDIR", "WORKDIR has no arguments"),
    ("WORKDIR /src", "WORKDIR src", "expected an absolute path"),
    ("WORKDIR /src", "USER root", "expected UID"),
    ("WORKDIR /src", "ENV PATH", "expected NAME=VALUE"),
    ("bookworm AS build", "bookworm build", "expected IMAGE [AS NAME]"),
    ("AS build", "AS builds", "--from=build: there is no such stage"),
    ("COPY --from=build", "COPY --form=build", "has no flag --form"),
    ("COPY tools/setup", "COPY tools/set-up", "tools/set-up does not exist"),
    ("COPY tools/setup /src", "COPY tools/setup README.md /src", "must end with /"),
    ("release/agent/cachewarm-agent /usr", "release/agent/agent /usr", "no CMakeLists.txt builds"),
    ('"/usr/bin/cachewarm-agent"]', '"/usr/bin/cachewarm-agent"', "expected a JSON array"),
    ('["/usr/bin/cachewarm-agent"]', "/usr/bin/cachewarm-agent", "expected a JSON array"),
    ("    && strip", "    && (strip", "RUN: "),
    ('cuda-headers)"', "cuda-headers)", "RUN: "),
    ("FROM debian:bookworm AS build\n", "", "before the first FROM"),
])
def test_a_planted_fault_is_found(old, new, message):
    assert old in AGENT
    found = list(dockerfiles.check("Dockerfile", AGENT.replace(old, new), ROOT))
    assert any(message in each for each in found), found


def test_a_line_that_is_continued_at_the_end_is_found():
    found = list(dockerfiles.check("Dockerfile", "FROM debian\nRUN true && \\\n", ROOT))
    assert found == ["Dockerfile:2: the last line ends with a backslash"]


def test_a_file_without_a_stage_is_found():
    assert list(dockerfiles.check("Dockerfile", "ARG A=1\n", ROOT)) == ["Dockerfile: no FROM"]
