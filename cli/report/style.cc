// SPDX-License-Identifier: Apache-2.0
#include "cli/report/style.h"

namespace cachewarm::cli::report {
namespace {

// Blue and orange differ for readers with every kind of colour blindness; marks differ in shape
// too. Every text has a contrast of at least 4.5 to its background (tests/report).
constexpr std::string_view kStylesheet = R"(
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --text: #1a1f26; --muted: #545c66; --line: #d5dae0;
  --warm: #0068a8; --cold: #c2570c; --neutral: #767e88;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1217; --card: #171c23; --text: #e7ebf0; --muted: #a3adb8; --line: #333b45;
    --warm: #5cb3ee; --cold: #f2a155; --neutral: #8b949e;
  }
}
* { box-sizing: border-box; }
:root { --hollow: var(--page); }
figure { --hollow: var(--card); }
body {
  margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem 3rem; background: var(--page);
  color: var(--text); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
  "DejaVu Sans", sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 0.5rem; letter-spacing: -0.01em; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 0 0 0.25rem; }
header p, footer p, .lead { color: var(--muted); margin: 0 0 1rem; max-width: 44rem; }
section { margin: 2.25rem 0 0; min-width: 0; }
.tiles { list-style: none; margin: 1.5rem 0 0; padding: 0; display: grid; gap: 0.75rem;
  grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); }
.tiles li { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 0.75rem 0.9rem; display: flex; flex-direction: column; }
.tiles strong { font-size: 1.4rem; line-height: 1.3; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.tiles small { color: var(--muted); font-size: 0.85rem; }
.pairs { display: grid; grid-template-columns: minmax(0, 1fr); column-gap: 2.5rem; }
.cards { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.75rem; }
@media (min-width: 760px) {
  .pairs, .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); }
}
figure { margin: 0; min-width: 0; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 0.75rem 0.9rem; }
figcaption { display: flex; flex-direction: column; margin-bottom: 0.25rem; }
figcaption span { color: var(--muted); font-size: 0.85rem; }
.legend { list-style: none; margin: 0 0 0.75rem; padding: 0; display: flex; flex-wrap: wrap;
  gap: 0.25rem 1.1rem; font-size: 0.85rem; color: var(--muted); }
.legend li { display: flex; align-items: center; gap: 0.4rem; }
.dash { width: 1.25rem; border-top: 2px dashed var(--muted); }
svg { display: block; }
.chart { overflow: visible; font-size: 13px; font-variant-numeric: tabular-nums; }
.chart text { fill: var(--text); }
.chart .label { paint-order: stroke; stroke: var(--page); stroke-width: 4px;
  stroke-linejoin: round; }
.chart .tick { fill: var(--muted); font-size: 12px; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.grid { stroke: var(--line); }
.zero { stroke: var(--neutral); }
.warm { fill: var(--warm); }
.cold { fill: var(--cold); }
.neutral { fill: var(--neutral); }
.partial { fill: var(--hollow); stroke: var(--warm); stroke-width: 1.6; }
.missed { fill: var(--hollow); stroke: var(--cold); stroke-width: 1.6; }
.median { stroke-width: 1.5; stroke-dasharray: 5 4; }
.median.warm { stroke: var(--warm); }
.median.cold { stroke: var(--cold); }
details { margin-top: 0.5rem; font-size: 0.9rem; }
summary { cursor: pointer; color: var(--warm); width: max-content; padding: 0.15rem 0; }
.scroll { overflow-x: auto; margin-top: 0.25rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
caption { text-align: left; color: var(--muted); padding-bottom: 0.35rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.75rem 0.35rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; min-width: 7rem; }
th[scope="col"] { color: var(--muted); font-weight: 600; vertical-align: bottom; }
th[scope="row"] { font-weight: 500; min-width: 11rem; }
td:last-child:not(.number) { min-width: 14rem; }
th.number, td.number { text-align: right; min-width: 0; overflow-wrap: normal;
  font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
footer { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 0.75rem;
  font-size: 0.85rem; }
:focus-visible { outline: 2px solid var(--warm); outline-offset: 2px; }
)";

}  // namespace

std::string_view Stylesheet() {
  return kStylesheet;
}

}  // namespace cachewarm::cli::report
