// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/headers.h"

#include <algorithm>

#include "lib/http/text/ascii.h"

namespace cachewarm::http {
namespace {

bool IsSameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

}  // namespace

void Headers::Add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::Set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const auto& field) { return IsSameName(field.first, name); });
  Add(std::move(name), std::move(value));
}

std::optional<std::string> Headers::Find(std::string_view name) const {
  for (const auto& [field, value] : fields_) {
    if (IsSameName(field, name)) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace cachewarm::http
