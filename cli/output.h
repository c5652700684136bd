// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "lib/codec/json_fwd.h"

// The output formats of the verbs that list or get, as kubectl has them.
namespace cachewarm::cli {

// kText: for people; a table, or a description of one object. kWide: a table with more columns.
enum class OutputFormat { kText, kWide, kJson, kYaml, kName };

absl::Status CheckListFormat(const std::string& value);
absl::Status CheckDocumentFormat(const std::string& value);

// -o of verbs that list objects, and of those whose result is one document.
inline constexpr Option kListOutput{.name = "output",
                                    .value = "FORMAT",
                                    .help = "json, yaml, wide or name (default: a table)",
                                    .letter = 'o',
                                    .check = CheckListFormat};
inline constexpr Option kDocumentOutput{.name = "output",
                                        .value = "FORMAT",
                                        .help = "json or yaml (default: text)",
                                        .letter = 'o',
                                        .check = CheckDocumentFormat};

OutputFormat OutputFormatOf(const Arguments& arguments);

// Prints one JSON or YAML document, followed by a line break. `format` must be one of these two.
void PrintDocument(Console& console, OutputFormat format, const codec::Json& value);

// The colours of a terminal.
enum class Colour { kNone, kRed, kYellow, kGreen };

// Returns true if results may be coloured: standard output is a terminal, NO_COLOR is empty or not
// set (https://no-color.org), and TERM is not "dumb".
bool UsesColour(const Console& console);
// Returns `text` in a colour; unchanged if the console uses none.
std::string Painted(const Console& console, Colour colour, std::string_view text);

// Returns the text with a blank for each control character, which could control a terminal.
std::string OneLine(std::string text);

// One cell of a table.
struct Cell {
  std::string text;
  Colour colour = Colour::kNone;
};
using Row = std::vector<Cell>;

// Formats rows as a table like kubectl: columns are as wide as their longest text, three blanks lie
// between columns, and lines have no blanks at their end. Prints texts as OneLine() returns them.
std::string FormatTable(const Console& console, const std::vector<Row>& rows);
// The same with given widths of all columns but the last; a longer text moves those after it.
std::string FormatRow(const Console& console, const Row& row, const std::vector<size_t>& widths);
std::vector<size_t> WidthsOf(const std::vector<Row>& rows);

}  // namespace cachewarm::cli
