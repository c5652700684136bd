// SPDX-License-Identifier: Apache-2.0
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fmt/format.h"
#include "lib/metrics/platform/prometheus/series.h"
#include "lib/metrics/rules.h"

namespace cachewarm::metrics {
namespace {

using Match = std::map<std::string, std::string>;

template <typename Metric>
Metric& MakePlain(prometheus::Family<Metric>& family, const prometheus::Labels& labels) {
  return family.Add(labels);
}

class PrometheusCounter final : public Counter {
 public:
  PrometheusCounter(const MetricSpec& spec, std::function<void()> overflow)
      : series_(spec, MakePlain<prometheus::Counter>, std::move(overflow)) {}

  void Add(const LabelValues& labels, double amount) override {
    if (std::isfinite(amount) && amount >= 0) {
      series_.Use(labels, [amount](prometheus::Counter& counter) { counter.Increment(amount); });
    }
  }
  void RaiseTo(const LabelValues& labels, double total) override {
    if (std::isfinite(total)) {
      series_.UseWithinLimit(labels, [total](prometheus::Counter& counter) {
        counter.Increment(std::max(0.0, total - counter.Value()));
      });
    }
  }
  void Remove(const Match& match) override { series_.Remove(match); }
  std::vector<prometheus::MetricFamily> Collect() const { return series_.Collect(); }

 private:
  Series<prometheus::Counter> series_;
};

class PrometheusGauge final : public Gauge {
 public:
  PrometheusGauge(const MetricSpec& spec, std::function<void()> overflow)
      : series_(spec, MakePlain<prometheus::Gauge>, std::move(overflow)) {}

  void Set(const LabelValues& labels, double value) override {
    series_.Use(labels, [value](prometheus::Gauge& gauge) { gauge.Set(value); });
  }
  void Add(const LabelValues& labels, double amount) override {
    series_.Use(labels, [amount](prometheus::Gauge& gauge) { gauge.Increment(amount); });
  }
  void Remove(const Match& match) override { series_.Remove(match); }
  std::vector<prometheus::MetricFamily> Collect() const { return series_.Collect(); }

 private:
  Series<prometheus::Gauge> series_;
};

class PrometheusHistogram final : public Histogram {
 public:
  PrometheusHistogram(const MetricSpec& spec, std::vector<double> buckets,
                      std::function<void()> overflow)
      : series_(
            spec,
            [buckets = std::move(buckets)](prometheus::Family<prometheus::Histogram>& family,
                                           const prometheus::Labels& labels)
                -> prometheus::Histogram& { return family.Add(labels, buckets); },
            std::move(overflow)) {}

  void Observe(const LabelValues& labels, double value) override {
    if (std::isfinite(value)) {
      series_.Use(labels, [value](prometheus::Histogram& histogram) { histogram.Observe(value); });
    }
  }
  void Remove(const Match& match) override { series_.Remove(match); }
  std::vector<prometheus::MetricFamily> Collect() const { return series_.Collect(); }

 private:
  Series<prometheus::Histogram> series_;
};

class PrometheusRegistry final : public Registry {
 public:
  PrometheusRegistry()
      : overflow_({.name = "cachewarm_metrics_overflow_total",
                   .help = "Observations counted under the labels \"other\", because their metric "
                           "had reached its limit of series.",
                   .labels = {"metric"}},
                  nullptr) {
    names_.insert("cachewarm_metrics_overflow_total");
  }

  Counter& NewCounter(const MetricSpec& spec) override {
    return Keep(
        spec, CheckSpec(MetricType::kCounter, spec),
        [](const MetricSpec& s, auto note) {
          return std::make_unique<PrometheusCounter>(s, std::move(note));
        },
        counters_);
  }

  Gauge& NewGauge(const MetricSpec& spec) override {
    return Keep(
        spec, CheckSpec(MetricType::kGauge, spec),
        [](const MetricSpec& s, auto note) {
          return std::make_unique<PrometheusGauge>(s, std::move(note));
        },
        gauges_);
  }

  Histogram& NewHistogram(const MetricSpec& spec, std::vector<double> buckets) override {
    absl::Status check = CheckSpec(MetricType::kHistogram, spec);
    check.Update(CheckBuckets(spec, buckets));
    if (!check.ok()) {
      buckets = {1};
    }
    return Keep(
        spec, check,
        [&buckets](const MetricSpec& s, auto note) {
          return std::make_unique<PrometheusHistogram>(s, buckets, std::move(note));
        },
        histograms_);
  }

  absl::Status status() const override {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  std::string Serialize() const override {
    std::map<std::string, prometheus::MetricFamily> sorted;
    const auto collect = [&sorted](const auto& metric) {
      for (prometheus::MetricFamily& family : metric.Collect()) {
        sorted.emplace(family.name, std::move(family));
      }
    };
    {
      const std::lock_guard lock(mutex_);
      for (const auto& metric : counters_) {
        collect(*metric);
      }
      for (const auto& metric : gauges_) {
        collect(*metric);
      }
      for (const auto& metric : histograms_) {
        collect(*metric);
      }
      collect(overflow_);
    }
    std::vector<prometheus::MetricFamily> families;
    families.reserve(sorted.size());
    for (auto& [name, family] : sorted) {
      families.push_back(std::move(family));
    }
    return prometheus::TextSerializer().Serialize(families);
  }

 private:
  // Stores the metric that `make` creates and returns it. A metric with an invalid spec is stored
  // too, because the caller needs a reference, but it is not served.
  template <typename Metric, typename Make>
  Metric& Keep(const MetricSpec& spec, absl::Status check, Make make,
               std::vector<std::unique_ptr<Metric>>& kept) {
    const std::lock_guard lock(mutex_);
    if (check.ok() && !names_.insert(spec.name).second) {
      check = absl::InvalidArgumentError(fmt::format("metric {}: declared twice", spec.name));
    }
    status_.Update(check);
    if (!check.ok()) {
      const MetricSpec placeholder{
          .name = "cachewarm_refused", .help = "refused", .labels = {}, .series_max = 1};
      auto metric = make(placeholder, [] {});
      Metric& reference = *metric;
      refused_.emplace_back(std::move(metric));
      return reference;
    }
    kept.push_back(make(spec, [this, name = spec.name] { overflow_.Add({name}, 1); }));
    return *kept.back();
  }

  mutable std::mutex mutex_;
  absl::Status status_;
  std::set<std::string> names_;
  PrometheusCounter overflow_;
  std::vector<std::unique_ptr<PrometheusCounter>> counters_;
  std::vector<std::unique_ptr<PrometheusGauge>> gauges_;
  std::vector<std::unique_ptr<PrometheusHistogram>> histograms_;
  std::vector<std::shared_ptr<void>> refused_;
};

}  // namespace

std::unique_ptr<Registry> MakeRegistry() {
  return std::make_unique<PrometheusRegistry>();
}

}  // namespace cachewarm::metrics
