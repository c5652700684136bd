// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Limits of values. The patterns are strict because accepted values may become part of a path or of
// an object's name.
namespace cachewarm::api::json {

using Pattern = bool (*)(std::string_view);

bool IsDnsLabel(std::string_view text);      // RFC 1123 label
bool IsDnsSubdomain(std::string_view text);  // RFC 1123 subdomain
bool IsUid(std::string_view text);           // letters, digits, '-'; at most 64
bool IsRunAs(std::string_view text);         // "image" or 'u' and digits
bool IsKey(std::string_view text);           // 64 lower-case hex digits
bool IsTreeName(std::string_view text);      // lower-case letters, digits, '-'; at most 128
bool IsEnvName(std::string_view text);       // C identifier, at most 128
// Relative, at most 128 bytes, segments of [A-Za-z0-9._-] that are neither "." nor "..".
bool IsRelativePath(std::string_view text);

// Bounds of a value, as in the CRD.
struct Limit {
  size_t items = 0;  // of a list or a map
  size_t bytes = 0;  // of a string, or of each string in a list or a map
  int64_t min = 0;   // of an integer
  int64_t max = INT64_MAX;
  Pattern pattern = nullptr;    // of a string, or of each string in a list
  std::string_view words = "";  // the error about a value that does not match `pattern`
  size_t read_bytes = 0;        // bytes accepted by a reader; 0: as `bytes`
};
inline constexpr Limit kDnsLabel{
    .bytes = 63, .pattern = IsDnsLabel, .words = "expected a DNS label of at most 63 characters"};
inline constexpr Limit kDnsSubdomain{
    .bytes = 253, .pattern = IsDnsSubdomain, .words = "expected a Kubernetes object name"};
inline constexpr Limit kUid{.bytes = 64, .pattern = IsUid, .words = "expected a uid"};
inline constexpr Limit kRunAs{
    .bytes = 11, .pattern = IsRunAs, .words = "expected \"image\" or \"u<uid>\""};
inline constexpr Limit kKey{
    .bytes = 64, .pattern = IsKey, .words = "expected 64 lower-case hex digits"};
inline constexpr Limit kTreeName{
    .bytes = 128, .pattern = IsTreeName, .words = "expected the name of a tree below .gen"};
inline constexpr Limit kEnvName{
    .bytes = 128, .pattern = IsEnvName, .words = "expected the name of an environment variable"};
inline constexpr Limit kRelativePath{
    .bytes = 128,
    .pattern = IsRelativePath,
    .words = "expected a relative path of [A-Za-z0-9._-] segments other than . and .."};
}  // namespace cachewarm::api::json
