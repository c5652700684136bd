// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

// Returns true if every reader takes the plain text for a string.
bool IsPlainText(const std::string& text) {
  // The booleans and null of YAML 1.1, in lower case.
  static constexpr std::array<std::string_view, 9> kWords = {"true", "false", "null", "yes", "no",
                                                             "on",   "off",   "y",    "n"};
  const auto is_safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ||
           c == '/';
  };
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
         std::all_of(text.begin(), text.end(), is_safe) &&
         std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

std::string YamlScalar(const Json& value) {
  const bool plain = value.is_string() && IsPlainText(value.get<std::string>());
  return plain ? value.get<std::string>() : DumpJson(value);
}

void WriteYaml(const Json& value, size_t indent, std::string& out);

// Writes the value after "key:" or "-": a scalar on the same line, members and items below.
void WriteYamlValue(const Json& value, size_t indent, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    out += " " + YamlScalar(value) + "\n";
    return;
  }
  out += "\n";
  WriteYaml(value, indent, out);
}

void WriteYaml(const Json& value, size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      out += pad + YamlScalar(key) + ":";
      WriteYamlValue(member, indent + 2, out);
    }
    return;
  }
  for (const Json& item : value) {
    if (!item.is_object() || item.empty()) {
      out += pad + "-";
      WriteYamlValue(item, indent + 2, out);
      continue;
    }
    std::string block;
    WriteYaml(item, indent + 2, block);
    block.replace(indent, 1, "-");
    out += block;
  }
}

}  // namespace

std::string DumpYaml(const Json& value) {
  if (!value.is_structured() || value.empty()) {
    return YamlScalar(value) + "\n";
  }
  std::string out;
  WriteYaml(value, 0, out);
  return out;
}

}  // namespace cachewarm::codec
