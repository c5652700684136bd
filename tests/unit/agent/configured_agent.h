// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/config.h"
#include "agent/daemon.h"
#include "agent/tree/root_layout.h"
#include "lib/api/node_cache.h"
#include "lib/codec/json_value.h"
#include "lib/http/client.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/unit/agent/node_probes.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {

// The agent as its configuration file makes it: the text goes through ParseConfig() into a Daemon
// over an API server in the process, a directory and a store in memory. Time is the fake clock of
// Workbench where `is_fake_time` is set, else real.
class ConfiguredAgent : public ::testing::Test, protected Workbench {
 protected:
  ConfiguredAgent() : server_(SystemClock()) {}
  ~ConfiguredAgent() override { Stop(); }

  // Parses `file` with the settings that every test needs in front: store, listen, root, node name.
  absl::StatusOr<Config> Configured(const std::string& file,
                                    const std::vector<std::string>& flags = {}) {
    std::vector<std::string> arguments = {"--config=/c.yaml", "--node-name=node-a"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    // The disk of the tests may be nearly full.
    const std::string reserve = file.find("reserve:") == std::string::npos
                                    ? "reserve: {bytesPercent: 0, inodesPercent: 0}\n"
                                    : "";
    const std::string text =
        "listen: 127.0.0.1:0\nroot: " + (scratch_ / "root").string() + "\n" + reserve + file;
    const std::string store =
        text.find("\nstore:") == std::string::npos ? "store: layout:///s\n" : "";
    const absl::StatusOr<CommandLine> parsed =
        ParseConfig({.arguments = arguments,
                     .environment = [](const std::string&) { return std::nullopt; },
                     .read_file = [&](const std::string&) { return store + text; },
                     .host_name = "host-1",
                     .version = "test"});
    if (!parsed.ok()) {
      return parsed.status();
    }
    return parsed->config;
  }

  void Start(const std::string& file, const std::vector<std::string>& flags = {}) {
    Stop();
    const absl::StatusOr<Config> config = Configured(file, flags);
    ASSERT_TRUE(config.ok()) << config.status();
    const Clock& clock = is_fake_time_ ? static_cast<const Clock&>(clock_) : SystemClock();
    daemon_ = std::make_unique<Daemon>(*config, DaemonDependencies{.client = server_,
                                                                   .store = store_,
                                                                   .clock = clock,
                                                                   .random = [] { return 0.5; },
                                                                   .log = log_,
                                                                   .registry = *registry_,
                                                                   .metrics = metrics_,
                                                                   .probes = probes_,
                                                                   .version = "test"});
    stop_ = {};
    running_ = std::async(std::launch::async, [this] { return daemon_->Run(stop_.get_token()); });
  }

  void Stop() {
    stop_.request_stop();
    if (running_.valid()) {
      EXPECT_TRUE(running_.get().ok());
    }
  }

  void Put(const api::NodeCacheSpec& spec) {
    server_.Put(kube::kNodeCaches, {{"apiVersion", "cachewarm.io/v1alpha1"},
                                    {"kind", "NodeCache"},
                                    {"metadata", {{"name", "node-a"}, {"uid", "nc-1"}}},
                                    {"spec", api::EncodeSpec(spec)}});
  }
  api::NodeCacheStatus Status() const {
    const kube::Object object = server_.Find(kube::kNodeCaches, {"", "node-a"});
    return object == nullptr ? api::NodeCacheStatus{} : api::DecodeNodeCache(*object)->status;
  }

  // A warmup number `index` that wants `digest` on this node.
  static api::WantedWarmup WarmupOf(const Digest& digest, int index = 0) {
    const std::string suffix = index == 0 ? "" : "-" + std::to_string(index);
    return {.uid = kMount.uid + suffix,
            .ns = kMount.ns,
            .name = kMount.name + suffix,
            .run_as = {kMount.run_as},
            .bundles = {{.key = std::string(64, 'a'), .digest = digest, .bytes = 1}}};
  }
  void Want(const Digest& digest) { Put({.warmups = {WarmupOf(digest)}}); }

  // The first bundle's entry of the status once its state is `state`, or as it is after a minute.
  api::NodeBundle AwaitBundle(api::BundleState state) {
    api::NodeBundle bundle;
    fakes::Await(
        [&] {
          const api::NodeCacheStatus status = Status();
          if (!status.warmups.empty() && !status.warmups[0].bundles.empty()) {
            bundle = status.warmups[0].bundles[0];
          }
          if (is_fake_time_) {
            clock_.Advance(Duration(10));
          }
          return bundle.state == state;
        },
        std::chrono::seconds(60));
    return bundle;
  }

  Digest Publish(const std::map<std::string, std::string>& files) {
    const auto published = PublishFiles(files);
    EXPECT_TRUE(published.ok()) << published.status();
    return published->publication.digest;
  }

  http::Response Get(const std::string& path) {
    const auto answer =
        (*http::MakeClient({}))
            ->Send({.url = "http://127.0.0.1:" + std::to_string(daemon_->port()) + path}, {});
    return answer.ok() ? *answer : http::Response{};
  }

  bool is_fake_time_ = false;
  NodeProbes probes_ = ProbesReturning(node_);
  Scratch scratch_;
  fakes::FakeApiServer server_;
  std::unique_ptr<Daemon> daemon_;
  std::stop_source stop_;
  std::future<absl::Status> running_;
};

}  // namespace cachewarm::agent
