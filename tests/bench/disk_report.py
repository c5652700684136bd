# SPDX-License-Identifier: Apache-2.0
"""The report of `make bench-disk`: ratios, verdicts, tables. Pure."""
import dataclasses
import statistics

import memory_cgroups
from bars import NOT_RUN, ratios
from report import median_of, number

BAR = 1.3
PLAIN = "undisturbed"
BARRED = ("throttled", "filled")
# Of memory: a limit costs no time if a run takes at most this many times that without a limit.
SAME_TIME = 1.15


def ratio_to_undisturbed(plain, state, field="wall"):
    """Returns (median of same-round ratios state / undisturbed, ratio of each round); None without
    a round in which both ran."""
    each = ratios(state, plain, field)
    return (statistics.median(each) if each else None), each


def judge(runs, corpus, disk, state):
    """Returns the result of one state as a JSON object, with that of ctr beside it."""
    def found(name, field):
        return ratio_to_undisturbed(runs.of(corpus, disk, f"{PLAIN}/{name}"),
                                    runs.of(corpus, disk, f"{state}/{name}"), field)
    ratio, each = found("cachewarm", "wall")
    return {"name": f"active_{state}", "ratio": ratio, "rounds": len(each),
            "bar": BAR if state in BARRED else None, "holds_when": "<=",
            "holds": None if ratio is None or state not in BARRED else ratio <= BAR,
            "each_round": each, "durable_ratio": found("cachewarm", "synced")[0],
            "ctr_ratio": found("ctr", "wall")[0], "ctr_durable_ratio": found("ctr", "synced")[0]}


def bar_table(bars):
    """Returns a table with one row per bar."""
    lines = ["| bar | measured | required | | until durable | ctr | ctr + sync |",
             "|---|---|---|---|---|---|---|"]
    for bar in bars:
        verdict = NOT_RUN if bar["ratio"] is None else {True: "holds", False: "**misses**",
                                                        None: ""}[bar["holds"]]
        required = f"<= {bar['bar']}" if bar["bar"] else "-"
        lines.append(f"| `{bar['name']}` | {number(bar['ratio'])} | {required} | {verdict} | "
                     f"{number(bar['durable_ratio'])} | {number(bar['ctr_ratio'])} | "
                     f"{number(bar['ctr_durable_ratio'])} |")
    return lines


def dirty_of(samples):
    """Describes the dirty pages of the machine during these runs."""
    kept = [sample.notes for sample in samples if "dirty_median" in sample.notes]
    if not kept:
        return "-"
    medians = [notes["dirty_median"] / 1e9 for notes in kept]
    return (f"{number(statistics.median(medians))} (least "
            f"{number(min(notes['dirty_least'] for notes in kept) / 1e9)})")


def waits_of(samples):
    """Describes how long these runs waited until they were active."""
    kept = [sample.notes for sample in samples if "disk_wait" in sample.notes]
    if not kept:
        return "- | -"
    return " | ".join(number(statistics.median(notes[name] for notes in kept))
                      for name in ("cpu_wait", "disk_wait"))


def state_table(runs, corpus, disk, contenders):
    """Returns a table with one row per state and contender."""
    lines = ["| state | contender | s until active, median [all] | a thread waits for a processor, "
             "s | all wait for the disk, s | s until durable, median [all] | GB of dirty pages |",
             "|---|---|---|---|---|---|---|"]
    for contender in contenders:
        samples = runs.of(corpus, disk, contender.title)
        good = [sample for sample in samples if sample]
        if samples and not good:
            lines.append(f"| {contender.group} | `{contender.name}` | failed | | | | |")
        elif good:
            active, durable = (f"{number(median_of(good, field))} "
                               f"[{', '.join(number(getattr(s, field)) for s in good)}]"
                               for field in ("wall", "synced"))
            lines.append(f"| {contender.group} | `{contender.name}` | {active} | {waits_of(good)} "
                         f"| {durable} | {dirty_of(good)} |")
    return lines


def memory_row(limit, samples, unlimited):
    """Returns the result of one limit (MiB or None) as a JSON object. `samples` and `unlimited`
    have one entry per round, None where a run failed."""
    good = [sample for sample in samples if sample]
    killed = sum(1 for sample in good if sample.notes["oom_kills"])
    done = [sample if sample and not sample.notes["oom_kills"] else None for sample in samples]
    walls = [sample.wall for sample in done if sample]
    same = ratios(done, unlimited)
    return {"limit_mib": limit, "rounds": len(good), "killed": killed,
            "seconds": statistics.median(walls) if walls else None,
            "ratio": statistics.median(same) if same else None,
            "rss_mib": max((s.rss_mb for s in done if s), default=None),
            "peak_mib": max((s.notes["peak_mib"] for s in good), default=None),
            "reclaims": max((s.notes["reclaims"] for s in good), default=None)}


def memory_rows(runs, corpus, disk, group):
    """Returns the rows of one group of memory runs that ran, smallest limit first."""
    unlimited = runs.of(corpus, disk, memory_title(group, None))
    found = [(limit, runs.of(corpus, disk, memory_title(group, limit)))
             for limit in memory_cgroups.LIMITS_MIB]
    return [memory_row(limit, samples, unlimited) for limit, samples in found if samples]


def memory_title(group, limit):
    """Returns the title of a run: GROUP/64MiB, or GROUP/none."""
    return f"{group}/{'none' if limit is None else f'{limit}MiB'}"


def advice(rows):
    """Returns the smallest limit of which no run was killed, and the smallest that also costs no
    time; None where no row has one."""
    alive = [row for row in rows if row["limit_mib"] and row["rounds"] and not row["killed"]]
    quick = [row for row in alive if row["ratio"] is not None and row["ratio"] <= SAME_TIME]
    return {"least_limit_mib": min((row["limit_mib"] for row in alive), default=None),
            "least_limit_in_same_time_mib": min((row["limit_mib"] for row in quick), default=None),
            "rss_mib": max((row["rss_mib"] for row in rows if row["rss_mib"]), default=None)}


def memory_table(group, rows):
    """Returns a table with one row per limit."""
    lines = ["", f"### {group}", "",
             "| limit, MiB | s | / no limit | peak RSS, MiB | peak with page cache, MiB | "
             "limit reached, times | killed |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['limit_mib'] or 'none'} | {number(row['seconds'])} | "
                     f"{number(row['ratio'])} | {number(row['rss_mib'])} | "
                     f"{number(row['peak_mib'])} | {row['reclaims']} | "
                     f"{row['killed']} of {row['rounds']} |")
    found = advice(rows)
    return lines + ["", f"Smallest limit without a killed run: {found['least_limit_mib']} MiB; "
                        f"within {SAME_TIME} of the time without a limit: "
                        f"{found['least_limit_in_same_time_mib']} MiB. Largest RSS, which cannot "
                        f"be reclaimed and which a request should cover: "
                        f"{number(found['rss_mib'])} MiB."]


def markdown(facts, results, tables, errors):
    """Returns the report. `facts` come from disk_bench.py, `tables` are lines."""
    corpus, chart = facts["corpus"], facts["chart"]
    lines = ["# Fetches on a slow disk: measured", "",
             f"{facts['date']}, commit {facts['commit']}, {facts['machine']}; {facts['rounds']} "
             f"interleaved rounds of {corpus['name']} ({corpus['files']} files, "
             f"{corpus['bytes'] / 1e6:.0f} MB), load average {facts['load']} at the start and "
             f"{facts['load_at_the_end']} at the end.", ""]
    if facts["throttle"]:
        rates = [facts["throttle"][f"{name}_bytes_per_second"] / 1e6
                 for name in ("plain", "throttled")]
        lines += [f"A plain `dd conv=fsync` wrote {rates[0]:.0f} MB/s, and {rates[1]:.0f} MB/s "
                  "with the throttle of 125 MB/s.", ""]
    lines += bar_table(results["bars"]) + [""] + tables
    for group, rows in results["memory"].items():
        lines += memory_table(group, rows)
    if results["memory"]:
        lines += ["", f"The chart requests {chart[0]} MiB for the agent and limits it to "
                      f"{chart[1]} MiB. Memory cgroup v{facts['memory_cgroup']}."]
    if errors:
        lines += ["", "## Failures", "",
                  *(f"    {line}" for error in errors for line in error.splitlines())]
    return "\n".join(lines) + "\n"


def as_json(facts, results, runs):
    """Returns the report as one JSON object."""
    samples = [{"title": title, "rounds": [sample and dataclasses.asdict(sample)
                                           for sample in found]}
               for (_, _, title), found in runs.samples.items()]
    advised = {group: advice(rows) for group, rows in results["memory"].items()}
    return {**facts, **results, "memory_advice": advised, "samples": samples,
            "errors": runs.errors}
