# SPDX-License-Identifier: Apache-2.0
"""The table of tests/admission against the admission policy itself."""

import pytest
from harness import admission_cases
from harness.kubectl import KubectlError
from harness.waiting import wait_for

CASES = admission_cases.read()
POLICY = "host-paths.cachewarm.io"
ELSEWHERE = {
    "metadata": {"name": "elsewhere"},
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "cache", "hostPath": {"path": "/var/lib/cachewarm/elsewhere"}}],
    },
}


def may_mount_elsewhere(kubectl) -> bool:
    try:
        return bool(admission_cases.dry_runs(kubectl, [ELSEWHERE]))
    except KubectlError as refused:
        assert POLICY in str(refused)
        return False


@pytest.fixture(scope="module")
def any_directory(admin, installed):
    """Without the policy on host paths: the table creates pods with directories of namespaces other
    than their own."""
    kind = "validatingadmissionpolicybinding"
    binding = admin.get(kind, POLICY)
    admin.run("delete", kind, POLICY)
    try:
        default = admin.within("default")
        wait_for(f"{POLICY} is off", lambda: may_mount_elsewhere(default), 60, default)
        yield
    finally:
        admin.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": POLICY, "labels": binding["metadata"]["labels"]},
                "spec": binding["spec"],
            }
        )


@pytest.fixture(scope="module")
def table(admin, any_directory):
    with admission_cases.Table(admin, CASES) as tried:
        yield tried


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_policy_matches_the_admission_table(table, case):
    assert table.outcome(case) in table.wanted(case)
