# SPDX-License-Identifier: Apache-2.0
"""Random chaos in a real cluster: who does it (deeds, outages, denials), to whom (scene), and a
witness with its own watches of the API server, whose judge says what must never be."""
