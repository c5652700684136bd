// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/cluster/connection.h"
#include "cli/cluster/wanted_bundles.h"
#include "cli/commands/commands.h"
#include "cli/reference.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/gc/collect.h"
#include "lib/codec/json_value.h"
#include "lib/settings/values.h"

namespace cachewarm::cli {
namespace {

constexpr int kRetainDefault = 1;
constexpr int64_t kRetainMax = 1000;
constexpr std::string_view kOlderThanDefault = "24h";

// Parses a number with a unit: "90s", "30m", "24h" or "7d".
absl::StatusOr<Duration> ParseAge(std::string_view text) {
  static constexpr std::pair<char, std::chrono::seconds> kUnits[] = {{'s', std::chrono::seconds(1)},
                                                                     {'m', std::chrono::minutes(1)},
                                                                     {'h', std::chrono::hours(1)},
                                                                     {'d', std::chrono::hours(24)}};
  constexpr int64_t kYears = 100LL * 365 * 24 * 3600;
  for (const auto& [letter, unit] : kUnits) {
    const auto number = settings::WholeNumber(text.substr(0, text.size() - text.ends_with(letter)),
                                              0, kYears / unit.count());
    if (text.ends_with(letter) && number.ok()) {
      return std::chrono::duration_cast<Duration>(*number * unit);
    }
  }
  return absl::InvalidArgumentError(fmt::format(
      "expected a number and a unit, such as 30m, 24h or 7d, not \"{}\"", text.substr(0, 64)));
}

absl::Status CheckAge(const std::string& value) {
  return ParseAge(value).status();
}

absl::Status CheckStoreUrl(const std::string& value) {
  return bundle::ParseStoreUrl(value).status();
}

absl::Status CheckRepositoryName(const std::string& value) {
  return bundle::CheckRepository(value);
}

absl::StatusOr<bundle::GcPolicy> PolicyOf(const Arguments& arguments, const Console& console) {
  bundle::GcPolicy policy{.now = console.clock.Now(),
                          .retain = static_cast<int>(arguments.Number("retain", kRetainDefault))};
  CW_ASSIGN_OR_RETURN(policy.older_than,
                      ParseAge(arguments.Value("older-than", kOlderThanDefault)));
  if (const std::string text = arguments.Value("expire"); !text.empty()) {
    CW_ASSIGN_OR_RETURN(policy.expire, ParseAge(text));
  }
  return policy;
}

// Returns the repositories that the user named, else all of the store.
absl::StatusOr<std::vector<std::string>> RepositoriesOf(const Arguments& arguments,
                                                        bundle::Store& store,
                                                        std::stop_token stop) {
  std::vector<std::string> named = arguments.Values("repository");
  if (!named.empty()) {
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    return named;
  }
  auto all = store.ListRepositories(std::move(stop));
  if (absl::IsUnimplemented(all.status())) {
    return absl::FailedPreconditionError(
        fmt::format("{} with --repository", Message(all.status())));
  }
  return all;
}

// Prints a table row for each manifest and a summary, or one JSON object.
class GcReport {
 public:
  GcReport(Console& console, const bundle::GcPolicy& policy, bool json, bool dry_run)
      : console_(console), policy_(policy), json_(json), dry_run_(dry_run) {}

  void Add(const std::string& repository, const bundle::GcItem& item, bundle::GcResult result,
           const absl::Status& status) {
    ++counts_[result];
    const bundle::StoredManifest& stored = item.manifest.stored;
    const bool gone =
        result == bundle::GcResult::kDeleted || result == bundle::GcResult::kWouldDelete;
    freed_bytes_ += gone ? item.freed_bytes : 0;
    const std::string message = status.ok() ? item.manifest.problem : Message(status);
    if (json_) {
      codec::Json row = {{"repository", repository},
                         {"digest", stored.digest.ToString()},
                         {"key", item.manifest.key},
                         {"tags", stored.tags},
                         {"result", bundle::NameOf(result)},
                         {"reason", bundle::NameOf(item.reason)},
                         {"bytes", item.bytes},
                         {"freedBytes", gone ? item.freed_bytes : 0},
                         {"message", message}};
      row["published"] =
          stored.published ? codec::Json(FormatTime(*stored.published)) : codec::Json();
      row["subject"] =
          item.manifest.subject ? codec::Json(item.manifest.subject->ToString()) : codec::Json();
      rows_.push_back(std::move(row));
      return;
    }
    if (std::exchange(empty_, false)) {
      console_.out << fmt::format(kRow, "RESULT", "REASON", "AGE", "SIZE", "FREED", "KEY",
                                  "BUNDLE");
    }
    console_.out << fmt::format(
        kRow, bundle::NameOf(result), bundle::NameOf(item.reason),
        stored.published ? FormatDuration(std::max(policy_.now - *stored.published, Duration(0)))
                         : "-",
        FormatBytes(item.bytes), gone ? FormatBytes(item.freed_bytes) : "-",
        item.manifest.key.empty() ? "-" : item.manifest.key.substr(0, kKeyShown),
        fmt::format("{}@{}", repository, stored.digest.ToString()));
    if (!message.empty()) {
      console_.err << fmt::format("cachewarm: {}@{}: {}\n", repository, stored.digest.Short(),
                                  message);
    }
  }

  // Reports an error that ends the collection of one repository.
  void AddError(const std::string& repository, const absl::Status& error) {
    errors_.push_back({{"repository", repository}, {"message", Message(error)}});
    if (!json_) {
      console_.err << fmt::format("cachewarm: {}: {}\n", repository, Message(error));
    }
  }

  void AddSweep(const std::string& repository, const bundle::SweepReport& sweep) {
    swept_.supported = swept_.supported || sweep.supported;
    swept_.blobs += sweep.blobs;
    swept_.bytes += sweep.bytes;
    sweeps_.push_back({{"repository", repository},
                       {"supported", sweep.supported},
                       {"blobs", sweep.blobs},
                       {"bytes", sweep.bytes}});
  }

  void End() {
    if (json_) {
      PrintJson(
          console_,
          {{"dryRun", dry_run_}, {"manifests", rows_}, {"blobs", sweeps_}, {"errors", errors_}});
      return;
    }
    const int gone = Count(bundle::GcResult::kDeleted) + Count(bundle::GcResult::kWouldDelete);
    const int stay = Count(bundle::GcResult::kKept) + Count(bundle::GcResult::kChanged);
    const int failed = Count(bundle::GcResult::kFailed);
    console_.err << fmt::format("{} {} manifests, kept {}{}; ",
                                dry_run_ ? "would delete" : "deleted", gone, stay,
                                failed > 0 ? fmt::format(", {} failed", failed) : "");
    if (swept_.supported) {
      console_.err << fmt::format("{} {} in {} blobs\n", dry_run_ ? "would free" : "freed",
                                  FormatBytes(swept_.bytes), swept_.blobs);
    } else {
      console_.err << fmt::format("the registry's own garbage collection frees {}\n",
                                  FormatBytes(freed_bytes_));
    }
  }

  bool HasFailures() const { return Count(bundle::GcResult::kFailed) > 0 || !errors_.empty(); }

 private:
  int Count(bundle::GcResult result) const {
    const auto found = counts_.find(result);
    return found == counts_.end() ? 0 : found->second;
  }

  static constexpr char kRow[] = "{:<13} {:<20} {:<8} {:<9} {:<9} {:<13} {}\n";
  static constexpr size_t kKeyShown = 12;

  Console& console_;
  const bundle::GcPolicy& policy_;
  const bool json_;
  const bool dry_run_;
  bool empty_ = true;
  int64_t freed_bytes_ = 0;
  bundle::SweepReport swept_;
  std::map<bundle::GcResult, int> counts_;
  codec::Json rows_ = codec::Json::array();
  codec::Json sweeps_ = codec::Json::array();
  codec::Json errors_ = codec::Json::array();
};

absl::Status AddWanted(const Arguments& arguments, Console& console, bundle::GcPolicy& policy) {
  CW_ASSIGN_OR_RETURN(const Connection connection, Connect(arguments, console));
  CW_ASSIGN_OR_RETURN(WantedBundles wanted,
                      ReadWantedBundles(*connection.client, console.clock, console.stop));
  policy.wanted = std::move(wanted.digests);
  policy.used_keys = std::move(wanted.keys);
  return absl::OkStatus();
}

absl::Status CheckOptions(const Arguments& arguments) {
  if (arguments.Value("store").empty()) {
    return UsageError("--store: required; the store to collect");
  }
  for (const Option& option : ClusterOptionList()) {
    if (!arguments.Has("keep-used") && arguments.Has(option.name)) {
      return UsageError(fmt::format("--{}: only with --keep-used", option.name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Gc(const Arguments& arguments, Console& console) {
  CW_RETURN_IF_ERROR(CheckOptions(arguments));
  CW_ASSIGN_OR_RETURN(bundle::GcPolicy policy, PolicyOf(arguments, console));
  CW_ASSIGN_OR_RETURN(const std::unique_ptr<bundle::Store> store,
                      OpenStoreUrl(arguments.Value("store"), arguments, console));
  CW_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      RepositoriesOf(arguments, *store, console.stop));
  const bool dry_run = arguments.Has("dry-run");
  GcReport report(console, policy, arguments.Has("json"), dry_run);
  std::vector<bundle::GcRepository> repositories;
  for (const std::string& name : names) {
    auto repository = bundle::ReadGcRepository({*store, name}, console.stop);
    if (absl::IsCancelled(repository.status())) {
      return repository.status();
    }
    if (repository.ok()) {
      repositories.push_back(*std::move(repository));
    } else {
      report.AddError(name, repository.status());
    }
  }
  if (arguments.Has("keep-used")) {
    // Read the cluster after the store, so that a bundle that becomes needed meanwhile is kept.
    CW_RETURN_IF_ERROR(AddWanted(arguments, console, policy));
  }
  absl::Status status;
  for (const bundle::GcRepositoryPlan& plan : bundle::PlanGc(std::move(repositories), policy)) {
    const auto swept = bundle::CollectRepository(
        *store,
        {.plan = plan,
         .policy = policy,
         .dry_run = dry_run,
         .on_item =
             [&](const bundle::GcItem& item, bundle::GcResult result, const absl::Status& problem) {
               report.Add(plan.name, item, result, problem);
             }},
        console.stop);
    if (absl::IsUnimplemented(swept.status()) || absl::IsCancelled(swept.status())) {
      status = Annotate(swept.status(), plan.name);
      break;
    }
    if (swept.ok()) {
      report.AddSweep(plan.name, *swept);
    } else {
      report.AddError(plan.name, swept.status());
    }
  }
  report.End();
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(fmt::format(
        "the registry does not allow deletion: {}; enable it (distribution: "
        "REGISTRY_STORAGE_DELETE_ENABLED=true), or let the registry delete old tags by its own "
        "retention policy",
        Message(status)));
  }
  CW_RETURN_IF_ERROR(status);
  return report.HasFailures() ? kFailed : kOk;
}

std::vector<Option> GcOptions() {
  return {
      {.name = "store",
       .value = "URL",
       .help = "store to collect: oci://host[:port][/base] or layout:///directory (required)",
       .check = CheckStoreUrl},
      {.name = "repository",
       .value = "NAME",
       .help = "collect only this repository, relative to the store (default: all)",
       .repeats = true,
       .check = CheckRepositoryName},
      {.name = "retain",
       .value = "NUMBER",
       .help = "newest bundles to keep per key, 1 to 1000 (default 1)",
       .range = settings::Range{1, kRetainMax}},
      {.name = "older-than",
       .value = "AGE",
       .help = "delete only bundles published and replaced at least this long ago (default 24h)",
       .check = CheckAge},
      {.name = "expire",
       .value = "AGE",
       .help = "also delete the retained bundles of keys whose newest bundle is older than this; "
               "with --keep-used only of keys that no CacheWarmup uses (default: never)",
       .check = CheckAge},
      {.name = "keep-used",
       .help = "keep every bundle that a node or CacheWarmup of the cluster needs"},
      {.name = "dry-run", .help = "print the same report; delete nothing"},
      {.name = "json", .help = "print the result as a JSON object"}};
}

}  // namespace

Verb GcVerb() {
  return {
      .name = "gc",
      .operands = "",
      .summary = "Delete old bundles of a store",
      .text =
          "Keeps the newest bundles of each key (--retain), tagged bundles, bundles published or\n"
          "replaced less than --older-than ago, and the signatures of kept bundles. Deletes the\n"
          "others with their signatures, and reports every bundle with the reason. Publishers may\n"
          "run at the same time.\n\n"
          "Without --keep-used, the decision depends only on the number of newer bundles, age\n"
          "and tags. With it, a bundle that a node or a CacheWarmup of that cluster needs is\n"
          "never deleted. If several clusters share a store, collect only repositories that\n"
          "one of them uses (--repository).\n\n"
          "A registry must allow deletion, and frees the disk by its own garbage collection.\n"
          "In a directory store, gc deletes blobs that no bundle needs, unless a publisher used\n"
          "them within the last hour (or within --older-than, if that is longer).\n\n"
          "  cachewarm gc --store layout:///srv/bundles --dry-run\n"
          "  cachewarm gc --store oci://registry.example.com/cachewarm --keep-used --expire 30d\n",
      .options = GcOptions(),
      .groups = {ClusterOptionList(), StoreOptionList()},
      .run = Gc};
}

}  // namespace cachewarm::cli
