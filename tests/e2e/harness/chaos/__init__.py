# SPDX-License-Identifier: Apache-2.0
"""Random chaos in a real cluster: who does it (actions, outages, denials), to whom (scene), and a
observer with its own watches of the API server, whose judge says what must never be."""
