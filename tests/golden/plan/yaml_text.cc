// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/plan/yaml_text.h"

#include <algorithm>
#include <cctype>

namespace cachewarm::golden {

using codec::Json;

namespace {

bool IsPlain(const std::string& text) {
  const auto is_safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ||
           c == '/';
  };
  const bool letter = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
  return letter && std::all_of(text.begin(), text.end(), is_safe) && text != "true" &&
         text != "false" && text != "null" && text != "Off" && text != "On";
}

std::string Scalar(const Json& value) {
  const bool plain = value.is_string() && IsPlain(value.get<std::string>());
  return plain ? value.get<std::string>() : value.dump();
}

void Write(const Json& value, size_t indent, std::string& out);

// After "key:" or "-": on the same line if short, else below.
void WriteValue(const Json& value, size_t indent, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    out += " " + Scalar(value) + "\n";
    return;
  }
  out += "\n";
  Write(value, indent, out);
}

void Write(const Json& value, size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      out += pad + (IsPlain(key) ? key : Json(key).dump()) + ":";
      WriteValue(member, indent + 2, out);
    }
    return;
  }
  for (const Json& item : value) {
    if (!item.is_object() || item.empty()) {
      out += pad + "-";
      WriteValue(item, indent + 2, out);
      continue;
    }
    std::string block;
    Write(item, indent + 2, block);
    block.replace(indent, 1, "-");
    out += block;
  }
}

}  // namespace

std::string YamlText(const Json& value) {
  std::string out;
  Write(value, 0, out);
  return out;
}

}  // namespace cachewarm::golden
