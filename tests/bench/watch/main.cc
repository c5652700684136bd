// SPDX-License-Identifier: Apache-2.0
// Measures the processor time that the agent's watch takes while pods start: processes that stand
// for pods read every file of one tree, and this process records the file events and classifies the
// starts, as the agent does.
//
//   bench_watch [FILES [PODS [SECONDS]]]   default 10000 10 60
//
// The pods start together. Each reads FILES files in SECONDS seconds; 0: as fast as it can. Prints
// one line. Exits with 1 if a start is reported as anything else than a hit, or as a hit although
// events were lost.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "agent/evidence/classify.h"
#include "agent/evidence/tree_watcher.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

constexpr int kStepsPerStart = 100;  // a pod reads, then waits, this many times
constexpr int kFilesPerEntry = 5;    // one entry of an index, and objects and sources beside it

class NoLog final : public Log {
 public:
  void Write(LogLevel, std::string_view, LogFields) override {}
};

// Makes a tree of Inductor's layout. Returns the paths of its files.
std::vector<std::string> MakeTree(const stdfs::path& root, int files) {
  std::vector<std::string> paths;
  for (int i = 0; i < files; ++i) {
    const std::string shard = fmt::format("{:02x}", i % 256);
    const bool is_entry = i % kFilesPerEntry == 0;
    const stdfs::path path =
        is_entry ? root / "inductor/fxgraph" / shard / fmt::format("f{:06x}", i) / "0011"
                 : root / "inductor" / shard / fmt::format("c{:06x}.py", i);
    stdfs::create_directories(path.parent_path());
    std::ofstream(path) << "compiled";
    paths.push_back(path.string());
  }
  return paths;
}

void ReadFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char bytes[64];
  if (file < 0 || ::read(file, bytes, sizeof(bytes)) < 0) {
    ::_exit(1);
  }
  ::close(file);
}

// Runs in a child process, which stands for one pod. Begins with file `first`, so that the pods do
// not read the same file at the same time: the watch would count such reads as one.
[[noreturn]] void StartPod(const std::vector<std::string>& paths, size_t first, int seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const size_t step = paths.size() / kStepsPerStart + 1;
  for (size_t i = 0; i < paths.size(); ++i) {
    ReadFile(paths[(first + i) % paths.size()]);
    if (i % step == 0) {
      std::this_thread::sleep_until(begin + std::chrono::milliseconds(1000) * seconds *
                                                static_cast<int>(i / step) / kStepsPerStart);
    }
  }
  ::_exit(0);
}

double CpuSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

bool RunPods(const std::vector<std::string>& paths, int pods, int seconds) {
  std::vector<pid_t> children;
  for (int i = 0; i < pods; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      StartPod(paths, static_cast<size_t>(i) * paths.size() / static_cast<size_t>(pods), seconds);
    }
    children.push_back(child);
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    good = child > 0 && ::waitpid(child, &status, 0) == child && status == 0 && good;
  }
  return good;
}

int Argument(int argc, char** argv, int number, int otherwise) {
  return argc > number ? std::atoi(argv[number]) : otherwise;
}

struct Setup {
  int files = 0;
  int pods = 0;
  int seconds = 0;
};

int Measure(const Setup& setup, const stdfs::path& root) {
  const std::vector<std::string> paths = MakeTree(root, setup.files);
  const Clock& clock = SystemClock();
  NoLog log;
  const auto watcher = Watcher::Start({}, clock, log);
  if (!watcher.ok()) {
    fmt::print(stderr, "{}\n", watcher.status().ToString());
    return 1;
  }
  Watcher& watch = **watcher;
  const double before = CpuSeconds();
  if (!watch
           .AddTree({.generation = "g",
                     .warmup_uid = "w",
                     .directory = root.string(),
                     .run_as = "image",
                     .fresh = true})
           .ok()) {
    return 1;
  }
  const double watched = CpuSeconds();
  const WallTime started = clock.Now();
  if (!RunPods(paths, setup.pods, setup.seconds)) {
    fmt::print(stderr, "a pod failed\n");
    return 1;
  }
  const api::StartWindow window{
      .warmup_uid = "w", .run_as = "image", .started_time = started, .ready_time = clock.Now()};
  const double recorded = CpuSeconds();
  int hits = 0;
  int unknown = 0;
  for (int i = 0; i < setup.pods; ++i) {
    const EventRecord record = watch.ReadTree("g", WindowBegin(window), WindowEnd(window));
    const Observation seen = ClassifyStart(record, window, caches::CacheTable::DefaultPresets());
    hits += seen.result == api::StartResult::kHit ? 1 : 0;
    unknown += seen.result == api::StartResult::kUnknown ? 1 : 0;
  }
  const double took = std::chrono::duration<double>(clock.Now() - started).count();
  const double used = CpuSeconds() - watched;
  fmt::print(
      "{} files, {} directories, {} pods in {:.1f} s: {} events kept, {} overflows; {} hits, {} "
      "unknown; {:.3f} s of a processor ({:.2f} % of one), {:.3f} s of them to classify the "
      "starts; {:.3f} s before to begin the watch\n",
      setup.files, watch.directories(), setup.pods, took, watch.events(), watch.overflows(), hits,
      unknown, used, 100 * used / took, used - (recorded - watched), watched - before);
  const int expected = watch.overflows() == 0 ? hits : unknown;
  return expected == setup.pods ? 0 : 1;
}

int Run(int argc, char** argv) {
  const Setup setup{.files = Argument(argc, argv, 1, 10'000),
                    .pods = Argument(argc, argv, 2, 10),
                    .seconds = Argument(argc, argv, 3, 60)};
  std::string name = (stdfs::temp_directory_path() / "bench-watch-XXXXXX").string();
  if (setup.files < 1 || setup.pods < 1 || setup.seconds < 0 || ::mkdtemp(name.data()) == nullptr) {
    fmt::print(stderr, "usage: bench_watch [FILES [PODS [SECONDS]]]\n");
    return 2;
  }
  const int status = Measure(setup, name);
  stdfs::remove_all(name);
  return status;
}

}  // namespace
}  // namespace cachewarm::agent

int main(int argc, char** argv) {
  return cachewarm::agent::Run(argc, argv);
}
