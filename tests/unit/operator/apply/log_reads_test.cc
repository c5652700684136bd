// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/log_reads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "lib/kube/core/error.h"
#include "operator/engine_log/parse.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::apply {
namespace {

using api::EngineLog;
using op::testing::SeriesValue;

const std::string kLog =
    "INFO 01-01 00:00:00 [monitor.py:33] torch.compile took 28.77 s in total\n";

class LogReadsTest : public ::testing::Test {
 protected:
  LogReadsTest() { warmup_.ns = "default", warmup_.name = "llama", warmup_.uid = "w1"; }

  void PutPod(const std::string& name, const std::string& uid, int restarts = 0) {
    codec::Json pod = op::testing::PodObject(name);
    pod["metadata"]["uid"] = uid;
    pod["status"] = {
        {"containerStatuses", {{{"name", "server"}, {"ready", true}, {"restartCount", restarts}}}}};
    server_.Put(kube::kPods, pod);
  }

  void Request(const std::vector<std::string>& pods) {
    std::vector<model::DesiredLogRead> desired;
    for (const std::string& pod : pods) {
      desired.push_back({.pod_uid = "uid-" + pod, .pod = pod, .container = "server"});
    }
    reads_.Update(warmup_, desired);
  }

  // Runs the reads that are due; returns their number.
  int Work() {
    int done = 0;
    while (queue_.size() > 0) {
      const std::string key = *queue_.Get({});
      const auto outcome = reads_.Reconcile(key, {});
      EXPECT_TRUE(outcome.ok()) << outcome.status();
      if (outcome.ok() && outcome->requeue_after.has_value()) {
        retry_ = *outcome->requeue_after;
        queue_.Done(key);
        queue_.AddAfter(key, *outcome->requeue_after);
      } else {
        queue_.Done(key);
      }
      ++done;
    }
    return done;
  }

  std::string Reports() const {
    std::string text;
    for (const model::EngineReport& report : reads_.Reports("w1")) {
      text += report.pod_uid + "=" +
              (report.start.log == EngineLog::kFound          ? "found"
               : report.start.log == EngineLog::kNothingFound ? "nothing"
                                                              : "unreadable") +
              " ";
    }
    return text;
  }
  double Counted(const std::string& result) const {
    return SeriesValue(registry_->Serialize(),
                       "cachewarm_engine_log_reads_total{result=\"" + result + "\"}");
  }
  int LogRequests() const {
    int count = 0;
    for (const std::string& request : server_.Requests()) {
      count += request.starts_with("get pods/log ") ? 1 : 0;
    }
    return count;
  }

  fakes::FakeClock clock_;
  fakes::FakeApiServer server_{clock_};
  fakes::MemoryLog log_;
  kube::WorkQueue queue_{clock_};
  std::unique_ptr<metrics::Registry> registry_ = metrics::MakeRegistry();
  const op::Metrics metrics_ = op::MakeMetrics(*registry_, "test");
  std::vector<std::string> woken_;
  api::CacheWarmup warmup_;
  Duration retry_{0};
  LogReads reads_{{.client = server_,
                   .clock = clock_,
                   .metrics = metrics_,
                   .log = log_,
                   .queue = queue_,
                   .wake = [this](const std::string& warmup) { woken_.push_back(warmup); }}};
};

TEST_F(LogReadsTest, LogIsReadOnceAndKeptWhileItIsDesired) {
  PutPod("a", "uid-a");
  server_.SetLog({"default", "a"}, "server", kLog);
  Request({"a"});
  EXPECT_EQ(Reports(), "");
  Work();
  EXPECT_EQ(Reports(), "uid-a=found ");
  EXPECT_EQ(reads_.Reports("w1")[0].start.compile_seconds, 28.77);
  EXPECT_EQ(woken_, std::vector<std::string>{"default/llama"});
  Request({"a"});
  EXPECT_EQ(Work(), 0);
  EXPECT_EQ(LogRequests(), 1);
  EXPECT_EQ(Counted("found"), 1);
  Request({});
  EXPECT_EQ(Reports(), "");
}

TEST_F(LogReadsTest, OnlyTheNamedContainerIsReadAndOnlyTheBeginning) {
  PutPod("a", "uid-a");
  server_.SetLog({"default", "a"}, "server", "nothing of an engine\n");
  server_.SetLog({"default", "a"}, "sidecar", kLog);
  std::string query;
  server_.Intercept([&](const kube::Request& request) {
    query = request.resource == "pods/log" ? request.query : query;
    return absl::OkStatus();
  });
  Request({"a"});
  Work();
  EXPECT_EQ(query, "container=server&limitBytes=2097152");
  EXPECT_EQ(Reports(), "uid-a=nothing ");
  EXPECT_EQ(Counted("nothing_found"), 1);
}

TEST_F(LogReadsTest, FailedReadIsRepeatedOnce) {
  PutPod("a", "uid-a");
  server_.SetLog({"default", "a"}, "server", kLog);
  std::atomic<int> failures = 0;
  server_.Intercept([&](const kube::Request& request) -> absl::Status {
    if (request.resource == "pods/log" && failures++ < 1) {
      return absl::UnavailableError("kubelet does not answer");
    }
    return absl::OkStatus();
  });
  Request({"a"});
  Work();
  EXPECT_EQ(Reports(), "");
  EXPECT_EQ(retry_, kLogReadRetry);
  clock_.Advance(kLogReadRetry);
  clock_.Advance(Duration(1));
  EXPECT_EQ(queue_.delayed() + queue_.size(), 1U);
  const std::string key = *queue_.Get({});
  EXPECT_TRUE(reads_.Reconcile(key, {}).ok());
  EXPECT_EQ(Reports(), "uid-a=found ");
  EXPECT_EQ(log_.Text(), "") << "a failure that a retry repairs is not logged";
}

TEST_F(LogReadsTest, FailuresAreCountedAndLoggedOnce) {
  server_.Intercept([](const kube::Request& request) -> absl::Status {
    return request.resource == "pods/log"
               ? kube::ToStatus({.code = 403, .reason = "Forbidden", .message = "no right"})
               : absl::OkStatus();
  });
  for (const char* pod : {"a", "b", "c"}) {
    PutPod(pod, std::string("uid-") + pod);
  }
  Request({"a", "b", "c"});
  EXPECT_EQ(Work(), 3) << "a missing right is not tried again";
  EXPECT_EQ(Reports(), "uid-a=unreadable uid-b=unreadable uid-c=unreadable ");
  EXPECT_EQ(Counted("unreadable"), 3);
  const std::string text = log_.Text();
  const size_t first = text.find("engineLogs.enabled");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("engineLogs.enabled", first + 1), std::string::npos) << text;
}

TEST_F(LogReadsTest, LogOfAnotherRunIsNotUsed) {
  PutPod("replaced", "uid-of-a-later-pod");
  PutPod("restarted", "uid-restarted", 1);
  for (const char* pod : {"replaced", "restarted"}) {
    server_.SetLog({"default", pod}, "server", kLog);
  }
  Request({"gone", "replaced", "restarted"});
  Work();
  EXPECT_EQ(Reports(), "uid-gone=unreadable uid-replaced=unreadable uid-restarted=unreadable ");
}

TEST_F(LogReadsTest, ReadThatTakesTooLongIsCancelled) {
  PutPod("a", "uid-a");
  std::atomic<bool> is_reading = false;
  class Hanging final : public kube::Client {
   public:
    explicit Hanging(std::atomic<bool>& flag) : is_reading_(flag) {}
    absl::StatusOr<codec::Json> Do(const kube::Request&, std::stop_token) override {
      return absl::UnimplementedError("");
    }
    absl::StatusOr<std::string> DoText(const kube::Request&, std::stop_token stop) override {
      is_reading_ = true;
      while (!stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      return absl::CancelledError("stopped");
    }
    absl::Status Watch(const kube::Request&, const kube::WatchEventHandler&,
                       std::stop_token) override {
      return absl::OkStatus();
    }

   private:
    std::atomic<bool>& is_reading_;
  };
  Hanging client(is_reading);
  LogReads reads({.client = client,
                  .clock = clock_,
                  .metrics = metrics_,
                  .log = log_,
                  .queue = queue_,
                  .wake = [](const std::string&) {}});
  reads.Update(warmup_, {{.pod_uid = "uid-a", .pod = "a", .container = "server"}});
  const std::string key = *queue_.Get({});
  auto done = std::async(std::launch::async, [&] { return reads.Reconcile(key, {}); });
  while (done.wait_for(std::chrono::milliseconds(2)) != std::future_status::ready) {
    if (is_reading) {
      clock_.Advance(std::chrono::seconds(1));
    }
  }
  const auto outcome = done.get();
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->requeue_after, kLogReadRetry);
}

TEST_F(LogReadsTest, NumberOfReadsIsBounded) {
  std::vector<std::string> pods;
  for (size_t i = 0; i < kLogReadsMax + 10; ++i) {
    pods.push_back("p" + std::to_string(i));
  }
  Request(pods);
  EXPECT_EQ(queue_.size(), kLogReadsMax);
  api::CacheWarmup other = warmup_;
  other.uid = "w2";
  reads_.Update(other, {{.pod_uid = "uid-x", .pod = "x", .container = "server"}});
  EXPECT_EQ(queue_.size(), kLogReadsMax) << "dropped; the next plan repeats it";
  reads_.Forget("w1");
  reads_.Update(other, {{.pod_uid = "uid-x", .pod = "x", .container = "server"}});
  EXPECT_EQ(queue_.size(), kLogReadsMax + 1);
  Work();
  EXPECT_EQ(LogRequests(), 1) << "forgotten reads are not done";
}

}  // namespace
}  // namespace cachewarm::apply
