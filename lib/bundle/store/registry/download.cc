// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/download.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/text/url.h"

namespace cachewarm::bundle {
namespace {

constexpr int kRedirectsMax = 3;
constexpr int kPartialContent = 206;
// After so many bytes the failures before them no longer count. With one byte, a server that sends
// one and resets the connection would be asked forever.
constexpr int64_t kProgressBytes = 1 << 20;

bool IsRedirect(int status) {
  return status >= 301 && status <= 308 && status != 304;
}

// Returns the first number of a Content-Range ("bytes 100-199/200").
std::optional<int64_t> StartOf(const std::optional<std::string>& content_range) {
  constexpr std::string_view kUnit = "bytes ";
  int64_t start = 0;
  if (!content_range.has_value() || !content_range->starts_with(kUnit)) {
    return std::nullopt;
  }
  const char* begin = content_range->data() + kUnit.size();
  const auto [end, error] =
      std::from_chars(begin, content_range->data() + content_range->size(), start);
  return error == std::errc() ? std::optional(start) : std::nullopt;
}

// Forwards the requested bytes of full (200) and partial (206) responses to `sink` and counts them.
// Drops all other bytes.
class RangeSink : public http::BodySink {
 public:
  RangeSink(const BlobRange& range, Sink& sink) : range_(range), sink_(sink) {}

  int64_t done() const { return done_; }
  bool complete() const { return done_ == range_.bytes; }
  // Returns the error of `sink`, or OK. After such an error the download must not be retried.
  const absl::Status& sink_status() const { return sink_status_; }

  absl::Status Begin(const http::Response& head) override {
    const int64_t wanted = range_.offset + done_;
    if (head.status != kPartialContent) {
      skip_ = wanted;
      return absl::OkStatus();
    }
    skip_ = 0;
    const auto start = StartOf(head.headers.Find("Content-Range"));
    return start == wanted
               ? absl::OkStatus()
               : absl::UnavailableError("the registry returned another range than requested");
  }

  absl::Status Write(std::string_view bytes) override {
    const auto skipped = std::min(static_cast<size_t>(skip_), bytes.size());
    skip_ -= static_cast<int64_t>(skipped);
    bytes.remove_prefix(skipped);
    bytes = bytes.substr(0, static_cast<size_t>(range_.bytes - done_));
    if (bytes.empty()) {
      return complete() ? absl::AbortedError("enough") : absl::OkStatus();
    }
    sink_status_ = sink_.Write(bytes);
    if (sink_status_.ok()) {
      done_ += static_cast<int64_t>(bytes.size());
    }
    return sink_status_;
  }

 private:
  const BlobRange& range_;
  Sink& sink_;
  int64_t done_ = 0;
  int64_t skip_ = 0;
  absl::Status sink_status_;
};

// Sends one request and follows its redirects.
absl::Status Try(Session& session, const Download& download, RangeSink& sink,
                 std::stop_token stop) {
  const int64_t first = download.range.offset + sink.done();
  const int64_t last = download.range.offset + download.range.bytes - 1;
  http::Request request{
      .url = download.url,
      .headers = {{"Range", fmt::format("bytes={}-{}", first, last)}},
  };
  for (int hop = 0; hop <= kRedirectsMax; ++hop) {
    CW_ASSIGN_OR_RETURN(const http::Response response,
                        session.Stream(request, sink, download.scope, stop));
    if (!IsRedirect(response.status)) {
      CW_RETURN_IF_ERROR(RegistryStatus(response, NameOf(http::Method::kGet, request.url)));
      return sink.complete()
                 ? absl::OkStatus()
                 : absl::UnavailableError("the registry sent fewer bytes than requested");
    }
    const auto location = response.headers.Find("Location");
    CW_ASSIGN_OR_RETURN(const http::Url base, http::Url::Parse(request.url));
    CW_ASSIGN_OR_RETURN(const http::Url next, http::ResolveLocation(base, location.value_or("")));
    request.url = next.ToString();
  }
  return absl::UnavailableError(fmt::format("GET {}: too many redirects", download.url));
}

}  // namespace

absl::Status RunDownload(Session& session, const Download& download, Sink& sink,
                         std::stop_token stop) {
  RangeSink range_sink(download.range, sink);
  RetryBudget budget = session.NewRetryBudget();
  int64_t recorded = 0;
  while (!range_sink.complete()) {
    const int64_t before = range_sink.done();
    absl::Status status = Try(session, download, range_sink, stop);
    if (range_sink.complete()) {
      break;
    }
    CW_RETURN_IF_ERROR(range_sink.sink_status());
    const bool trickled = absl::IsDeadlineExceeded(status) && range_sink.done() > before;
    if (!IsRetryable(status) || trickled) {
      return status;
    }
    if (range_sink.done() - recorded >= kProgressBytes) {
      recorded = range_sink.done();
      budget.RecordProgress();
    }
    CW_RETURN_IF_ERROR(budget.WaitBeforeRetry(status, stop));
  }
  return range_sink.sink_status();
}

}  // namespace cachewarm::bundle
