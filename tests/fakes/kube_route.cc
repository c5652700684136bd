// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kube_route.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "fmt/format.h"

namespace cachewarm::fakes {
namespace {

std::string Decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16).ec == std::errc()) {
      decoded += static_cast<char>(code);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    if (end > 0) {
      pieces.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}

const kube::Resource* Find(const std::string& api_version, const std::string& plural) {
  for (const kube::Resource& resource : kube::KnownResources()) {
    if (resource.plural == plural && resource.ApiVersion() == api_version) {
      return &resource;
    }
  }
  return nullptr;
}

}  // namespace

std::optional<KubeRoute> RouteOf(const kube::Request& request) {
  std::vector<std::string> part = Split(request.path, '/');
  const bool is_core = !part.empty() && part[0] == "api";
  const size_t used = is_core ? 2 : 3;
  if (part.size() <= used || (!is_core && part[0] != "apis")) {
    return std::nullopt;
  }
  const std::string api_version = is_core ? part[1] : fmt::format("{}/{}", part[1], part[2]);
  part.erase(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(used));
  KubeRoute route;
  // "namespaces/x/pods" is in a namespace; "namespaces/x" and "namespaces/x/status" name one.
  if (part[0] == "namespaces" && part.size() >= 3 && part[2] != "status") {
    route.ns = Decode(part[1]);
    part.erase(part.begin(), part.begin() + 2);
  }
  route.resource = Find(api_version, part[0]);
  if (route.resource == nullptr || part.size() > 3) {
    return std::nullopt;
  }
  route.name = part.size() > 1 ? Decode(part[1]) : "";
  route.subresource = part.size() > 2 ? part[2] : "";
  for (const std::string& pair : Split(request.query, '&')) {
    const size_t equals = std::min(pair.find('='), pair.size());
    route.query[pair.substr(0, equals)] =
        Decode(std::string_view(pair).substr(std::min(equals + 1, pair.size())));
  }
  return route;
}

}  // namespace cachewarm::fakes
