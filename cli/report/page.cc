// SPDX-License-Identifier: Apache-2.0
#include "cli/report/page.h"

#include <array>
#include <utility>

#include "cli/console.h"
#include "cli/report/costs.h"
#include "cli/report/engines.h"
#include "cli/report/html.h"
#include "cli/report/inventory.h"
#include "cli/report/starts.h"
#include "cli/report/style.h"
#include "cli/report/text.h"
#include "fmt/format.h"
#include "lib/base/digest.h"
#include "lib/codec/base64.h"

namespace cachewarm::cli::report {
namespace {

constexpr std::string_view kStartOfPage =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta name=\"generator\" content=\"cachewarm report";

// Returns the source expression of CSP for the stylesheet: "sha256-" and its digest in base64.
std::string StyleSource() {
  const std::string hex = DigestOf(Stylesheet()).hex();
  std::string bytes;
  for (size_t at = 0; at < hex.size(); at += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  }
  return "sha256-" + codec::EncodeBase64(bytes);
}

std::string TitleOf(const Report& report) {
  return report.ns.empty() ? "Model start-up report"
                           : fmt::format("Model start-up report of namespace {}", report.ns);
}

std::string Head(const Report& report) {
  return fmt::format(
      "{} {}\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src '{}'; base-uri 'none'; form-action 'none'\"/>\n"
      "<meta name=\"referrer\" content=\"no-referrer\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      kStartOfPage, Shown(report.version, 60), StyleSource(), Shown(TitleOf(report), 120),
      Stylesheet());
}

// "2026-11-26 10:00 UTC"
std::string MinuteOf(WallTime time) {
  const std::string text = FormatTime(time);
  return fmt::format("{} {} UTC", text.substr(0, 10), text.substr(11, 5));
}

std::string Header(const Report& report) {
  const WarmupRow& total = report.total;
  std::string since = total.counting_started_time == WallTime{}
                          ? ""
                          : fmt::format(" Starts are counted since {} at the earliest.",
                                        MinuteOf(total.counting_started_time));
  return fmt::format("<header>\n<h1>{}</h1>\n<p>{}, read from {} and {} at {}.{}</p>\n</header>\n",
                     Shown(TitleOf(report), 120),
                     report.ns.empty() ? "The whole cluster" : "One namespace",
                     FormatNumberOf(static_cast<int64_t>(report.warmups.size()), "CacheWarmup"),
                     FormatNumberOf(static_cast<int64_t>(report.nodes.size()), "NodeCache"),
                     MinuteOf(report.time), since);
}

std::string Tiles(const Report& report) {
  const WarmupRow& total = report.total;
  const int64_t counted = CountedStarts(total.counts);
  const double net_gpu =
      total.saved_gpu_seconds - total.lost_gpu_seconds - total.builder_gpu_seconds;
  int64_t bundles = 0;
  int64_t bytes = 0;
  for (const GpuTypeRow& type : report.gpu_types) {
    bundles += type.bundles;
    bytes += type.bundle_bytes;
  }
  return Render(std::vector<Tile>{
      {.value = FormatShare(total.counts.hit, counted),
       .label = "full hits",
       .note = counted == 0
                   ? "no start counted yet"
                   : fmt::format("{} more in part", FormatShare(total.counts.partial, counted))},
      {.value = FormatSeconds(total.NetSeconds()),
       .label = "start time saved",
       .note = fmt::format("in {}", FormatNumberOf(counted, "start"))},
      {.value = FormatSeconds(net_gpu),
       .label = "GPU time saved",
       .note = fmt::format("after {} of builds", FormatSeconds(total.builder_gpu_seconds))},
      {.value = FormatCount(bundles),
       .label = bundles == 1 ? "bundle in use" : "bundles in use",
       .note = FormatBytes(bytes)},
      {.value = report.nodes_missing.empty() ? FormatBytes(report.node_bytes) : "-",
       .label = "on nodes",
       .note = FormatNumberOf(static_cast<int64_t>(report.nodes.size()), "node")},
      {.value = FormatCount(static_cast<int64_t>(report.warmups.size())),
       .label = report.warmups.size() == 1 ? "warmup" : "warmups",
       .note = report.problems.empty()
                   ? "no problem"
                   : FormatNumberOf(static_cast<int64_t>(report.problems.size()), "problem")}});
}

}  // namespace

std::string RenderPage(const Report& report) {
  return Head(report) + "<body>\n" + Header(report) + "<main>\n" + Tiles(report) +
         ProblemsSection(report) + StartsSection(report) + "<div class=\"pairs\">\n" +
         MediansSection(report) + SavingsSection(report) + ResultsSection(report) +
         CostsSection(report) + EnginesSection(report) + BundlesSection(report) +
         NodesSection(report) +
         fmt::format(
             "</div>\n</main>\n<footer>\n<p>Written by cachewarm report, version {}. The "
             "page is complete: it loads nothing.</p>\n</footer>\n</body>\n</html>\n",
             Shown(report.version, 60));
}

bool IsReportPage(std::string_view text) {
  return text.starts_with(kStartOfPage);
}

}  // namespace cachewarm::cli::report
