// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fmt/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::cli {
namespace {

constexpr std::array<std::pair<std::string_view, OutputFormat>, 4> kFormats = {
    {{"json", OutputFormat::kJson},
     {"yaml", OutputFormat::kYaml},
     {"wide", OutputFormat::kWide},
     {"name", OutputFormat::kName}}};
constexpr std::string_view kColumnGap = "   ";

absl::Status CheckFormat(const std::string& value, size_t allowed, std::string_view names) {
  const auto* end = kFormats.begin() + allowed;
  const bool known =
      std::any_of(kFormats.begin(), end, [&](const auto& format) { return format.first == value; });
  return known ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     fmt::format("expected {}, not \"{}\"", names, value.substr(0, 64)));
}

// Returns the number of characters in UTF-8 text.
size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

absl::Status CheckListFormat(const std::string& value) {
  return CheckFormat(value, kFormats.size(), "json, yaml, wide or name");
}

absl::Status CheckDocumentFormat(const std::string& value) {
  return CheckFormat(value, 2, "json or yaml");
}

OutputFormat OutputFormatOf(const Arguments& arguments) {
  const std::string value = arguments.Value("output");
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const auto& format) { return format.first == value; });
  return found == kFormats.end() ? OutputFormat::kText : found->second;
}

void PrintDocument(Console& console, OutputFormat format, const codec::Json& value) {
  if (format == OutputFormat::kYaml) {
    console.out << codec::DumpYaml(value);
  } else {
    PrintJson(console, value);
  }
}

bool UsesColour(const Console& console) {
  return console.out_is_terminal && console.Environment("NO_COLOR").empty() &&
         console.Environment("TERM") != "dumb";
}

std::string Painted(const Console& console, Colour colour, std::string_view text) {
  static constexpr std::array<std::string_view, 4> kCodes = {"", "31", "33", "32"};
  if (colour == Colour::kNone || !UsesColour(console)) {
    return std::string(text);
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes.at(static_cast<size_t>(colour)), text);
}

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7F; }, ' ');
  return text;
}

std::vector<size_t> WidthsOf(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], Characters(row[i].text));
    }
  }
  return widths;
}

std::string FormatRow(const Console& console, const Row& row, const std::vector<size_t>& widths) {
  std::string line;
  size_t missing = 0;  // blanks between the end of the last text and the next column
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string text = OneLine(row[i].text);
    if (!text.empty()) {
      line += std::string(missing, ' ') + Painted(console, row[i].colour, text);
      missing = 0;
    }
    const size_t width = i < widths.size() ? widths[i] : 0;
    const size_t used = Characters(text);
    missing += (width > used ? width - used : 0) + kColumnGap.size();
  }
  return line + "\n";
}

std::string FormatTable(const Console& console, const std::vector<Row>& rows) {
  const std::vector<size_t> widths = WidthsOf(rows);
  std::string table;
  for (const Row& row : rows) {
    table += FormatRow(console, row, widths);
  }
  return table;
}

}  // namespace cachewarm::cli
