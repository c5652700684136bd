// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/signature/signature.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/signature/envelope.h"

namespace cachewarm::bundle {
namespace {

// A signature as read from the store.
struct AttachedSignature {
  std::string manifest_text;
  Artifact artifact;
  std::string bundle_text;
};

// True if the error is caused by the content of the referrer and not by the store.
bool IsCausedByReferrer(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status) || absl::IsNotFound(status) ||
         absl::IsResourceExhausted(status);
}

absl::StatusOr<AttachedSignature> ReadAttached(const RepositoryRef& ref, const Descriptor& referrer,
                                               const Digest& digest, std::stop_token stop) {
  AttachedSignature attached;
  CW_ASSIGN_OR_RETURN(attached.manifest_text,
                      ref.store.ReadManifest(ref.repository, referrer.digest, stop));
  CW_ASSIGN_OR_RETURN(attached.artifact, ParseArtifact(attached.manifest_text));
  const Artifact& artifact = attached.artifact;
  if (artifact.type != kSigstoreType || artifact.subject.digest != digest ||
      artifact.layers.size() != 1 || artifact.layers[0].media_type != kSigstoreType) {
    return absl::InvalidArgumentError("the attached artifact is not a signature of this bundle");
  }
  CW_ASSIGN_OR_RETURN(
      attached.bundle_text,
      ReadSmallBlob(ref.store, ref.repository, artifact.layers[0], kSigstoreBytesMax, stop));
  return attached;
}

absl::StatusOr<std::vector<Descriptor>> FindSignatures(const RepositoryRef& ref,
                                                       const Digest& digest, std::stop_token stop) {
  return ref.store.Referrers(ref.repository, digest, std::string(kSigstoreType), std::move(stop));
}

absl::Status CheckOne(const std::string& bundle_text, const Digest& digest,
                      std::span<const PublicKey> keys) {
  CW_ASSIGN_OR_RETURN(const Envelope envelope, ParseSigstoreBundle(bundle_text));
  const std::string message = SignedBytes(envelope);
  // Try every key instead of the one that the key hint names: the hint is not signed.
  const bool good = std::any_of(keys.begin(), keys.end(), [&](const PublicKey& key) {
    return key.HasSigned(message, envelope.signature);
  });
  if (!good) {
    return absl::InvalidArgumentError(
        "the signature was made with another key or changed afterwards");
  }
  return CheckStatement(envelope, digest);
}

std::string Problem(const Digest& digest, size_t signatures, const absl::Status& last) {
  if (signatures == 0) {
    return fmt::format(
        "bundle {} has no signature; sign the bundle with cachewarm sign or cosign sign --key",
        digest.Short());
  }
  return fmt::format(
      "bundle {} is not signed by the expected key (signatures: {}, checked: {}; "
      "fault of the last checked one: {}); sign the bundle with cachewarm sign or cosign sign "
      "--key",
      digest.Short(), signatures, std::min(signatures, kSignaturesMax), Message(last));
}

absl::Status CopyOne(const RepositoryRef& from, const RepositoryRef& to,
                     const AttachedSignature& attached, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const std::string config,
                      ReadSmallBlob(from.store, from.repository, attached.artifact.config,
                                    kSigstoreBytesMax, stop));
  CW_RETURN_IF_ERROR(WriteSmallBlob(to.store, to.repository, config, stop).status());
  CW_RETURN_IF_ERROR(WriteSmallBlob(to.store, to.repository, attached.bundle_text, stop).status());
  return to.store.WriteReferrer(to.repository, attached.manifest_text, stop).status();
}

// Writes the blobs of a signature and returns its manifest, still without the subject.
absl::StatusOr<Artifact> WriteParts(const RepositoryRef& ref, const std::string& bundle_text,
                                    std::stop_token stop) {
  Artifact artifact{
      .type = std::string(kSigstoreType),
      .annotations = {{"dev.sigstore.bundle.content", "dsse-envelope"},
                      {"dev.sigstore.bundle.predicateType", std::string(kSignPredicate)}}};
  CW_ASSIGN_OR_RETURN(artifact.config,
                      WriteSmallBlob(ref.store, ref.repository, kEmptyConfig, stop));
  CW_ASSIGN_OR_RETURN(Descriptor layer,
                      WriteSmallBlob(ref.store, ref.repository, bundle_text, stop));
  artifact.config.media_type = std::string(kEmptyType);
  layer.media_type = std::string(kSigstoreType);
  artifact.layers.push_back(std::move(layer));
  return artifact;
}

absl::StatusOr<std::string> SignedBundle(const Digest& digest, const PrivateKey& key) {
  CW_ASSIGN_OR_RETURN(Envelope envelope, StatementAbout(digest));
  CW_ASSIGN_OR_RETURN(envelope.signature, key.Sign(SignedBytes(envelope)));
  envelope.key_hint = key.public_key().hint();
  return WriteSigstoreBundle(envelope);
}

}  // namespace

absl::StatusOr<SignatureCheck> CheckSignature(const RepositoryRef& ref, const Digest& digest,
                                              std::span<const PublicKey> keys,
                                              std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const std::vector<Descriptor> found, FindSignatures(ref, digest, stop));
  absl::Status last;
  for (size_t i = 0; i < std::min(found.size(), kSignaturesMax); ++i) {
    const auto attached = ReadAttached(ref, found[i], digest, stop);
    if (!attached.ok() && !IsCausedByReferrer(attached.status())) {
      return attached.status();
    }
    last = attached.ok() ? CheckOne(attached->bundle_text, digest, keys) : attached.status();
    if (last.ok()) {
      return SignatureCheck{.good = true};
    }
  }
  return SignatureCheck{.problem = Problem(digest, found.size(), last)};
}

absl::StatusOr<bool> Sign(const RepositoryRef& ref, const Digest& digest, const PrivateKey& key,
                          std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const std::string manifest,
                      ref.store.ReadManifest(ref.repository, digest, stop));
  CW_RETURN_IF_ERROR(ParseManifest(manifest).status());
  CW_ASSIGN_OR_RETURN(const SignatureCheck before,
                      CheckSignature(ref, digest, {&key.public_key(), 1}, stop));
  if (before.good) {
    return false;
  }
  CW_ASSIGN_OR_RETURN(const std::string text, SignedBundle(digest, key));
  CW_ASSIGN_OR_RETURN(Artifact artifact, WriteParts(ref, text, stop));
  artifact.subject = {.media_type = std::string(kManifestType),
                      .digest = digest,
                      .bytes = static_cast<int64_t>(manifest.size())};
  CW_ASSIGN_OR_RETURN(const std::string referrer, WriteArtifact(artifact));
  CW_RETURN_IF_ERROR(ref.store.WriteReferrer(ref.repository, referrer, stop).status());
  return true;
}

absl::StatusOr<int> CopySignatures(const RepositoryRef& from, const RepositoryRef& to,
                                   const Digest& digest, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const std::vector<Descriptor> found, FindSignatures(from, digest, stop));
  if (found.empty()) {
    return 0;
  }
  CW_ASSIGN_OR_RETURN(const std::vector<Descriptor> there, FindSignatures(to, digest, stop));
  int copied = 0;
  for (size_t i = 0; i < std::min(found.size(), kSignaturesMax); ++i) {
    const auto is_it = [&](const Descriptor& each) { return each.digest == found[i].digest; };
    if (std::any_of(there.begin(), there.end(), is_it)) {
      continue;
    }
    const auto attached = ReadAttached(from, found[i], digest, stop);
    if (!attached.ok() && IsCausedByReferrer(attached.status())) {
      continue;
    }
    CW_RETURN_IF_ERROR(attached.status());
    CW_RETURN_IF_ERROR(CopyOne(from, to, *attached, stop));
    ++copied;
  }
  return copied;
}

}  // namespace cachewarm::bundle
