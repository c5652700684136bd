// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Parts of the page. Every text is plain and gets escaped, except parameters called `html`.
namespace cachewarm::cli::report {

inline constexpr size_t kTableRowsMax = 100;
inline constexpr size_t kCellColumns = 300;

struct Column {
  std::string_view name;
  bool is_number = false;  // aligned at the right
};

struct Table {
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  size_t omitted = 0;     // rows that the caller left out
  std::string_view noun;  // of a row, in the sentence about rows that were left out
};
std::string Render(const Table& table);

// Returns a part that the reader opens.
std::string Details(std::string_view summary, std::string_view html);

std::string Paragraph(std::string_view text);

struct Section {
  std::string_view id;
  std::string_view title;
  std::string lead;  // the main statement
  std::string html;
};
std::string Render(const Section& section);

// A key figure.
struct Tile {
  std::string value;
  std::string label;
  std::string note;  // small print; may be empty
};
std::string Render(const std::vector<Tile>& tiles);

// Returns at most `first_max` items from the start of the list and `last_max` from its end, in
// their order, and the number of items that were left out.
template <typename T>
std::pair<std::vector<T>, size_t> EndsOf(const std::vector<T>& items, size_t first_max,
                                         size_t last_max) {
  if (items.size() <= first_max + last_max) {
    return {items, 0};
  }
  std::vector<T> ends(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(first_max));
  ends.insert(ends.end(), items.end() - static_cast<std::ptrdiff_t>(last_max), items.end());
  return {std::move(ends), items.size() - first_max - last_max};
}

}  // namespace cachewarm::cli::report
