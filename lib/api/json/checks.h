// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/codec/reader.h"

// Functions that read one member of an object and check it against the pattern in the CRD. The
// patterns are strict because accepted values may become part of a path or of an object's name.
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

// A pattern, and the message for a value that does not match it.
struct Expected {
  Pattern pattern;
  std::string_view words;
};
inline constexpr Expected kDnsLabel{IsDnsLabel, "expected a DNS label of at most 63 characters"};
inline constexpr Expected kDnsSubdomain{IsDnsSubdomain, "expected a Kubernetes object name"};
inline constexpr Expected kUid{IsUid, "expected a uid"};
inline constexpr Expected kRunAs{IsRunAs, "expected \"image\" or \"u<uid>\""};
inline constexpr Expected kKey{IsKey, "expected 64 lower-case hex digits"};
inline constexpr Expected kTreeName{IsTreeName, "expected the name of a tree below .gen"};
inline constexpr Expected kEnvName{IsEnvName, "expected the name of an environment variable"};
inline constexpr Expected kRelativePath{
    IsRelativePath, "expected a relative path of [A-Za-z0-9._-] segments other than . and .."};

// Reads a required member that must match `expected`.
void ReadChecked(codec::Reader& reader, std::string_view name, std::string& out,
                 const Expected& expected);
void ReadTime(codec::Reader& reader, std::string_view name, WallTime& out);
void ReadDigest(codec::Reader& reader, std::string_view name, Digest& out);

}  // namespace cachewarm::api::json
