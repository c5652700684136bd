// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/name_list.h"

#include "lib/base/status.h"
#include "lib/bundle/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::bundle {
namespace {

constexpr size_t kPageBytesMax = 16U << 20U;
constexpr size_t kPageNamesMax = 100'000;

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseNameList(std::string_view text,
                                                       std::string_view member) {
  CW_ASSIGN_OR_RETURN(const codec::Json json,
                      codec::ParseJson(text, {.bytes_max = kPageBytesMax,
                                              .values_max = kManifestLimits.values_max}));
  std::vector<std::string> names;
  codec::Reader reader(json, "");
  reader.Read(member, names, kPageNamesMax);
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "list of names"));
  return names;
}

}  // namespace cachewarm::bundle
