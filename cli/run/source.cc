// SPDX-License-Identifier: Apache-2.0
#include "cli/run/source.h"

#include <utility>

#include "cli/signature.h"
#include "lib/base/status.h"
#include "lib/bundle/fit.h"

namespace cachewarm::cli {

absl::StatusOr<bundle::Bundle> ReadUsableBundle(const BundleSource& source, const Digest& digest,
                                                std::stop_token stop) {
  const bundle::RepositoryRef place = source.store.place();
  CW_RETURN_IF_ERROR(CheckKey(source.store, digest, source.keys.public_key_file, stop));
  CW_ASSIGN_OR_RETURN(bundle::Bundle found, bundle::ReadBundle(place, digest, stop));
  const fingerprint::NodeFacts& facts = source.machine.facts;
  CW_RETURN_IF_ERROR(bundle::CheckFit(found, facts.gpu_type, facts.cpu_class));
  return found;
}

absl::StatusOr<bundle::Bundle> ReadUsableBundle(const BundleSource& source, std::stop_token stop) {
  const bundle::RepositoryRef place = source.store.place();
  CW_ASSIGN_OR_RETURN(const Digest digest,
                      place.store.ResolveTag(place.repository, source.tag(), stop));
  return ReadUsableBundle(source, digest, std::move(stop));
}

}  // namespace cachewarm::cli
