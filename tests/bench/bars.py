# SPDX-License-Identifier: Apache-2.0
"""The bars: names, ratios, and whether they hold. Pure."""
import statistics
from dataclasses import dataclass

NOT_RUN = "not run"
HUGE = "huge"  # the corpus of agent_rss_mb_10g
ROUNDS = 5
CORPORA, DISKS = ("big", "small", "torch"), ("ext4", "xfs")


@dataclass(frozen=True)
class Bar:
    """`of` defines the ratio: "speed" is rival / cachewarm, "cost" is cachewarm / rival (both are
    medians of same-round ratios), "best" is cachewarm / rival of the best rounds, "peak" is the
    largest memory. A bar holds if it does on every corpus and disk where its group runs."""
    name: str
    of: str
    bar: float
    cachewarm: str
    rival: str = ""
    field: str = "wall"
    what: str = ""
    gigabytes: int = 0  # of a bar for memory: the size of the tree that it is for

    @property
    def at_least(self):
        """True if the bar is a minimum, False if it is a maximum."""
        return self.of == "speed"

    def is_met_by(self, ratio):
        """Returns True if the ratio holds the bar."""
        return ratio >= self.bar if self.at_least else ratio <= self.bar

    def places(self, corpora, disks):
        """Returns the (corpus, disk) pairs that the bar is for."""
        group = self.cachewarm.partition("/")[0]
        huge = self.gigabytes >= 10
        return [(corpus, disk) for corpus in corpora for disk in disks
                if corpus.has(group) and (corpus.name == HUGE) == huge]


def speed(name, bar, cachewarm, rival, what):
    """Returns a bar for how many times faster cachewarm is."""
    return Bar(name, "speed", bar, cachewarm, rival, what=what)


def on_disk(name, bar, group, rival, what):
    """Returns a bar for the same until all bytes are on disk: those of the command, which ends with
    a sync, and those of the rival after a sync."""
    return Bar(f"{name}_on_disk", "speed", bar, f"{group}/cachewarm", f"{group}/{rival}", "synced",
               f"{what}, both until on disk")


def memory(name, gigabytes):
    """Returns a bar for the memory of the agent with a tree of that size."""
    return Bar(name, "peak", 64, "agent/memory", gigabytes=gigabytes,
               what=f"peak RSS of the agent with a bundle of {gigabytes} GB, MiB")


BARS = [
    speed("pack_vs_zip", 11, "pack/cachewarm", "pack/zip", "zip -r / cachewarm"),
    speed("pack_vs_tar_zstd", 1.0, "pack/cachewarm", "pack/tar_zstd",
          "tar | zstd -3 -T2 / cachewarm"),
    speed("unpack_vs_unzip", 5, "unpack/agent", "unpack/unzip", "unzip / agent"),
    speed("unpack_vs_go_gzip", 3, "unpack/agent", "unpack/go_gzip", "Go tar+gzip+sha256 / agent"),
    speed("unpack_vs_go_zstd", 1.8, "unpack/agent", "unpack/go_zstd", "Go tar+zstd+sha256 / agent"),
    speed("unpack_vs_sha_tar_zstd", 1.6, "unpack/agent", "unpack/sha_tar_zstd",
          "sha256sum && tar --zstd -x / agent"),
    speed("activate_vs_ctr_zstd", 2.7, "activate/agent", "activate/ctr_zstd",
          "ctr pull of zstd / agent"),
    speed("activate_vs_ctr_gzip", 4.5, "activate/agent", "activate/ctr_gzip",
          "ctr pull of gzip / agent"),
    speed("activate_vs_oras", 1.0, "activate/agent", "activate/oras_untar",
          "oras pull && tar --zstd -x / agent"),
    on_disk("unpack_vs_unzip", 4, "unpack", "unzip", "unzip / cachewarm"),
    on_disk("unpack_vs_go_zstd", 1.6, "unpack", "go_zstd", "Go tar+zstd+sha256 / cachewarm"),
    on_disk("unpack_vs_sha_tar_zstd", 1.5, "unpack", "sha_tar_zstd",
            "sha256sum && tar --zstd -x / cachewarm"),
    on_disk("activate_vs_ctr_zstd", 2.2, "activate", "ctr_zstd", "ctr pull of zstd / cachewarm"),
    on_disk("activate_vs_ctr_gzip", 3.6, "activate", "ctr_gzip", "ctr pull of gzip / cachewarm"),
    Bar("update5_bytes", "cost", 0.05, "update/cachewarm", "update/whole", "size",
        "bytes of a 5 % update / bytes of the bundle"),
    Bar("update5_time", "cost", 0.35, "update/cachewarm", "update/whole", "wall",
        "time of a 5 % update / time of the whole"),
    memory("agent_rss_mb_1g", 1),
    memory("agent_rss_mb_10g", 10),
    Bar("unpack_vs_limit", "best", 1.5, "unpack/cachewarm", "unpack/limit",
        what="best round / limit"),
    Bar("pack_vs_limit", "best", 1.7, "pack/cachewarm", "pack/limit", what="best round / limit"),
]


def ratios(upper, lower, field="wall"):
    """Returns upper / lower for each round in which both ran."""
    return [getattr(a, field) / getattr(b, field)
            for a, b in zip(upper, lower) if a and b and getattr(b, field)]


def value_of(bar, cachewarm, rival):
    """Returns (ratio, ratio of each round), or (None, []) without samples to compare."""
    present = [sample for sample in cachewarm if sample]
    if bar.of == "peak":
        peaks = [sample.rss_mb for sample in present]
        return max(peaks, default=None), peaks
    if bar.of == "best":
        others = [sample for sample in rival if sample]
        if not present or not others:
            return None, []
        return (min(s.wall for s in present) / min(s.wall for s in others),
                ratios(cachewarm, rival))
    pairs = (rival, cachewarm) if bar.of == "speed" else (cachewarm, rival)
    found = ratios(*pairs, bar.field)
    return statistics.median(found) if found else None, found


def measured_at(bar, runs, corpus, disk):
    """Returns the result of one bar on one corpus and disk as a JSON object."""
    ratio, each = value_of(bar, runs.of(corpus.name, disk, bar.cachewarm),
                           runs.of(corpus.name, disk, bar.rival))
    holds = None if ratio is None else bar.is_met_by(ratio)
    # A tree of 0.9 of the size in the bar's name counts as one of that size.
    undersized = bar.gigabytes and corpus.bytes < 0.9e9 * bar.gigabytes
    note = (f"of {corpus.megabytes:.0f} MB, not of {bar.gigabytes} GB"
            if undersized and ratio is not None else "")
    return {"corpus": corpus.name, "disk": disk, "ratio": ratio, "rounds": len(each),
            "holds": holds, "each_round": each, "note": note}


def judge(bar, runs, corpora, disks, why_not=""):
    """Returns the result of one bar as a JSON object: that of its worst place, and all places.
    `why_not`: why no place of the bar was prepared."""
    places = [measured_at(bar, runs, *place) for place in bar.places(corpora, disks)]
    measured = [place for place in places if place["ratio"] is not None]
    result = {"name": bar.name, "what": bar.what, "ratio": None, "rounds": 0, "bar": bar.bar,
              "holds_when": ">=" if bar.at_least else "<=", "holds": None,
              "note": f"{NOT_RUN}: {why_not}" if why_not and not places else NOT_RUN,
              "each_round": [], "corpus": None, "disk": None, "places": places}
    if not measured:
        return result
    worst = (min if bar.at_least else max)(measured, key=lambda place: place["ratio"])
    left_out = [f"{place['corpus']}/{place['disk']}" for place in places
                if place["ratio"] is None]
    notes = [worst["note"], f"{NOT_RUN} on {', '.join(left_out)}" if left_out else ""]
    return result | worst | {"rounds": min(place["rounds"] for place in measured),
                             "note": "; ".join(filter(None, notes))}


def judge_all(runs, corpora, disks, no_huge=""):
    """Returns the result of every bar, in the order of BARS. `no_huge`: why HUGE was not made."""
    return [judge(bar, runs, corpora, disks, no_huge if bar.gigabytes >= 10 else "")
            for bar in BARS]


def shortfalls(commit, rounds, corpora):
    """Returns the reasons why a run does not decide the bars; none if it does."""
    lacking = [name for name in CORPORA if name not in {corpus.name for corpus in corpora}]
    return [reason for reason, applies in [
        (f"{commit}: files of the tree are not committed", commit.endswith("-dirty")),
        (f"{rounds} of {ROUNDS} rounds", rounds < ROUNDS),
        (f"not measured: the corpora {', '.join(lacking)}", lacking)] if applies]
