// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace cachewarm::metrics {

// One value per label of the metric, in the order of MetricSpec::labels.
using LabelValues = std::vector<std::string>;

struct MetricSpec {
  // Must match cachewarm_[a-z0-9_]*. Counters end with _total (or _seconds_total, _bytes_total),
  // histograms with _seconds or _bytes.
  std::string name;
  std::string help;
  std::vector<std::string> labels;
  // Maximum number of label combinations. Values of further combinations go to one series whose
  // labels are all "other"; each such value increments cachewarm_metrics_overflow_total{metric}.
  size_t series_max = 2000;
};

// Counter, Gauge and Histogram live as long as their Registry and are thread-safe. Their functions
// never fail: with a wrong number of label values, the value goes to the series "other", as if
// series_max were exceeded.
class Counter {
 public:
  virtual ~Counter() = default;
  // Negative and non-finite amounts are ignored.
  virtual void Add(const LabelValues& labels, double amount = 1) = 0;
  // Raises the series to `total`, for a counter whose total is stored elsewhere. Creates the series
  // if it does not exist, also for the total 0. Ignores a total that is smaller than the present
  // value, or not finite. If series_max is exceeded, drops the total instead of raising "other".
  virtual void RaiseTo(const LabelValues& labels, double total) = 0;
  // Removes every series whose labels include `match` ({"namespace", "x"}, ...).
  virtual void Remove(const std::map<std::string, std::string>& match) = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(const LabelValues& labels, double value) = 0;
  virtual void Add(const LabelValues& labels, double amount) = 0;
  virtual void Remove(const std::map<std::string, std::string>& match) = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(const LabelValues& labels, double value) = 0;
  virtual void Remove(const std::map<std::string, std::string>& match) = 0;
};

// Returns buckets from 5 ms to 30 min, for holds, compiles, fetches and starts.
std::vector<double> SecondsBuckets();
// Returns buckets from 64 KiB to 16 GiB, each four times the one before.
std::vector<double> BytesBuckets();

// The metrics of a program, served at /metrics. Owns them. Thread-safe. Created once, in main.
class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  virtual ~Registry() = default;

  virtual Counter& NewCounter(const MetricSpec& spec) = 0;
  virtual Gauge& NewGauge(const MetricSpec& spec) = 0;
  virtual Histogram& NewHistogram(const MetricSpec& spec, std::vector<double> buckets) = 0;

  // Returns OK, or INVALID_ARGUMENT for the first metric whose spec breaks a rule of MetricSpec.
  // Metrics that break a rule are not served. Check once at start-up.
  virtual absl::Status status() const = 0;
  // Returns all metrics in the text exposition format 0.0.4.
  virtual std::string Serialize() const = 0;
};

inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

std::unique_ptr<Registry> MakeRegistry();

}  // namespace cachewarm::metrics
