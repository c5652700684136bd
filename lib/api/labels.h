// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace cachewarm::api {

// The labels or annotations of an object: an immutable map, sorted by name. Stored as one string of
// names and one of values to save memory (the operator caches 5,000 nodes): 22 labels take 3.3 KB
// as std::map, 0.8 KB here, 0.3 KB if several objects share the names (ShareNames()). find() is
// linear.
class Labels {
 public:
  using Texts = std::map<std::string, std::string>;
  using value_type = std::pair<std::string_view, std::string_view>;

  // The entry is valid until the iterator moves; its strings are valid as long as the Labels.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Labels::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;

    reference operator*() const { return entry_; }
    pointer operator->() const { return &entry_; }
    Iterator& operator++();
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    friend class Labels;
    Iterator(std::string_view names, std::string_view values)
        : at_(names.data()), names_(names), values_(values) {
      Read();
    }
    void Read();

    const char* at_;  // start of the name of the current entry
    value_type entry_;
    std::string_view names_;  // the names after the current entry
    std::string_view values_;
  };

  Labels() = default;
  // Implicit, so that a map can be passed.
  Labels(const Texts& texts);                              // NOLINT(*-explicit-*)
  Labels(std::initializer_list<Texts::value_type> texts);  // keeps the first of equal names

  Iterator begin() const { return {names(), values_}; }
  Iterator end() const { return {names().substr(names().size()), {}}; }
  Iterator find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  bool empty() const { return names_ == nullptr; }
  Texts AsMap() const;

  // Shares the memory of the names with `other` if both have the same names. Returns true if they
  // do.
  bool ShareNames(const Labels& other);

  friend bool operator==(const Labels& a, const Labels& b) {
    return a.names() == b.names() && a.values_ == b.values_;
  }

 private:
  std::string_view names() const { return empty() ? std::string_view() : *names_; }

  std::shared_ptr<const std::string> names_;  // length and bytes of each name; null: no entries
  std::string values_;                        // length and bytes of each value
};

// True if `labels` contains every entry of `wanted` (matchLabels, nodeSelector).
bool HasLabels(const Labels& labels, const Labels::Texts& wanted);

}  // namespace cachewarm::api
