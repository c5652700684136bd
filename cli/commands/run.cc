// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cli/child.h"
#include "cli/commands/commands.h"
#include "cli/run/background.h"
#include "cli/run/directory.h"
#include "cli/run/environment.h"
#include "cli/run/fetch.h"
#include "cli/run/interpreter.h"
#include "cli/run/options.h"
#include "cli/run/publish.h"
#include "cli/run/stale_locks.h"
#include "cli/run/time_limit.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::cli {
namespace {

constexpr mode_t kTreeMode = 0755;
constexpr int kNotExecutable = 126;
constexpr int kCommandNotFound = 127;

void Warn(const absl::Status& status, std::string_view consequence, Console& console) {
  if (!status.ok()) {
    console.err << fmt::format("cachewarm run: {}; {}\n", Message(status), consequence);
  }
}

// Returns the environment of the command. Variables that are already set are kept.
std::map<std::string, std::string> EnvironmentFor(const RunContext& context,
                                                  const Console& console) {
  std::map<std::string, std::string> environment = console.environment;
  environment.merge(PresetVariables(context.path, context.table));
  return environment;
}

absl::Status MakeDirectories(const RunContext& context) {
  for (const std::string& below : context.table.Directories()) {
    CW_RETURN_IF_ERROR(context.dir.MakeDirs(below, kTreeMode));
  }
  return absl::OkStatus();
}

// One call of "run".
class CommandRun {
 public:
  CommandRun(const Arguments& arguments, LifeCycle cycle, Console& console)
      : arguments_(arguments), cycle_(std::move(cycle)), console_(console) {}

  absl::StatusOr<int> Run() {
    const std::stop_callback also_stop(console_.stop, [this] { stop_.request_stop(); });
    ReceiveSignals([this](const ReceivedSignal& signal) {
      if (signal.number != SIGWINCH) {
        early_signal_ = signal.number;
        stop_.request_stop();
      }
    });
    CW_RETURN_IF_ERROR(Prepare());
    if (stop_.stop_requested()) {
      return early_signal_ != 0 ? kSignalExitBase + early_signal_ : int{kInterrupted};
    }
    auto code = RunCommand();
    if (absl::IsNotFound(code.status()) || absl::IsPermissionDenied(code.status())) {
      console_.err << fmt::format("cachewarm run: {}\n", Message(code.status()));
      return absl::IsNotFound(code.status()) ? kCommandNotFound : kNotExecutable;
    }
    if (code.ok() && context_ != nullptr && MayPublish()) {
      PublishAtEnd();
    }
    return code;
  }

 private:
  void ReceiveSignals(SignalRelay::Receiver receiver) {
    if (console_.signals != nullptr) {
      console_.signals->Receive(std::move(receiver));
    }
  }

  // False if this machine accepts only signed bundles but cannot sign: it would replace a signed
  // bundle by an unsigned one, which it must not use itself.
  bool MayPublish() const {
    const bundle::KeyFiles& keys = context_->source.keys;
    return keys.public_key_file.empty() || !keys.private_key_file.empty();
  }

  // Opens the cache directory and fills it from the store. Returns an error only for wrong
  // arguments; after any other error the command starts without the cache.
  absl::Status Prepare() {
    CW_ASSIGN_OR_RETURN(caches::CacheTable table, ParseCaches(arguments_));
    auto source = OpenSource(arguments_, console_,
                             FindEngines({.words = arguments_.rest(),
                                          .environment = console_.environment,
                                          .directory = std::filesystem::current_path().string()}));
    if (absl::IsInvalidArgument(source.status())) {
      return source.status();
    }
    constexpr std::string_view kWithout = "the command runs without a cache directory";
    if (!source.ok()) {
      Warn(source.status(), kWithout, console_);
      return absl::OkStatus();
    }
    CW_ASSIGN_OR_RETURN(const std::string path,
                        CacheDirectoryOf(arguments_, source->machine, console_));
    auto opened = OpenCacheDirectory(path, source->machine, {.clock = console_.clock});
    if (!opened.ok()) {
      console_.err << fmt::format("cachewarm run: {}; {}\n", Message(opened.status()), kWithout);
      return absl::OkStatus();
    }
    if (!opened->note.empty()) {
      console_.err << fmt::format("cachewarm run: {}\n", opened->note);
    }
    context_ = std::make_shared<const RunContext>(RunContext{.source = *std::move(source),
                                                             .dir = std::move(opened->dir),
                                                             .path = std::move(opened->path),
                                                             .table = std::move(table)});
    RemoveStaleLocks();
    Fetch();
    before_ = TakeSnapshot(context_->dir, context_->table);
    Warn(MakeDirectories(*context_), "leaving the creation of cache directories to the command",
         console_);
    return absl::OkStatus();
  }

  void RemoveStaleLocks() {
    auto use = BeginUse(context_->dir, console_.clock);
    Warn(use.status(), "leaving the locks of killed commands in the cache directory", console_);
    if (use.ok()) {
      use_ = std::move(use->lock);
      for (const std::string& path : use->removed) {
        console_.err << fmt::format(
            "cachewarm run: removed {}/{}, the lock of a command that was killed\n", context_->path,
            path);
      }
    }
  }

  void Fetch() {
    auto progress = std::make_shared<Progress>(console_, "fetching", false);
    const auto fetched = RunWithin<FetchReport>(
        console_.clock, cycle_.max_wait, stop_.get_token(),
        [context = context_, &clock = console_.clock, progress](std::stop_token stop) {
          return FetchMissing(
              {.source = context->source,
               .dir = context->dir,
               .clock = clock,
               .limits = {},
               .on_progress = [progress](int64_t done,
                                         int64_t total) { progress->Show(done, total); }},
              std::move(stop));
        });
    progress.reset();  // clears the line
    const std::string_view consequence = TakeSnapshot(context_->dir, context_->table).empty()
                                             ? "starting cold"
                                             : "using the files of the last start";
    if (!fetched.has_value() || absl::IsCancelled(fetched->status)) {
      if (!stop_.stop_requested()) {
        console_.err << fmt::format(
            "cachewarm run: the store {} did not deliver the bundle within {} (--max-wait); {}\n",
            context_->source.store.reference.ToString(), FormatDuration(cycle_.max_wait),
            consequence);
      }
      return;
    }
    if (absl::IsDataLoss(fetched->status) || absl::IsInvalidArgument(fetched->status)) {
      damaged_ = fetched->bundle;
    }
    if (!absl::IsNotFound(fetched->status)) {
      Warn(fetched->status, consequence, console_);
    }
  }

  absl::StatusOr<int> RunCommand() {
    ChildCommand command{.words = arguments_.rest(),
                         .environment = context_ == nullptr ? console_.environment
                                                            : EnvironmentFor(*context_, console_),
                         .signals = console_.inherited};
    // Declared before `tap`, so that it is destroyed later: the thread of `tap` uses it.
    std::unique_ptr<BackgroundPublisher> background;
    std::atomic<BackgroundPublisher*> listener = nullptr;
    std::unique_ptr<OutputTap> tap;
    if (cycle_.ready_log.has_value() && context_ != nullptr && MayPublish()) {
      CW_ASSIGN_OR_RETURN(
          tap, OutputTap::Open(*cycle_.ready_log, [&listener] { listener.load()->LogMatched(); }));
      command.out = tap->out();
      command.err = tap->err();
    }
    CW_ASSIGN_OR_RETURN(const std::unique_ptr<Child> child, Child::Start(command));
    if (context_ != nullptr && cycle_.publishes_while_running && MayPublish()) {
      background =
          std::make_unique<BackgroundPublisher>(context_,
                                                BackgroundOptions{.rules = cycle_.rules,
                                                                  .ready_url = cycle_.ready_url,
                                                                  .before = before_,
                                                                  .damaged = damaged_},
                                                console_);
      listener = background.get();
    }
    if (tap != nullptr) {
      tap->Start();
    }
    auto code = Follow(*child);
    if (tap != nullptr) {
      tap->Finish();
    }
    if (background != nullptr) {
      published_ = background->Stop();
      damaged_ = published_.empty() ? damaged_ : Digest();
    }
    return code;
  }

  // Passes signals on to the child until it has ended.
  absl::StatusOr<int> Follow(Child& child) {
    const std::stop_callback on_stop(console_.stop, [&child] { child.Signal(SIGTERM); });
    ReceiveSignals([&child](const ReceivedSignal& signal) {
      if (!signal.from_terminal) {
        child.Signal(signal.number);
      }
    });
    if (early_signal_ != 0) {
      child.Signal(early_signal_);  // the signal came while the child was being started
    }
    auto code = child.Wait();
    // From now on a signal stops the publication instead.
    ReceiveSignals([this](const ReceivedSignal& signal) {
      if (signal.number != SIGWINCH) {
        end_.request_stop();
      }
    });
    return code;
  }

  void PublishAtEnd() {
    const TreeSnapshot now = TakeSnapshot(context_->dir, context_->table);
    if (now.empty() || now == published_) {
      return;
    }
    const auto replaced = ReplacedFiles(published_.empty() ? before_ : published_, now);
    const auto published = RunWithin<absl::StatusOr<PublishReport>>(
        console_.clock, cycle_.max_wait, end_.get_token(),
        [context = context_, &clock = console_.clock, replaced,
         damaged = damaged_](std::stop_token stop) {
          return PublishUnion({.source = context->source,
                               .dir = context->dir,
                               .clock = clock,
                               .table = context->table,
                               .replaced = replaced,
                               .damaged = damaged},
                              std::move(stop));
        });
    if (!published.has_value() || absl::IsCancelled(published->status())) {
      console_.err << fmt::format(
          "cachewarm run: {}; nothing was published, the next run publishes the files\n",
          end_.stop_requested() ? "a signal ended the publication"
                                : fmt::format("the store {} did not take the bundle within {} "
                                              "(--max-wait)",
                                              context_->source.store.reference.ToString(),
                                              FormatDuration(cycle_.max_wait)));
      return;
    }
    Warn(published->status(), "nothing published", console_);
    if (published->ok()) {
      console_.err << ToText(**published);
    }
  }

  const Arguments& arguments_;
  const LifeCycle cycle_;
  Console& console_;
  std::stop_source stop_;  // ends the preparation
  std::stop_source end_;   // ends the publication after the command
  std::atomic<int> early_signal_ = 0;
  std::shared_ptr<const RunContext> context_;  // null: the command runs without the cache
  fs::Fd use_;                                 // holds the cache directory until the end
  TreeSnapshot before_;                        // the files before the command started
  TreeSnapshot published_;                     // the files as of the last publication
  Digest damaged_;                             // the bundle that could not be unpacked or used
};

absl::StatusOr<int> Run(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(LifeCycle cycle, ParseLifeCycle(arguments));
  return CommandRun(arguments, std::move(cycle), console).Run();
}

}  // namespace

Verb RunVerb() {
  return {
      .name = "run",
      .operands = "",
      .summary = "Run a command and keep its compile caches between starts",
      .text =
          "Sets the environment variables of the known compile caches (--cache limits them) to\n"
          "directories below --dir, fetches from --store those files of this machine's bundle "
          "that\n"
          "--dir lacks, and runs the command. Publishes the cache files as soon as the command is\n"
          "ready and they have settled, and again when more was compiled, together with the files\n"
          "that the store already has. Does not need Kubernetes.\n\n"
          "Signals, exit code and terminal are those of the command. Variables that are already\n"
          "set are kept. If the store fails or is slow (--max-wait), the command starts cold.\n\n"
          "The bundle is that of the GPU type, the CPU class, the devices and the versions of\n"
          "torch, triton, vllm, sglang, jax and flashinfer in the Python that the command runs\n"
          "(or --image). If --dir has files of another GPU type or CPU class, a sibling directory\n"
          "is used instead.\n\n"
          "With --key only bundles signed by that key are used; --sign-key signs the bundles that\n"
          "are published. With --key alone nothing is published.\n\n"
          "Absolute paths in files of Triton and vLLM are rewritten for --dir. Other engines have\n"
          "them in their keys: use the same --dir on every machine. Locks of a command that was\n"
          "killed are removed if no other \"cachewarm run\" uses --dir.\n\n"
          "  cachewarm run --store /srv/bundles --name llama \\\n"
          "      --ready-url http://127.0.0.1:8000/health -- vllm serve llama\n",
      .options = {},
      .groups = {SourceOptionList(), LifeCycleOptionList(), MachineOptionList(), StoreOptionList()},
      .run = Run,
      .takes_rest = true};
}

}  // namespace cachewarm::cli
