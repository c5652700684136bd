# SPDX-License-Identifier: Apache-2.0
"""PromQL expressions that the rules and the dashboard share. Pure."""

# Results of starts that count for a hit rate. Builders and starts without evidence do not count.
NOT_COUNTED = "builder|unknown"
# Results of starts whose node had a bundle of the pod's key.
HAD_BUNDLE = "hit|partial|miss|inert|hollow"
USED_BUNDLE = "hit|partial"
NOT_USABLE = "inert|hollow"
# Status codes of a store that cannot be reached or rejects the credentials. Others, such as
# NOT_FOUND, are answers of a store that works.
STORE_FAILED = "UNAVAILABLE|DEADLINE_EXCEEDED|UNAUTHENTICATED|PERMISSION_DENIED"
OF_WARMUP = "namespace, warmup"


OF_TYPE = f"{OF_WARMUP}, gpu_type"
OF_RESULT = f"{OF_TYPE}, result"


def total_increase(series, labels, window, before="1h"):
    """The increase over the window of a counter that the leader serves from the status of a warmup.
    `labels` are all labels of the counter. Each leader serves the same total, so that the maximum
    over the replicas continues when the leader changes or restarts. The increase is exact: the
    difference of two totals, without the extrapolation of increase(). If there is no sample in the
    period `before` the window, or its value is larger than the present total, the warmup is new and
    the total counts from 0."""
    now = f"max by ({labels}) (last_over_time({series}[{window}]))"
    then = f"max by ({labels}) (last_over_time({series}[{before}] offset {window}))"
    return f"({now} - ({then} <= {now}) or {now})"


def increase(series, window, before="1h"):
    """The increase of a counter in the memory of a program. The program creates a series with its
    first event, so its first value is already a count, which increase() omits. A series with a
    sample in the window but none in the time `before` it is new, and its first value is added. A
    gap in the scrapes that is shorter than `before` makes no series new."""
    grown = f"increase({series}[{window}])"
    first = (f"(min_over_time({series}[{window}])"
             f" unless last_over_time({series}[{before}] offset {window}))")
    return f"({grown} + {first} or {grown} or {first})"


def events(series, window, before="1h"):
    """The increase of a counter in the memory of a program that counts by one. increase()
    extrapolates to the borders of the window, so one event becomes 1.02. This function rounds the
    result to an integer."""
    return f"round{increase(series, window, before)}"


def sum_by(labels, expression):
    return f"sum by ({labels}) ({expression})"


def quantile(share, histogram, window, labels=""):
    """The quantile of a histogram's observations in the window."""
    by = f"le, {labels}" if labels else "le"
    name, brace, selector = histogram.partition("{")
    buckets = sum_by(by, events(f"{name}_bucket{brace}{selector}", window))
    return f"histogram_quantile({share}, {buckets})"


def share(part, whole, least=0):
    """Returns part / whole: 0 if `part` is missing, no value if `whole` is 0 or below `least`."""
    bound = f"({whole} >= {least})" if least else f"({whole} > 0)"
    return f"({part} or 0 * {whole}) / {bound}"


def difference(plus, minus):
    """plus - minus, where one of the two may be missing."""
    return f"({plus} - {minus} or {plus} or -1 * {minus})"
