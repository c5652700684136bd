# SPDX-License-Identifier: Apache-2.0
"""The report as Markdown and as JSON. Pure."""
import dataclasses
import statistics

HEAD = ("| contender | s, median [best] | s until on disk | CPU s | peak RSS, MiB | MB "
        "| / cachewarm |")
RULE = "|---|---|---|---|---|---|---|"


def number(value):
    """Formats a number with at most three digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def shortfall_lines(facts):
    """Returns a paragraph with the reasons why the run decides no bar; nothing if it does."""
    if not facts["shortfalls"]:
        return []
    return [f"**This run decides no bar**: {'; '.join(facts['shortfalls'])}.", ""]


def bar_table(bars):
    """Returns a table with one row per bar, and a column per corpus with the ratio on each disk."""
    places = [place for bar in bars for place in bar["places"]]
    corpora = list(dict.fromkeys(place["corpus"] for place in places))
    disks = ", ".join(dict.fromkeys(place["disk"] for place in places))
    heads = "".join(f" {corpus}: {disks} |" for corpus in corpora)
    lines = [f"| bar | required | |{heads} compares |", "|" + "---|" * (len(corpora) + 4)]
    for bar in bars:
        result = bar["note"] if bar["ratio"] is None else "holds" if bar["holds"] else "**misses**"
        if bar["note"] and bar["ratio"] is not None:
            result += f" ({bar['note']})"
        cells = "".join(f" {ratios_on(bar, corpus)} |" for corpus in corpora)
        lines.append(f"| `{bar['name']}` | {bar['holds_when']} {bar['bar']} | {result} |{cells} "
                     f"{escaped(bar['what'])} |")
    return lines


def ratios_on(bar, corpus):
    """Returns the ratios of a bar on one corpus, one per disk."""
    found = [place for place in bar["places"] if place["corpus"] == corpus]
    return ", ".join(number(place["ratio"]) for place in found) or "-"


def escaped(text):
    """Returns a text for a cell of a table."""
    return text.replace("|", "\\|")


def cause_lines(causes):
    """Returns where the time of the missed bars was spent, one paragraph per run."""
    lines = ["", "## Causes of missed bars", "",
             "One more run of each under `perf record -a -e cpu-clock`: shares of the time of all "
             "processors. `idle` waits for a disk, or for a thread of the run."]
    for cause in causes:
        bars = ", ".join(f"`{name}`" for name in cause["bars"])
        lines += ["", f"- {bars}: {cause['corpus']}/{cause['disk']}/{cause['contender']}"]
        if "error" in cause:
            lines[-1] += f": not measured: {' '.join(cause['error'].split())}"
            continue
        lines[-1] += f", {number(cause['seconds'])} s. By program: {shares(cause['programs'])}."
        lines += [f"  By library: {shares(cause['libraries'])}. "
                  f"By function: {shares(cause['functions'])}."]
    return lines


def shares(found):
    """Returns shares as percentages."""
    return ", ".join(f"{name} {share:.0%}" for name, share in found.items())


def median_of(samples, field):
    """Returns the median of a field over successful rounds."""
    return statistics.median(getattr(sample, field) for sample in samples)


def contender_row(contender, samples, cachewarm):
    """Returns one row of a group; `cachewarm` holds the group's samples of cachewarm."""
    good = [sample for sample in samples if sample]
    what = escaped(contender.what)
    if not good:
        return f"| `{contender.name}`: {what} | failed | | | | | |"
    same = [a.wall / b.wall for a, b in zip(samples, cachewarm) if a and b]
    size = median_of(good, "size") / 1e6
    walls = f"{number(median_of(good, 'wall'))} [{number(min(s.wall for s in good))}]"
    return (f"| `{contender.name}`: {what} | {walls} | {number(median_of(good, 'synced'))} | "
            f"{number(median_of(good, 'cpu'))} | {number(max(s.rss_mb for s in good))} | "
            f"{number(size) if size else '-'} | "
            f"{number(statistics.median(same) if same else None)} |")


def group_tables(runs, contenders, corpus, disk):
    """Returns one table per group that ran on this corpus and disk."""
    lines = []
    for group in dict.fromkeys(contender.group for contender in contenders):
        rows = [(c, runs.of(corpus.name, disk, c.title)) for c in contenders if c.group == group]
        rows = [(contender, samples) for contender, samples in rows if samples]
        if rows:
            cachewarm = runs.of(corpus.name, disk, f"{group}/cachewarm")
            lines += ["", f"### {corpus.name}, {disk}: {group}", "", HEAD, RULE]
            lines += [contender_row(contender, samples, cachewarm) for contender, samples in rows]
    return lines


def instruction_table(instructions, corpus):
    """Returns a table of callgrind's counts, which do not depend on the load of the machine."""
    lines = ["", "## Instructions", "",
             f"By callgrind, of the corpus {corpus}, per 10^6 bytes of content.", "",
             "| | 10^6 instructions | 10^6 per MB |", "|---|---|---|"]
    return lines + [f"| {name} | {number(found['count'] / 1e6)} | "
                    f"{number(found['per_mb'] / 1e6)} |" for name, found in instructions.items()]


def markdown(facts, runs, contenders, results):
    """Returns the report. `facts` come from bench.py; `results` = {"bars", "causes",
    "instructions"}."""
    lines = ["# Bundles: measured", "", f"{facts['date']}, commit {facts['commit']}, "
             f"{facts['machine']}; {facts['rounds']} interleaved rounds, load average "
             f"{facts['load']} at the start and {facts['load_at_the_end']} at the end.", "",
             "Ratios are medians of same-round ratios; a bar must hold on every corpus and disk. "
             "`unpack` and `activate` compare until the tree is active, by the agent's steps; "
             "`_on_disk` until all bytes are on disk, by cachewarm's commands, which end with one "
             "syncfs, and by the others and a sync of the disk.", ""]
    lines += shortfall_lines(facts) + bar_table(results["bars"])
    lines += ["", "## Corpora", "", "| corpus | files | directories | MB |", "|---|---|---|---|"]
    lines += [f"| {c.name} | {c.files} | {c.folders} | {c.megabytes:.1f} |"
              for c in facts["corpora"]]
    lines += ["", *facts["remarks"], "", "## Contenders", "",
              "CPU of `ctr` includes containerd's, its RSS is containerd's; no contender includes "
              "the registry's. `limit` does the necessary work on all cores at once, with the "
              "sync."]
    for corpus in facts["corpora"]:
        for disk in facts["disks"]:
            lines += group_tables(runs, contenders, corpus, disk)
    if results["causes"]:
        lines += cause_lines(results["causes"])
    if results["instructions"]:
        lines += instruction_table(results["instructions"], facts["instruction_corpus"])
    if runs.errors:
        lines += ["", "## Failures", "", *(f"    {line}" for error in runs.errors
                                              for line in error.splitlines())]
    return "\n".join(lines) + "\n"


def as_json(facts, runs, results):
    """Returns the report as one JSON object."""
    plain = {key: value for key, value in facts.items() if key != "corpora"}
    corpora = [{"name": c.name, "files": c.files, "folders": c.folders, "bytes": c.bytes}
               for c in facts["corpora"]]
    samples = [{"corpus": corpus, "disk": disk, "contender": title,
                "rounds": [sample and dataclasses.asdict(sample) for sample in found]}
               for (corpus, disk, title), found in runs.samples.items()]
    return {**plain, "corpora": corpora, **results, "samples": samples, "errors": runs.errors}
