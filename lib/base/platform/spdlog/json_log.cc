// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace cachewarm {
namespace {

class JsonLog final : public Log {
 public:
  JsonLog(LogLevel level, const Clock& clock)
      : level_(level),
        clock_(clock),
        logger_("cachewarm", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    // Pass finished lines to spdlog, because its patterns cannot escape JSON.
    logger_.set_pattern("%v");
    logger_.set_level(spdlog::level::trace);
    logger_.flush_on(spdlog::level::trace);
  }

  void Write(LogLevel level, std::string_view msg, LogFields fields) override {
    if (level >= level_) {
      logger_.info("{}", LogLine(FormatMicroTime(clock_.Now()), level, msg, fields));
    }
  }

 private:
  LogLevel level_;
  const Clock& clock_;
  spdlog::logger logger_;
};

}  // namespace

std::unique_ptr<Log> MakeJsonLog(LogLevel level, const Clock& clock) {
  return std::make_unique<JsonLog>(level, clock);
}

}  // namespace cachewarm
