# SPDX-License-Identifier: Apache-2.0
"""Random chaos in a real cluster: the failures (actions, outages, denials), their targets (scene),
and an observer with its own watches of the API server, whose judge reports violations."""
