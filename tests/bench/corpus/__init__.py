# SPDX-License-Identifier: Apache-2.0
"""A compile cache of vLLM, Inductor and Triton, made from a seed."""
