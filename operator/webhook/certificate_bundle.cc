// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/certificate_bundle.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/pki/certificates.h"

namespace cachewarm::webhook {
namespace {

constexpr char kAuthorityName[] = "cachewarm webhook";
constexpr std::chrono::hours kServing{24 * 90};
constexpr std::chrono::hours kAuthority{24 * 3650};
// The validity of a certificate begins this long before now, for API servers whose clocks are
// behind the operator's.
constexpr std::chrono::hours kBehind{1};
constexpr size_t kAuthoritiesMax = 4;

using Certificates = std::vector<pki::Certificate>;

Certificates Read(const std::string& pem) {
  return pki::ParseCertificates(pem).value_or(Certificates{});
}

bool IsValid(const pki::Certificate& certificate, WallTime now) {
  return certificate.from <= now && now < certificate.until;
}

bool IsFresh(const pki::Certificate& certificate, WallTime now) {
  return IsValid(certificate, now) &&
         certificate.until - now > (certificate.until - certificate.from) / 3;
}

std::string Join(const Certificates& certificates) {
  std::string pem;
  for (const pki::Certificate& each : certificates) {
    pem += each.pem;
  }
  return pem;
}

bool Holds(const Certificates& certificates, const pki::Certificate& wanted) {
  return std::any_of(certificates.begin(), certificates.end(),
                     [&](const pki::Certificate& each) { return each.pem == wanted.pem; });
}

pki::Validity From(WallTime now, std::chrono::hours length) {
  return {.from = now - kBehind, .until = now + length};
}

// Renews `bundle_` in steps: first the authority, then the serving certificate.
class Renewal {
 public:
  Renewal(CertificateBundle bundle, const RenewalInputs& inputs)
      : bundle_(std::move(bundle)), in_(inputs), authorities_(Read(bundle_.authorities)) {}

  absl::Status Run() {
    CW_RETURN_IF_ERROR(RenewAuthority());
    const Certificates serving = Read(bundle_.certificate);
    const bool usable = IsUsable(serving);
    const bool is_trusted = Holds(Read(in_.ca_bundle), authorities_.front());
    const bool is_signed = usable && pki::IsSignedBy(bundle_.certificate, authorities_.front().pem);
    const bool keep = usable && is_signed && IsFresh(serving.front(), in_.now);
    return keep || (usable && !is_trusted) ? absl::OkStatus() : RenewServing();
  }

  CertificateBundle Result() { return std::move(bundle_); }

 private:
  absl::Status RenewAuthority() {
    const bool readable =
        !authorities_.empty() && pki::KeyMatches(bundle_.authority_key, authorities_.front().pem);
    std::erase_if(authorities_,
                  [this](const pki::Certificate& each) { return !IsValid(each, in_.now); });
    if (!readable || authorities_.empty() || !IsFresh(authorities_.front(), in_.now) ||
        !pki::KeyMatches(bundle_.authority_key, authorities_.front().pem)) {
      CW_ASSIGN_OR_RETURN(const pki::KeyPair made,
                          pki::MakeAuthority(kAuthorityName, From(in_.now, kAuthority)));
      const Certificates fresh = Read(made.certificate);
      authorities_.insert(authorities_.begin(), fresh.begin(), fresh.end());
      bundle_.authority_key = made.key;
    }
    authorities_.resize(std::min(authorities_.size(), kAuthoritiesMax));
    bundle_.authorities = Join(authorities_);
    return absl::OkStatus();
  }

  // Returns true if the certificate can be served: it is valid now and has the right DNS name, its
  // key matches, and a trusted authority signed it.
  bool IsUsable(const Certificates& serving) const {
    return !serving.empty() && IsValid(serving.front(), in_.now) &&
           serving.front().dns_names == std::vector<std::string>{in_.dns_name} &&
           pki::KeyMatches(bundle_.key, bundle_.certificate) &&
           std::any_of(authorities_.begin(), authorities_.end(), [&](const auto& authority) {
             return pki::IsSignedBy(bundle_.certificate, authority.pem);
           });
  }

  absl::Status RenewServing() {
    CW_ASSIGN_OR_RETURN(
        pki::KeyPair made,
        pki::IssueServing({.certificate = authorities_.front().pem, .key = bundle_.authority_key},
                          {in_.dns_name}, From(in_.now, kServing)));
    bundle_.certificate = std::move(made.certificate);
    bundle_.key = std::move(made.key);
    return absl::OkStatus();
  }

  CertificateBundle bundle_;
  const RenewalInputs& in_;
  Certificates authorities_;
};

}  // namespace

absl::StatusOr<std::optional<CertificateBundle>> Renew(const CertificateBundle& bundle,
                                                       const RenewalInputs& inputs) {
  Renewal renewal(bundle, inputs);
  CW_RETURN_IF_ERROR(renewal.Run());
  CertificateBundle after = renewal.Result();
  return after == bundle ? std::nullopt : std::optional(std::move(after));
}

}  // namespace cachewarm::webhook
