// SPDX-License-Identifier: Apache-2.0
#include "cli/signature.h"

#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/bundle/signature/signature.h"

namespace cachewarm::cli {

absl::Status CheckKey(const OpenedReference& source, const Digest& digest, const std::string& file,
                      std::stop_token stop) {
  if (file.empty()) {
    return absl::OkStatus();
  }
  CW_ASSIGN_OR_RETURN(const std::vector<bundle::PublicKey> keys, bundle::ReadPublicKeys(file));
  CW_ASSIGN_OR_RETURN(const bundle::SignatureCheck check,
                      bundle::CheckSignature(source.place(), digest, keys, std::move(stop)));
  return check.good ? absl::OkStatus() : absl::DataLossError(check.problem);
}

absl::StatusOr<OpenedBundle> OpenBundle(const std::string& text, const Arguments& arguments,
                                        const Console& console) {
  OpenedBundle out;
  CW_ASSIGN_OR_RETURN(out.source, OpenReference(text, arguments, console));
  CW_ASSIGN_OR_RETURN(const Digest digest, out.source.Resolve(console.stop));
  CW_RETURN_IF_ERROR(CheckKey(out.source, digest, arguments.Value("key"), console.stop));
  CW_ASSIGN_OR_RETURN(out.bundle, bundle::ReadBundle(out.source.place(), digest, console.stop));
  return out;
}

}  // namespace cachewarm::cli
