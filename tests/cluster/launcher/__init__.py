# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes on one machine: control plane, nodes in own namespaces, registry, kwok
nodes."""
