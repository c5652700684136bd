# SPDX-License-Identifier: Apache-2.0
"""Server-side apply of what the programs write: accepted, read back the same, a no-op when it is
applied again."""

import json

import pytest

from harness import definitions
from harness.definitions import AGENT, golden, impersonating, nodecache, warmup
from harness.kubectl import Kubectl


def apply(client: Kubectl, manager: str, thing: dict, *flags: str) -> dict:
    words = ("apply", "--server-side", f"--field-manager={manager}", "-f", "-", "-o", "json")
    return json.loads(client.run(*words, *flags, text_in=json.dumps(thing)))


def without(thing: dict, *keys: str) -> dict:
    return {key: value for key, value in thing.items() if key not in keys}


@pytest.fixture
def node(operator):
    """The name of a NodeCache of the test's own; no node, and so no agent, has that name."""
    name = f"round-trip-{operator.namespace[-5:]}"
    yield name
    operator.delete("nodecache", name)


@pytest.fixture
def agent(kubectl, node) -> Kubectl:
    extra = f"--as-user-extra=authentication.kubernetes.io/node-name={node}"
    return impersonating(kubectl, AGENT, extra)


def test_warmup_status_reads_back_as_it_was_written(kubectl, operator):
    full = golden("cachewarmup.json")
    full["spec"]["paused"] = True  # the operator, where it runs, leaves it alone
    kubectl.apply(without(full, "status"))
    written = without(full, "spec")
    first = apply(operator, "golden", written, "--subresource=status")
    second = apply(operator, "golden", written, "--subresource=status")
    assert {key: first["status"][key] for key in full["status"]} == full["status"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_field_that_goes_back_to_zero_is_removed(kubectl, operator):
    kubectl.apply(warmup(selector={"matchLabels": {"app": "llama"}}, paused=True))
    thing = without(warmup(), "spec")
    thing["status"] = {"starts": {"counts": {"hit": 1, "miss": 2}}}
    apply(operator, "golden", thing, "--subresource=status")
    thing["status"] = {"starts": {"counts": {"hit": 1}}}
    after = apply(operator, "golden", thing, "--subresource=status")
    assert after["status"]["starts"]["counts"] == {"hit": 1}


def test_nodecache_spec_reads_back_as_it_was_written(operator, node):
    full = golden("nodecache.json")
    full["metadata"]["name"] = node
    written = without(full, "status")
    first = apply(operator, "cw-0b9c", written)
    second = apply(operator, "cw-0b9c", written)
    assert first["spec"] == full["spec"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_nodecache_status_reads_back_as_it_was_written(operator, agent, node):
    apply(operator, "cachewarm-operator", nodecache(node))
    full = without(golden("nodecache.json"), "spec")
    full["metadata"]["name"] = node
    first = apply(agent, "cachewarm-agent", full, "--subresource=status")
    second = apply(agent, "cachewarm-agent", full, "--subresource=status")
    assert first["status"] == full["status"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_each_warmup_owns_just_its_own_entries(operator, node):
    def entry(uid: str, *run_as: str) -> dict:
        return nodecache(
            node,
            spec={
                "warmups": [
                    {"uid": uid, "namespace": "default", "name": uid, "runAs": list(run_as)}
                ],
                "starts": [{"podUID": f"pod-{uid}", "warmupUID": uid, "runAs": run_as[0]}],
            },
        )

    apply(operator, "cw-one", entry("one", "image"))
    both = apply(operator, "cw-two", entry("two", "u1000"))
    assert [w["uid"] for w in both["spec"]["warmups"]] == ["one", "two"]
    apply(operator, "cw-one", entry("one", "u0", "image"))
    left = apply(operator, "cw-two", nodecache(node, spec={}))
    assert [w["uid"] for w in left["spec"]["warmups"]] == ["one"]
    assert left["spec"]["warmups"][0]["runAs"] == ["u0", "image"]
    assert [s["podUID"] for s in left["spec"]["starts"]] == ["pod-one"]


def test_one_key_may_be_wanted_with_two_bundles(operator, node):
    digests = [f"sha256:{digit * 64}" for digit in "12"]
    wanted = nodecache(node, spec={"warmups": [{
        "uid": "one", "namespace": "default", "name": "one",
        "bundles": [{"key": "a" * 64, "digest": digest} for digest in digests]}]})
    made = apply(operator, "cw-one", wanted)
    assert [b["digest"] for b in made["spec"]["warmups"][0]["bundles"]] == digests


def test_limits_of_the_schema_are_those_of_a_whole_node(operator, node):
    starts = [{"podUID": f"p{i}", "warmupUID": "w", "runAs": "image"} for i in range(65)]
    apply(operator, "cw-w", nodecache(node, spec={"starts": starts[:64]}))
    words = definitions.answer(
        operator, "apply", "--server-side", "--field-manager=cw-x", "-f", "-",
        given=nodecache(node, spec={"starts": starts[64:]}),
    )
    assert "must have at most 64 items" in words
