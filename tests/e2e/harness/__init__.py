# SPDX-License-Identifier: Apache-2.0
"""Shared by the cluster tests: kubectl, the cluster's verbs, the model server and its log line."""
