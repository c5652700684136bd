// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cachewarm::http {

// Header fields in the order of insertion. Names compare case-insensitively (RFC 9110 §5.1) and may
// repeat. A value type.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

  void Add(std::string name, std::string value);
  // Replaces all fields of that name.
  void Set(std::string name, std::string value);
  // Returns the value of the first field with that name, or nullopt.
  std::optional<std::string> Find(std::string_view name) const;

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  size_t size() const { return fields_.size(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace cachewarm::http
