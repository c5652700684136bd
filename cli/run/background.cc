// SPDX-License-Identifier: Apache-2.0
#include "cli/run/background.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "cli/run/directory.h"
#include "cli/run/publish.h"
#include "cli/run/time_limit.h"
#include "fmt/format.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/http/client.h"
#include "lib/http/text/url.h"
#include "lib/process/process.h"

namespace cachewarm::cli {
namespace {

constexpr Duration kTickMin{50};
constexpr Duration kTickMax{2'000};
constexpr Duration kUrlInactivity{2'000};
constexpr Duration kStopWait{2'000};

// Requests --ready-url to find out whether the command is ready.
class UrlProbe {
 public:
  explicit UrlProbe(const std::string& url) : url_(url) {
    if (const auto parsed = http::Url::Parse(url); parsed.ok()) {
      auto client = http::MakeClient({.plain_http_hosts = {parsed->host}});
      client_ = client.ok() ? *std::move(client) : nullptr;
    }
  }

  bool IsReady(const std::stop_token& stop) const {
    if (client_ == nullptr) {
      return false;
    }
    const auto response = client_->Send({.url = url_, .inactivity = kUrlInactivity}, stop);
    return response.ok() && response->status >= 200 && response->status < 300;
  }

 private:
  const std::string url_;
  std::unique_ptr<http::Client> client_;
};

}  // namespace

struct BackgroundPublisher::State {
  std::shared_ptr<const RunContext> context;
  BackgroundOptions options;
  Console& console;
  std::stop_source stop;
  std::thread thread;

  std::mutex mutex;
  std::condition_variable_any changed;
  bool log_matched = false;  // guarded by mutex
  bool ended = false;
  TreeSnapshot published;

  void Run();
  bool TakeLogMatch();
  // Publishes the files of `tree`.
  absl::Status Publish(const TreeSnapshot& tree);
};

bool BackgroundPublisher::State::TakeLogMatch() {
  const std::lock_guard lock(mutex);
  return log_matched;
}

absl::Status BackgroundPublisher::State::Publish(const TreeSnapshot& tree) {
  CW_ASSIGN_OR_RETURN(
      const PublishReport report,
      PublishUnion({.source = context->source,
                    .dir = context->dir,
                    .clock = console.clock,
                    .table = context->table,
                    .replaced = ReplacedFiles(published.empty() ? options.before : published, tree),
                    .damaged = options.damaged,
                    .threads = 1},
                   stop.get_token()));
  options.damaged = Digest();
  console.err << ToText(report) << std::flush;
  return absl::OkStatus();
}

void BackgroundPublisher::State::Run() {
  process::LowerThreadPriority();
  const std::stop_token stopped = stop.get_token();
  const ReadyRules& rules = options.rules;
  const Duration tick = std::clamp(rules.quiet / 4, kTickMin, kTickMax);
  PublishSchedule schedule(rules, SystemRandom()());
  const UrlProbe probe(options.ready_url);
  bool answered = !rules.by_url;
  bool has_failed = false;
  while (SleepFor(console.clock, tick, stopped)) {
    if (!answered && probe.IsReady(stopped)) {
      answered = true;
      schedule.UrlAnswered();
    }
    if (TakeLogMatch()) {
      schedule.LogMatched();
    }
    const TreeSnapshot tree = TakeSnapshot(context->dir, context->table);
    if (!schedule.Observe(tree, console.clock.Monotonic())) {
      continue;
    }
    const absl::Status done = Publish(tree);
    if (done.ok()) {
      schedule.Published(tree, console.clock.Monotonic());
      const std::lock_guard lock(mutex);
      published = tree;
      continue;
    }
    schedule.Failed(console.clock.Monotonic());
    if (!has_failed && !stopped.stop_requested() && !absl::IsAborted(done)) {
      // Report only the first failure here; the last one is reported when the command has ended.
      has_failed = true;
      console.err << fmt::format("cachewarm run: {}; not published yet, trying again\n",
                                 Message(done))
                  << std::flush;
    }
  }
}

BackgroundPublisher::BackgroundPublisher(std::shared_ptr<const RunContext> context,
                                         BackgroundOptions options, Console& console)
    : state_(new State{
          .context = std::move(context), .options = std::move(options), .console = console}) {
  state_->thread = std::thread([state = state_] {
    state->Run();
    const std::lock_guard lock(state->mutex);
    state->ended = true;
    state->changed.notify_all();
  });
}

BackgroundPublisher::~BackgroundPublisher() {
  Stop();
}

void BackgroundPublisher::LogMatched() {
  const std::lock_guard lock(state_->mutex);
  state_->log_matched = true;
}

TreeSnapshot BackgroundPublisher::Stop() {
  std::unique_lock lock(state_->mutex);
  if (!state_->thread.joinable()) {
    return state_->published;
  }
  state_->stop.request_stop();
  const Clock& clock = state_->console.clock;
  const MonoTime end = clock.Monotonic() + kStopWait;
  while (!state_->ended && clock.Monotonic() < end) {
    clock.WaitUntil(lock, state_->changed, end, {});
  }
  TreeSnapshot published = state_->published;
  const bool ended = state_->ended;
  lock.unlock();
  if (ended) {
    state_->thread.join();
  } else {
    ++AbandonedThreads();
    state_->thread.detach();
  }
  return published;
}

}  // namespace cachewarm::cli
