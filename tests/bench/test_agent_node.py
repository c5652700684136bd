# SPDX-License-Identifier: Apache-2.0
"""The agent beside an API server: a bundle is requested once, then replaced, and awaited."""
import re
from pathlib import Path
from types import SimpleNamespace

import agent_node
import pytest
import yaml
from processes import CommandFailed

CRD = Path(__file__).parents[2] / "crds/nodecaches.yaml"
DIGEST = "sha256:00"


@pytest.fixture
def node(tmp_path):
    (tmp_path / "agent.log").write_text("the end of its log")
    agent = SimpleNamespace(log=tmp_path / "agent.log",
                            process=SimpleNamespace(poll=lambda: None))
    return agent_node.AgentNode(agent, "http://127.0.0.1:1", tmp_path)


def reporting(monkeypatch, node, *states):
    answers = iter(states)
    monkeypatch.setattr(node, "request", lambda *_: {"status": {"warmups": [
        {"bundles": [{"digest": "sha256:older", "state": "Active"},
                     {"digest": DIGEST, "state": next(answers)}]}]}})


def broken_patterns(schema, value, path):
    """The paths of the strings that do not match the pattern in their schema."""
    if isinstance(value, dict):
        return [found for name, each in value.items()
                for found in broken_patterns(schema["properties"][name], each, f"{path}.{name}")]
    if isinstance(value, list):
        return [found for each in value for found in broken_patterns(schema["items"], each, path)]
    return [] if re.search(schema.get("pattern", ""), str(value)) else [path]


def test_the_agent_accepts_the_request():
    wanted = agent_node.node_cache("bench", "big", "sha256:" + 64 * "a", 1)
    version = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert broken_patterns(spec, wanted["spec"], "spec") == []


def test_second_bundle_replaces_the_first(node, monkeypatch):
    sent, stored = [], []

    def request(method, path, body=None):
        if method == "GET":
            return {"items": stored}
        sent.append((method, path, body["spec"]["warmups"][0]["bundles"][0]["digest"]))
        stored[:] = [agent_node.node_cache("bench", "big", DIGEST, 1)]
        return body

    monkeypatch.setattr(node, "request", request)
    node.want("bench", "big", "sha256:01", 1)
    node.want("bench", "big", "sha256:02", 1)
    path = agent_node.NODE_CACHES
    assert sent == [("POST", path, "sha256:01"), ("PATCH", f"{path}/bench", "sha256:02")]


def test_only_the_requested_bundle_is_awaited(node, monkeypatch):
    reporting(monkeypatch, node, "Waiting", "Fetching", "Active")
    node.await_active(DIGEST, 60)


def test_failed_bundle_is_an_error_with_the_log(node, monkeypatch):
    reporting(monkeypatch, node, "Failed")
    with pytest.raises(CommandFailed, match="(?s)Failed.*the end of its log"):
        node.await_active(DIGEST, 60)


def test_agent_that_ends_is_an_error(node, monkeypatch):
    reporting(monkeypatch, node, "Waiting")
    node.agent.process.poll = lambda: 1
    with pytest.raises(CommandFailed, match="is not active"):
        node.await_active(DIGEST, 60)


def test_durable_mark_is_awaited_for_a_limited_time(node, tmp_path):
    (tmp_path / ".gen/tree").mkdir(parents=True)
    (tmp_path / "bench/big/bench").mkdir(parents=True)
    (tmp_path / "bench/big/bench/image").symlink_to("../../../.gen/tree")
    (tmp_path / ".state/generations").mkdir(parents=True)
    assert node.tree() == tmp_path / ".gen/tree"
    node.await_durable(0)
    (tmp_path / ".state/generations/tree.durable").touch()
    node.await_durable(3600)


@pytest.mark.parametrize("text,url", [
    (None, None),
    ('clusters: [{cluster: {server: "http://127.0.0.1:80"}}]\n', None),
    ('clusters: [{cluster: {server: "http://127.0.0.1:80"}}]\nusers: []\n', "http://127.0.0.1:80")])
def test_address_is_read_from_a_complete_kubeconfig(tmp_path, text, url):
    if text is not None:
        (tmp_path / "kubeconfig").write_text(text)
    assert agent_node.url_of(tmp_path / "kubeconfig") == url


def test_folder_of_the_agent_has_an_empty_root(tmp_path):
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nprintf \'server: "x"\\nusers:\' >"$1"\nexec sleep 60\n')
    program.chmod(0o755)
    programs = SimpleNamespace(agent="/bin/true", api_server=program)
    with agent_node.running(programs, tmp_path, "oci://store") as node:
        assert (node.url, list(node.root.iterdir())) == ("x", [])
