# SPDX-License-Identifier: Apache-2.0
"""What the cluster tests share: kubectl, the test cluster's verbs, the model server, its log
line."""
