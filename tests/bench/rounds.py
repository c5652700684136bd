# SPDX-License-Identifier: Apache-2.0
"""Interleaved rounds: each runs every contender once, in a different order, so that other load and
the leftovers of other contenders affect all contenders equally."""
import random

from processes import CommandFailed


def shuffled(items, number):
    """Returns the items in an order that depends only on the round's number. No item always follows
    the same one, and every run has the same orders."""
    return random.Random(number).sample(items, len(items))


class Runs:
    """Samples by (corpus, disk, contender's title), one per round; None where it failed."""

    def __init__(self):
        self.samples = {}
        self.errors = []

    def add(self, key, sample):
        """Appends the sample of the next round."""
        self.samples.setdefault(key, []).append(sample)

    def of(self, corpus, disk, title):
        """Returns the sample of every round; empty if the contender did not run."""
        return self.samples.get((corpus, disk, title), [])

    def run(self, course, contender):
        """Runs one contender once. Records a failure, and the round continues."""
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
            result = f"{sample.wall:8.2f} s" if sample else "  FAILED  "
            say(f"round {number + 1}/{rounds} {result} {course.corpus.name}/{course.disk.name} "
                f"{contender.title}")
