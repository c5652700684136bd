// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/publish.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "agent/steps/selection.h"
#include "agent/steps/stable_file.h"
#include "lib/base/status.h"
#include "lib/fingerprint/key.h"

namespace cachewarm::agent {
namespace {

bundle::Facts FactsOf(const PublishJob& job, const Selection& selection) {
  const api::KeyFactors& factors = job.request.factors;
  bundle::Facts facts;
  facts.key = job.request.key;
  facts.factors = {{"gpuType", factors.gpu_type},
                   {"cpuClass", factors.cpu_class},
                   {"image", factors.image},
                   {"devices", fmt::format("{}", factors.devices)},
                   {"container", factors.container}};
  facts.node = {{"gpuType", job.node.gpu_type},
                {"cpuClass", job.node.cpu_class},
                {"driver", job.node.driver_version},
                {"cpuFlags", fmt::format("{}", fmt::join(job.node.cpu.flags, " "))}};
  facts.requires_cpu_class = selection.native;
  facts.gpu_architectures = selection.gpu_architectures;
  facts.compile_milliseconds = static_cast<int64_t>(selection.compile_time.Seconds() * 1000);
  return facts;
}

std::vector<bundle::PackFile> PackFilesOf(const PublishJob& job, const Selection& selection) {
  std::vector<bundle::PackFile> files;
  files.reserve(selection.files.size());
  for (const TreeFile& file : selection.files) {
    files.push_back({.path = file.path,
                     .kind = file.placement.cache,
                     .bytes = file.stat.bytes,
                     .mtime_ns = file.placement.keep_mtime ? file.stat.mtime_ns : 0,
                     .open = [&job, &file] {
                       return OpenStable({.tree = job.tree,
                                          .path = file.path,
                                          .expected = file.stat,
                                          .on_opening = job.on_opening});
                     }});
  }
  return files;
}

}  // namespace

absl::Status CheckRequest(const api::CaptureRequest& request, const fingerprint::NodeFacts& node) {
  CW_ASSIGN_OR_RETURN(const std::string key, fingerprint::KeyOf(request.factors));
  if (key != request.key) {
    return absl::FailedPreconditionError(
        "the key is not that of its factors: operator and agent "
        "are of different versions; upgrade the older one");
  }
  if (request.factors.gpu_type != node.gpu_type || request.factors.cpu_class != node.cpu_class) {
    return absl::FailedPreconditionError(fmt::format(
        "asked for GPU type {} and CPU class {}, but this node is {} and {}",
        request.factors.gpu_type, request.factors.cpu_class, node.gpu_type, node.cpu_class));
  }
  return absl::OkStatus();
}

absl::StatusOr<Published> PublishTree(const PublishJob& job, std::stop_token stop) {
  CW_RETURN_IF_ERROR(CheckRequest(job.request, job.node));
  CW_ASSIGN_OR_RETURN(std::vector<TreeFile> files, LookAtTree(job.tree, job.table));
  CW_ASSIGN_OR_RETURN(
      const Selection selection,
      SelectFiles(
          std::move(files),
          {.tree = job.tree, .table = job.table, .used = job.used, .on_opening = job.on_opening}));
  if (selection.files.empty()) {
    return absl::NotFoundError(
        selection.torn.empty()
            ? "the builder used no file that spec.caches allows to travel"
            : fmt::format("nothing whole to capture: {}", selection.torn.front()));
  }
  CW_ASSIGN_OR_RETURN(
      bundle::Publication publication,
      bundle::Publish({.store = job.store, .repository = fmt::format("{}/{}", job.ns, job.name)},
                      PackFilesOf(job, selection), FactsOf(job, selection),
                      fmt::format("k-{}", job.request.key), std::move(stop)));
  return Published{.publication = std::move(publication),
                   .native = selection.native,
                   .stored_compile_seconds = selection.compile_time.Seconds(),
                   .torn = selection.torn};
}

}  // namespace cachewarm::agent
