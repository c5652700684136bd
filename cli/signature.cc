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

}  // namespace cachewarm::cli
