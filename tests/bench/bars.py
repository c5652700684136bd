# SPDX-License-Identifier: Apache-2.0
"""The bars: names, ratios, and whether they hold. Pure."""
import itertools
import statistics
from dataclasses import dataclass

NOT_RUN = "not run"
MIB_BIG = 900e6  # bytes of a corpus that agent_rss_mb_1g may be taken from


@dataclass(frozen=True)
class Bar:
    """`of` says how its ratio comes about: "speed" rival / ours, "cost" ours / rival (both medians
    of same-round ratios), "best" the best rounds' ours / rival, "peak" the larger memory."""
    name: str
    of: str
    bar: float
    ours: str
    rival: str = ""
    field: str = "wall"
    what: str = ""

    @property
    def at_least(self):
        """Else at most."""
        return self.of == "speed"


def speed(name, bar, ours, rival, what):
    """A bar of how many times faster ours is."""
    return Bar(name, "speed", bar, ours, rival, what=what)


BARS = [
    speed("pack_vs_zip", 10, "pack/ours", "pack/zip", "zip -r / ours"),
    speed("pack_vs_tar_zstd", 1.2, "pack/ours", "pack/tar_zstd", "tar | zstd -3 -T2 / ours"),
    speed("unpack_vs_unzip", 4, "unpack/ours", "unpack/unzip", "unzip / ours"),
    speed("unpack_vs_go_gzip", 3, "unpack/ours", "unpack/go_gzip", "Go tar+gzip+sha256 / ours"),
    speed("unpack_vs_go_zstd", 1.8, "unpack/ours", "unpack/go_zstd", "Go tar+zstd+sha256 / ours"),
    speed("unpack_vs_sha_tar_zstd", 1.6, "unpack/ours", "unpack/sha_tar_zstd",
          "sha256sum && tar --zstd -x / ours"),
    speed("activate_vs_ctr_zstd", 2.5, "activate/ours", "activate/ctr_zstd",
          "ctr pull of zstd / ours"),
    speed("activate_vs_ctr_gzip", 4, "activate/ours", "activate/ctr_gzip",
          "ctr pull of gzip / ours"),
    Bar("update5_bytes", "cost", 0.05, "update/ours", "update/whole", "size",
        "bytes of a 5 % update / bytes of the bundle"),
    Bar("update5_time", "cost", 0.35, "update/ours", "update/whole", "wall",
        "time of a 5 % update / time of the whole"),
    Bar("agent_rss_mb_1g", "peak", 64, "update/whole", "update/ours",
        what="peak RSS of the agent's fetch or update, MiB"),
    Bar("unpack_vs_limit", "best", 1.5, "unpack/ours", "unpack/limit", what="best round / limit"),
    Bar("pack_vs_limit", "best", 1.5, "pack/ours", "pack/limit", what="best round / limit"),
]


def ratios(upper, lower, field="wall"):
    """upper / lower of each round in which both ran."""
    return [getattr(a, field) / getattr(b, field)
            for a, b in zip(upper, lower) if a and b and getattr(b, field)]


def value_of(bar, ours, rival):
    """(ratio, rounds, ratios of the rounds); (None, 0, []) when there is nothing to compare."""
    present = [sample for sample in ours if sample]
    if bar.of == "peak":
        peaks = [max(sample.rss_mb for sample in both if sample)
                 for both in itertools.zip_longest(ours, rival) if any(both)]
        return (max(peaks), len(peaks), peaks) if peaks else (None, 0, [])
    if bar.of == "best":
        others = [sample for sample in rival if sample]
        if not present or not others:
            return None, 0, []
        best = min(s.wall for s in present) / min(s.wall for s in others)
        return best, min(len(present), len(others)), ratios(ours, rival)
    pairs = (rival, ours) if bar.of == "speed" else (ours, rival)
    found = ratios(*pairs, bar.field)
    return (statistics.median(found), len(found), found) if found else (None, 0, [])


def judge(bar, runs, corpus, disk):
    """One bar on one corpus and disk, as a JSON object."""
    ours, rival = runs.of(corpus.name, disk, bar.ours), runs.of(corpus.name, disk, bar.rival)
    ratio, rounds, each = value_of(bar, ours, rival)
    note = ""
    if ratio is None:
        note = NOT_RUN
    elif bar.of == "peak" and corpus.bytes < MIB_BIG:
        note = f"of {corpus.megabytes:.0f} MB, not of 1 GB"
    holds = None if ratio is None else (ratio >= bar.bar if bar.at_least else ratio <= bar.bar)
    durable = ratios(rival, ours, "synced") if bar.of == "speed" else []
    return {"name": bar.name, "what": bar.what, "ratio": ratio, "rounds": rounds, "bar": bar.bar,
            "holds_when": ">=" if bar.at_least else "<=", "holds": holds, "note": note,
            "each_round": each, "ratio_when_both_sync": statistics.median(durable) if durable
            else None, "corpus": corpus.name, "disk": disk}


def judge_all(runs, corpus, disk):
    """Every bar, in the order of the table."""
    return [judge(bar, runs, corpus, disk) for bar in BARS]
