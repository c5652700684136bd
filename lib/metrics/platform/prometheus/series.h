// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "lib/metrics/metrics.h"

// For use inside lib/metrics/platform/prometheus only.
namespace cachewarm::metrics {

// The series of one metric. Finds or creates one series per combination of label values, at most
// series_max of the spec. `Metric` is prometheus::Counter, Gauge or Histogram. Thread-safe.
template <typename Metric>
class Series {
 public:
  using Make = std::function<Metric&(prometheus::Family<Metric>&, const prometheus::Labels&)>;

  // For each value that goes to the series "other", calls `overflow` after releasing the lock.
  // `overflow` may be empty.
  Series(MetricSpec spec, Make make, std::function<void()> overflow)
      : spec_(std::move(spec)),
        make_(std::move(make)),
        overflow_(std::move(overflow)),
        family_(spec_.name, spec_.help, {}) {
    if (spec_.labels.empty()) {
      Use({}, [](Metric&) {});  // creates the only series, so that 0 is exported from the start
    }
  }

  // Calls `use` with the series of the label values `values`; the series is not removed during the
  // call.
  template <typename Function>
  void Use(const LabelValues& values, Function use) {
    bool overflowed = false;
    {
      const std::lock_guard lock(mutex_);
      overflowed = Overflows(values);
      use(*Find(overflowed ? LabelValues(spec_.labels.size(), "other") : values));
    }
    ReportOverflow(overflowed);
  }

  // As Use(), but does not call `use` for a value that would go to the series "other".
  template <typename Function>
  void UseWithinLimit(const LabelValues& values, Function use) {
    bool overflowed = false;
    {
      const std::lock_guard lock(mutex_);
      overflowed = Overflows(values);
      if (!overflowed) {
        use(*Find(values));
      }
    }
    ReportOverflow(overflowed);
  }

  void Remove(const std::map<std::string, std::string>& match) {
    const std::lock_guard lock(mutex_);
    std::erase_if(series_, [&](const auto& entry) {
      if (!Matches(entry.first, match)) {
        return false;
      }
      family_.Remove(entry.second);
      return true;
    });
  }

  // Returns all series, sorted by label values.
  std::vector<prometheus::MetricFamily> Collect() const {
    std::vector<prometheus::MetricFamily> families = family_.Collect();
    for (prometheus::MetricFamily& family : families) {
      std::sort(family.metric.begin(), family.metric.end(),
                [](const prometheus::ClientMetric& a, const prometheus::ClientMetric& b) {
                  return a.label < b.label;
                });
    }
    return families;
  }

 private:
  bool Overflows(const LabelValues& values) const {
    return values.size() != spec_.labels.size() ||
           (series_.size() >= spec_.series_max && !series_.contains(values));
  }

  void ReportOverflow(bool overflowed) const {
    if (overflowed && overflow_) {
      overflow_();
    }
  }

  Metric* Find(const LabelValues& values) {
    const auto [at, added] = series_.try_emplace(values, nullptr);
    if (added) {
      prometheus::Labels labels;
      for (size_t i = 0; i < values.size(); ++i) {
        labels.emplace(spec_.labels[i], values[i]);
      }
      at->second = &make_(family_, labels);
    }
    return at->second;
  }

  bool Matches(const LabelValues& values, const std::map<std::string, std::string>& match) const {
    return std::all_of(match.begin(), match.end(), [&](const auto& wanted) {
      const auto label = std::find(spec_.labels.begin(), spec_.labels.end(), wanted.first);
      return label != spec_.labels.end() &&
             values[static_cast<size_t>(label - spec_.labels.begin())] == wanted.second;
    });
  }

  const MetricSpec spec_;
  const Make make_;
  const std::function<void()> overflow_;
  std::mutex mutex_;
  prometheus::Family<Metric> family_;
  std::map<LabelValues, Metric*> series_;
};

}  // namespace cachewarm::metrics
