# SPDX-License-Identifier: Apache-2.0
"""The sources of a room, and the test programs that cover them."""
import re
import subprocess
from pathlib import Path

# A name that stands for sources in several rooms.
ROOTS = {"roots": ["operator/daemon.cc", "operator/config.cc", "operator/main.cc",
                   "agent/daemon.cc", "agent/config.cc", "agent/main.cc", "cli/main.cc",
                   "cli/limits.cc", "cli/verbs.cc"]}
# Beside those of the folder below tests/unit that mirrors a source, or of the nearest above it.
ALSO = {
    "operator/plan": ["operator_plan_golden_test", "sim_test"],
    "operator/daemon.cc": ["operator_settings_test", "operator_program_test"],
    "operator/config.cc": ["operator_settings_test", "reference_golden_test"],
    "operator/metrics.cc": ["reference_golden_test"],
    "agent/config.cc": ["reference_golden_test"],
    "agent/daemon.cc": ["agent_program_test"],
    "agent/metrics.cc": ["reference_golden_test"],
    "lib/caches": ["reference_golden_test"],
    "operator/main.cc": ["operator_program_test"],
    "agent/main.cc": ["agent_program_test"],
    "cli/main.cc": ["cli_program_test"],
    "agent/tree": ["agent_test"],
    "agent/watch": ["agent_test"],
    "agent/steps": ["agent_test", "agent_settings_test"],
    "agent/steps/fetching": ["agent_durable_test"],
    "lib/bundle/store": ["bundle_store_test"],
}
# Programs that a test starts; they get the fault too.
STARTS = {"agent_program_test": "cachewarm-agent", "cli_program_test": "cachewarm",
          "operator_program_test": "cachewarm-operator"}


def sources(root, room):
    if room in ROOTS:
        return ROOTS[room]
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", f"{room}/*.cc"],
                            cwd=root, text=True, capture_output=True, check=True).stdout.split()
    return sorted(listed)


def programs(root, file):
    """The test programs of a source, the cheapest first."""
    folder, found = Path(file).parent, []
    while not found and folder != Path("."):
        lists = Path(root) / "tests/unit" / folder / "CMakeLists.txt"
        if lists.exists():
            found = re.findall(r"^cachewarm_test\((\w+)", lists.read_text(), re.M)
        folder = folder.parent
    for prefix, names in ALSO.items():
        if file == prefix or file.startswith(prefix + "/"):
            found += [name for name in names if name not in found]
    return found
