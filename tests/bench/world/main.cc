// SPDX-License-Identifier: Apache-2.0
// Measures the operator's cache of a large cluster: its memory once everything is listed, and the
// time of a plan (observe, then decide) for each warmup, the first time and again without changes.
// Arguments: nodes, pods in addition to the agents', warmups. Prints one line per figure.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "lib/base/json_log.h"
#include "operator/observe/cluster_cache.h"
#include "operator/observe/observe_warmup.h"
#include "operator/plan/decide.h"
#include "tests/bench/world/generated.h"

namespace cachewarm::bench {
namespace {

using std::chrono::steady_clock;

double SecondsSince(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

// VmRSS or VmHWM, in MB.
double Megabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == field + ":") {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024 / 1e6;
    }
  }
  return 0;
}

void PrintMemory(const char* when) {
  std::printf("%s: %.1f MB, peak %.1f MB\n", when, Megabytes("VmRSS"), Megabytes("VmHWM"));
  std::fflush(stdout);
}

// The milliseconds of each of a few calls.
class Times {
 public:
  template <typename Call>
  auto Of(Call call) {
    const auto begin = steady_clock::now();
    auto result = call();
    taken_.push_back(1000 * SecondsSince(begin));
    return result;
  }
  void Print(const char* of) {
    std::sort(taken_.begin(), taken_.end());
    std::printf(" %s %.1f ms (slowest %.1f)", of, taken_[taken_.size() / 2], taken_.back());
  }

 private:
  std::vector<double> taken_;
};

// Plans every warmup, one after the other, as the controller does.
void Round(const observe::ClusterCache& cache, const char* title) {
  Times observing;
  Times deciding;
  for (const auto& warmup : cache.warmup_views.List()) {
    auto snapshot = observing.Of([&] {
      return observe::Observe(cache, *warmup,
                              {.now = SystemClock().Now(), .agent_namespace = "cachewarm-system"});
    });
    deciding.Of([&] { return plan::Decide(snapshot).nodes.size(); });
  }
  std::printf("%s:", title);
  observing.Print("observe");
  deciding.Print("decide");
  std::printf("\n");
}

int Main(int argc, char** argv) {
  const auto argument = [&](int index, int fallback) {
    return argc > index ? std::atoi(argv[index]) : fallback;
  };
  const Size size{.nodes = argument(1, Size().nodes),
                  .pods = argument(2, Size().pods),
                  .warmups = argument(3, Size().warmups)};
  const auto log = MakeJsonLog(LogLevel::kWarning, SystemClock());
  GeneratedCluster cluster(size);
  observe::ClusterCache cache({cluster, SystemClock(), SystemRandom(), *log});
  std::printf("%d nodes, %d agents, %d pods, %d warmups\n", size.nodes, size.nodes, size.pods,
              size.warmups);
  PrintMemory("empty");
  const auto begin = steady_clock::now();
  std::stop_source stop;
  cache.Start(stop.get_token());
  kube::AwaitSynced(cache.Stores(), SystemClock(), std::chrono::minutes(10), {});
  std::printf("listed in %.1f s\n", SecondsSince(begin));
  PrintMemory("listed");
  std::printf("in common: %zu parts, %.1f MB\n", cache.table->parts(),
              static_cast<double>(cache.table->part_bytes()) / 1e6);
  for (const char* title : {"first round", "second round", "third round"}) {
    Round(cache, title);
  }
  PrintMemory("after the rounds");
  stop.request_stop();
  cache.Join();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace cachewarm::bench

int main(int argc, char** argv) {
  return cachewarm::bench::Main(argc, argv);
}
