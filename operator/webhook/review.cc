// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/review.h"

#include <utility>

#include "lib/api/json/checks.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::webhook {
namespace {

using codec::Json;
using codec::Reader;

constexpr char kVersion[] = "admission.k8s.io/v1";
constexpr char kKind[] = "AdmissionReview";
constexpr size_t kUidBytesMax = 128;

void ReadExactly(Reader& reader, std::string_view name, std::string_view wanted) {
  std::string found;
  reader.Require(name).Read(name, found);
  if (reader.status().ok() && found != wanted) {
    reader.Fail(name, "expected \"" + std::string(wanted) + "\"");
  }
}

void CheckObject(Reader& reader) {
  const Json* object = reader.Member("object");
  if (object == nullptr || !object->is_object()) {
    reader.Fail("object", "expected the pod being created");
  }
}

void ReadRequest(Reader& reader, Review& out) {
  reader.Require("uid").Read("uid", out.uid, kUidBytesMax);
  ReadExactly(reader, "operation", "CREATE");
  reader.Require("resource").Object("resource", [](Reader& resource) {
    std::string group;
    resource.Read("group", group);
    if (!group.empty()) {
      resource.Fail("group", "expected the core group");
    }
    ReadExactly(resource, "version", "v1");
    ReadExactly(resource, "resource", "pods");
  });
  std::string subresource;
  reader.Read("subResource", subresource);
  if (!subresource.empty()) {
    reader.Fail("subResource", "expected none");
  }
  reader.Require("namespace").Read("namespace", out.ns);
  if (!api::json::IsDnsLabel(out.ns)) {
    reader.Fail("namespace", "expected a namespace");
  }
  CheckObject(reader);
}

}  // namespace

absl::StatusOr<Review> DecodeReview(std::string_view body) {
  CW_ASSIGN_OR_RETURN(Json json, codec::ParseJson(body, {.bytes_max = kReviewBytesMax,
                                                         .values_max = kReviewValuesMax}));
  if (!json.is_object()) {
    return absl::InvalidArgumentError("expected an AdmissionReview");
  }
  Review review;
  Reader reader(json, "");
  ReadExactly(reader, "apiVersion", kVersion);
  ReadExactly(reader, "kind", kKind);
  reader.Require("request").Object("request",
                                   [&](Reader& request) { ReadRequest(request, review); });
  CW_RETURN_IF_ERROR(reader.status());
  review.pod = std::make_shared<const Json>(std::move(json["request"]["object"]));
  return review;
}

std::string EncodeAnswer(const Review& review, const Json& changed) {
  Json response = {{"uid", review.uid}, {"allowed", true}};
  if (const Json patch = Json::diff(*review.pod, changed); !patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = codec::EncodeBase64(codec::DumpJson(patch));
  }
  return codec::DumpJson(
      {{"apiVersion", kVersion}, {"kind", kKind}, {"response", std::move(response)}});
}

}  // namespace cachewarm::webhook
