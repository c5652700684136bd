# SPDX-License-Identifier: Apache-2.0
"""Real nodes: kubelet and containerd in namespaces of their own, with a disk of their own."""
