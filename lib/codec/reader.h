// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::codec {

// Reads the members of one JSON object into plain variables and keeps the first error, with the
// full path of the field ("spec.gate.maxHoldSeconds: expected an integer"). An absent or null
// member leaves its variable unchanged. `object` must outlive the reader. Not thread-safe.
class Reader {
 public:
  Reader(const Json& object, std::string path);

  Reader& Read(std::string_view name, std::string& out, size_t bytes_max = 4096);
  Reader& Read(std::string_view name, bool& out);
  // Reads an integer; a value outside of [min, max] is an error.
  Reader& Read(std::string_view name, int64_t& out, int64_t min = INT64_MIN,
               int64_t max = INT64_MAX);
  Reader& Read(std::string_view name, int& out, int min, int max);
  Reader& Read(std::string_view name, double& out);
  // Read an RFC 3339 time, and a digest "sha256:...". An empty string counts as absent.
  Reader& Read(std::string_view name, WallTime& out);
  Reader& Read(std::string_view name, Digest& out);
  // Read the items of a list, and the values of a map; each has at most `bytes_max` bytes.
  Reader& Read(std::string_view name, std::vector<std::string>& out, size_t items_max = 4096,
               size_t bytes_max = SIZE_MAX);
  Reader& Read(std::string_view name, std::map<std::string, std::string>& out,
               size_t items_max = 4096, size_t bytes_max = SIZE_MAX);

  // Reads a time as an integer: milliseconds since 1970.
  Reader& ReadMilliseconds(std::string_view name, WallTime& out);

  // Object() calls `each` with a reader of the member, which must be an object. List() calls `each`
  // with a reader of every item of the member, which must be a list of objects.
  Reader& Object(std::string_view name, const std::function<void(Reader&)>& each);
  Reader& List(std::string_view name, size_t items_max, const std::function<void(Reader&)>& each);

  // Requires the object to have no members besides `names`.
  Reader& Only(std::initializer_list<std::string_view> names);
  // Requires the member to exist and not to be an empty string.
  Reader& Require(std::string_view name);
  // Records an error about member `name`.
  void Fail(std::string_view name, std::string_view problem);

  bool Has(std::string_view name) const;
  // Returns the member, or nullptr if it is absent or null.
  const Json* Member(std::string_view name) const;
  std::string PathOf(std::string_view name) const;
  // Returns OK, or INVALID_ARGUMENT with the first error.
  const absl::Status& status() const { return status_; }

 private:
  void Adopt(const Reader& child);
  // Reads a string of at most `bytes_max` bytes, which `parse` turns into the value.
  template <typename T>
  Reader& ReadParsed(std::string_view name, size_t bytes_max,
                     absl::StatusOr<T> (*parse)(std::string_view text), T& out);
  // Checks one string of a list or map, which `kind` names in the error.
  bool CheckItem(std::string_view name, const Json& item, std::string_view kind, size_t bytes_max);

  const Json& object_;
  std::string path_;
  absl::Status status_;
};

}  // namespace cachewarm::codec
