// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace cachewarm::api {

// The labels or annotations of an object: texts by name, in the order of names, as in a map. Never
// changed, only replaced. One string holds them all: the operator keeps 5,000 nodes, and 22 labels
// are 3.3 KB as a map, 0.8 KB so. A look steps over the entries before the one that it finds.
class Labels {
 public:
  using Texts = std::map<std::string, std::string>;
  using value_type = std::pair<std::string_view, std::string_view>;

  // Its entry is valid until it moves on, the texts in it as long as the Labels.
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
    explicit Iterator(std::string_view rest) : at_(rest.data()), rest_(rest) { Read(); }
    void Read();

    const char* at_;  // where the entry begins
    value_type entry_;
    std::string_view rest_;  // behind the entry
  };

  Labels() = default;
  // Implicit, so that they are written like the map that they stand for.
  Labels(const Texts& texts);                              // NOLINT(*-explicit-*)
  Labels(std::initializer_list<Texts::value_type> texts);  // the first of equal names counts

  Iterator begin() const { return Iterator(text_); }
  Iterator end() const { return Iterator(std::string_view(text_).substr(text_.size())); }
  Iterator find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  bool empty() const { return text_.empty(); }
  Texts AsMap() const;

  friend bool operator==(const Labels&, const Labels&) = default;

 private:
  std::string text_;  // length and bytes of a name, then of its value, and so on
};

// `labels` has every one of `wanted`, as matchLabels and nodeSelector mean it.
bool HasLabels(const Labels& labels, const Labels::Texts& wanted);

}  // namespace cachewarm::api
