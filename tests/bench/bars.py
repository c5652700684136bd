# SPDX-License-Identifier: Apache-2.0
"""The bars: names, ratios, and whether they hold. Pure."""
import itertools
import statistics
from dataclasses import dataclass

NOT_RUN = "not run"
MIB_BIG = 900e6  # least bytes of a corpus for agent_rss_mb_1g


@dataclass(frozen=True)
class Bar:
    """`of` defines the ratio: "speed" is rival / cachewarm, "cost" is cachewarm / rival (both are
    medians of same-round ratios), "best" is cachewarm / rival of the best rounds, "peak" is the
    larger memory."""
    name: str
    of: str
    bar: float
    cachewarm: str
    rival: str = ""
    field: str = "wall"
    what: str = ""

    @property
    def at_least(self):
        """True if the bar is a minimum, False if it is a maximum."""
        return self.of == "speed"


def speed(name, bar, cachewarm, rival, what):
    """Returns a bar for how many times faster cachewarm is."""
    return Bar(name, "speed", bar, cachewarm, rival, what=what)


BARS = [
    speed("pack_vs_zip", 10, "pack/cachewarm", "pack/zip", "zip -r / cachewarm"),
    speed("pack_vs_tar_zstd", 1.2, "pack/cachewarm", "pack/tar_zstd",
          "tar | zstd -3 -T2 / cachewarm"),
    speed("unpack_vs_unzip", 4, "unpack/cachewarm", "unpack/unzip", "unzip / cachewarm"),
    speed("unpack_vs_go_gzip", 3, "unpack/cachewarm", "unpack/go_gzip",
          "Go tar+gzip+sha256 / cachewarm"),
    speed("unpack_vs_go_zstd", 1.8, "unpack/cachewarm", "unpack/go_zstd",
          "Go tar+zstd+sha256 / cachewarm"),
    speed("unpack_vs_sha_tar_zstd", 1.6, "unpack/cachewarm", "unpack/sha_tar_zstd",
          "sha256sum && tar --zstd -x / cachewarm"),
    speed("activate_vs_ctr_zstd", 2.5, "activate/cachewarm", "activate/ctr_zstd",
          "ctr pull of zstd / cachewarm"),
    speed("activate_vs_ctr_gzip", 4, "activate/cachewarm", "activate/ctr_gzip",
          "ctr pull of gzip / cachewarm"),
    Bar("update5_bytes", "cost", 0.05, "update/cachewarm", "update/whole", "size",
        "bytes of a 5 % update / bytes of the bundle"),
    Bar("update5_time", "cost", 0.35, "update/cachewarm", "update/whole", "wall",
        "time of a 5 % update / time of the whole"),
    Bar("agent_rss_mb_1g", "peak", 64, "update/whole", "update/cachewarm",
        what="peak RSS of the agent's fetch or update, MiB"),
    Bar("unpack_vs_limit", "best", 1.5, "unpack/cachewarm", "unpack/limit",
        what="best round / limit"),
    Bar("pack_vs_limit", "best", 1.5, "pack/cachewarm", "pack/limit", what="best round / limit"),
]


def ratios(upper, lower, field="wall"):
    """Returns upper / lower for each round in which both ran."""
    return [getattr(a, field) / getattr(b, field)
            for a, b in zip(upper, lower) if a and b and getattr(b, field)]


def value_of(bar, cachewarm, rival):
    """Returns (ratio, rounds, ratio of each round), or (None, 0, []) without samples to compare."""
    present = [sample for sample in cachewarm if sample]
    if bar.of == "peak":
        peaks = [max(sample.rss_mb for sample in both if sample)
                 for both in itertools.zip_longest(cachewarm, rival) if any(both)]
        return (max(peaks), len(peaks), peaks) if peaks else (None, 0, [])
    if bar.of == "best":
        others = [sample for sample in rival if sample]
        if not present or not others:
            return None, 0, []
        best = min(s.wall for s in present) / min(s.wall for s in others)
        return best, min(len(present), len(others)), ratios(cachewarm, rival)
    pairs = (rival, cachewarm) if bar.of == "speed" else (cachewarm, rival)
    found = ratios(*pairs, bar.field)
    return (statistics.median(found), len(found), found) if found else (None, 0, [])


def judge(bar, runs, corpus, disk):
    """Returns the result of one bar on one corpus and disk as a JSON object."""
    cachewarm = runs.of(corpus.name, disk, bar.cachewarm)
    rival = runs.of(corpus.name, disk, bar.rival)
    ratio, rounds, each = value_of(bar, cachewarm, rival)
    note = ""
    if ratio is None:
        note = NOT_RUN
    elif bar.of == "peak" and corpus.bytes < MIB_BIG:
        note = f"of {corpus.megabytes:.0f} MB, not of 1 GB"
    holds = None if ratio is None else (ratio >= bar.bar if bar.at_least else ratio <= bar.bar)
    durable = ratios(rival, cachewarm, "synced") if bar.of == "speed" else []
    return {"name": bar.name, "what": bar.what, "ratio": ratio, "rounds": rounds, "bar": bar.bar,
            "holds_when": ">=" if bar.at_least else "<=", "holds": holds, "note": note,
            "each_round": each, "ratio_when_both_sync": statistics.median(durable) if durable
            else None, "corpus": corpus.name, "disk": disk}


def judge_all(runs, corpus, disk):
    """Returns the result of every bar, in the order of BARS."""
    return [judge(bar, runs, corpus, disk) for bar in BARS]
