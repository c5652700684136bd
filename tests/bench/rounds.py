# SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds: each runs every contender once, in an order of its own, so that what the
machine does meanwhile, and what another contender left behind, meets all of them alike."""
import random

from processes import CommandFailed


def shuffled(items, number):
    """The items in an order that the round's number gives: nobody has the same neighbours twice
    for long, and the next run has the same orders."""
    return random.Random(number).sample(items, len(items))


class Runs:
    """Samples by (corpus, disk, contender's title), one per round; None where it failed."""

    def __init__(self):
        self.samples = {}
        self.errors = []

    def add(self, key, sample):
        """Appends the next round's."""
        self.samples.setdefault(key, []).append(sample)

    def of(self, corpus, disk, title):
        """Every round's; empty when it did not run."""
        return self.samples.get((corpus, disk, title), [])

    def run(self, course, contender):
        """One contender once. A failure is kept, and the round goes on."""
        key = (course.corpus.name, course.disk.name, contender.title)
        try:
            with course.clean_target():
                sample = contender.run(course)
        except CommandFailed as error:
            self.errors.append(f"{'/'.join(key)}: {error}")
            sample = None
        self.add(key, sample)
        return sample


def run_rounds(runs, entries, rounds, say):
    """`entries` are (course, contender) pairs."""
    for number in range(rounds):
        for course, contender in shuffled(entries, number):
            sample = runs.run(course, contender)
            told = f"{sample.wall:8.2f} s" if sample else "  FAILED  "
            say(f"round {number + 1}/{rounds} {told} {course.corpus.name}/{course.disk.name} "
                f"{contender.title}")
