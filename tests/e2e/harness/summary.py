# SPDX-License-Identifier: Apache-2.0
"""The causes of a failed wait in few lines: CI keeps only the end of a long output. Pure: objects
in, text out."""

LINES = 25
COLUMNS = 160
# Lines of each kind of object. Two lines are left for the lists that only one namespace answered.
_LINES_OF = {"nodes": 3, "events": 8, "pods": 7, "cachewarmups": 5}
# Conditions that only repeat that a container's state is not as it should be.
_OF_CONTAINERS = ("ContainersNotReady", "ContainersNotInitialized")
# The value of a condition that is as it should be; "True" for all others.
_GOOD = {"Degraded": "False"}


def summarize(objects: dict[str, list[dict]]) -> list[str]:
    """Returns a line for each of the given nodes, pods, warnings and CacheWarmups that is not as
    it should be. `objects` has a list for each key of _LINES_OF; a missing one counts as empty.
    At most LINES lines of COLUMNS characters, the most telling ones last."""
    lines_of = {
        "nodes": [*map(_of_node, objects.get("nodes", []))],
        "events": _of_events(objects.get("events", [])),
        "pods": [*map(_of_pod, objects.get("pods", []))],
        "cachewarmups": [
            line for warmup in objects.get("cachewarmups", []) for line in _of_warmup(warmup)
        ],
    }
    return [
        _cut(line)
        for kind, lines in lines_of.items()
        for line in _bounded(kind, [line for line in lines if line])
    ]


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def _bounded(kind: str, lines: list[str]) -> list[str]:
    limit = _LINES_OF[kind]
    if len(lines) <= limit or kind == "events":
        return lines[-limit:]
    left_out = len(lines) - limit + 1
    return [f"({left_out} more of {kind})", *lines[left_out:]]


def _cut(line: str) -> str:
    text = one_line(line)
    return text if len(text) <= COLUMNS else f"{text[: COLUMNS - 3]}..."


def _words(thing: dict) -> str:
    """'reason: message', or the one that is there."""
    return ": ".join(str(thing[key]) for key in ("reason", "message") if thing.get(key))


def _of_node(node: dict) -> str:
    conditions = node.get("status", {}).get("conditions") or []
    parts = [
        f"{each['type']}={each['status']} {_words(each)}"
        for each in conditions
        if each["status"] != ("True" if each["type"] == "Ready" else "False")
    ]
    if not any(each["type"] == "Ready" for each in conditions):
        parts.append("no condition Ready")
    taints = node.get("spec", {}).get("taints") or []
    parts += [f"taint {each['key']}:{each['effect']}" for each in taints]
    return f"node {node['metadata']['name']}: {'; '.join(parts)}" if parts else ""


def _of_events(events: list[dict]) -> list[str]:
    warnings = [each for each in events if each.get("type") == "Warning"]
    out = []
    for each in sorted(warnings, key=_last_seen):
        about = each.get("involvedObject", {})
        out.append(f"event {about.get('kind')}/{about.get('name')}: {_words(each)}")
    return out


def _last_seen(event: dict) -> str:
    """All forms of a time sort as text up to the second."""
    last = (event.get("series") or {}).get("lastObservedTime")
    return last or event.get("lastTimestamp") or event.get("eventTime") or ""


def _of_pod(pod: dict) -> str:
    status, metadata = pod.get("status", {}), pod["metadata"]
    conditions = status.get("conditions") or []
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    if is_ready or status.get("phase") == "Succeeded":
        return ""
    parts = ["being deleted"] if "deletionTimestamp" in metadata else []
    parts += [_words(status)] if _words(status) else []
    states = _of_containers(status)
    parts += [
        f"{each['type']} {_words(each)}"
        for each in conditions
        if each["status"] != "True" and not (states and each.get("reason") in _OF_CONTAINERS)
    ]
    node = pod.get("spec", {}).get("nodeName") or "no node"
    name = f"{metadata.get('namespace', '')}/{metadata['name']}"
    end = f": {'; '.join(parts + states)}" if parts or states else ""
    return f"pod {name} {status.get('phase')} on {node}{end}"


def _of_containers(status: dict) -> list[str]:
    out = []
    for key, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for each in status.get(key) or []:
            name, state = each["name"], each.get("state") or {}
            if waiting := state.get("waiting"):
                out.append(f"{name} {_words(waiting)}")
            elif "running" in state and (is_init or not each.get("ready")):
                out.append(f"{name} runs" + ("" if is_init else " and is not ready"))
            for ended in (state.get("terminated"), (each.get("lastState") or {}).get("terminated")):
                if ended and ended.get("exitCode") != 0:
                    out.append(f"{name} exited with {ended.get('exitCode')} {_words(ended)}")
    return out


def _of_warmup(warmup: dict) -> list[str]:
    name, status = warmup["metadata"]["name"], warmup.get("status", {})
    lines = [
        f"warmup {name}: {each['type']}={each['status']} {_words(each)}"
        for each in status.get("conditions") or []
        if each["status"] != _GOOD.get(each["type"], "True")
    ]
    builders = status.get("builders") or []
    for each in sorted(builders, key=lambda build: build.get("state") != "Captured"):
        build = f"{each.get('key', '')[:8]} {each.get('state')}, attempt {each.get('attempt')}"
        lines.append(f"warmup {name}: build {build} {_words(each)}")
    return lines
