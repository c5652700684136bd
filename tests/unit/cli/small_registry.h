// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/digest.h"
#include "tests/fakes/raw_server.h"

namespace cachewarm::cli {

// The blobs and manifests of a registry, by the path behind "/v2/". Several SmallRegistries may
// serve the same content, for example one with TLS and one without. Thread-safe.
class RegistryContent {
 public:
  void Put(const std::string& path, std::string bytes) {
    const std::lock_guard lock(mutex_);
    objects_[path] = std::move(bytes);
  }
  // Returns false if there is no such object.
  bool Find(const std::string& path, std::string& bytes) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    if (found != objects_.end()) {
      bytes = found->second;
    }
    return found != objects_.end();
  }
  // Returns the tags of a repository as a JSON list.
  std::string Tags(const std::string& repository) const {
    const std::lock_guard lock(mutex_);
    const std::string prefix = repository + "/manifests/";
    std::string tags;
    for (const auto& [path, bytes] : objects_) {
      const std::string name = path.starts_with(prefix) ? path.substr(prefix.size()) : "";
      if (!name.empty() && name.find(':') == std::string::npos) {
        tags += fmt::format("{}\"{}\"", tags.empty() ? "" : ",", name);
      }
    }
    return "[" + tags + "]";
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;
};

struct SmallRegistryOptions {
  fakes::RawServerOptions server;
  std::string credentials;  // base64 of "user:password"; empty: everyone may read and write
};

// A registry on loopback with the part of the distribution API that the verbs need: manifests,
// blobs, tags, uploads in one PUT. It has no referrers API, catalog, mounts and ranges, and refuses
// deletions.
class SmallRegistry {
 public:
  explicit SmallRegistry(RegistryContent& content, SmallRegistryOptions options = {})
      : content_(content),
        options_(std::move(options)),
        server_([this](fakes::RawConnection& connection, int) { Serve(connection); },
                options_.server) {}

  std::string host() const { return fmt::format("127.0.0.1:{}", server_.port()); }
  uint16_t port() const { return server_.port(); }
  int connections() const { return server_.connections(); }
  // The first line of every request.
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void Serve(fakes::RawConnection& connection) {
    for (std::string request = connection.ReadRequest(); !request.empty();
         request = connection.ReadRequest()) {
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(request.substr(0, request.find('\r')));
      }
      connection.Write(Answer(request));
    }
  }

  std::string Answer(const std::string& request) const {
    if (request.find("Basic " + options_.credentials) == std::string::npos &&
        !options_.credentials.empty()) {
      return fakes::RawResponse(401, "", "WWW-Authenticate: Basic realm=\"small\"\r\n");
    }
    const size_t space = request.find(' ');
    const std::string method = request.substr(0, space);
    std::string path =
        request.substr(space + 1, request.find_first_of(" ?", space + 1) - space - 1);
    path.erase(0, path.find("/v2/") + 4);  // a proxy gets the whole URL
    if (method == "POST") {
      return fakes::RawResponse(202, "", fmt::format("Location: /v2/{}1\r\n", path));
    }
    if (method == "PUT") {
      return Store(path, request.substr(request.find("\r\n\r\n") + 4));
    }
    if (method == "DELETE") {
      return fakes::RawResponse(405, R"({"errors":[{"code":"UNSUPPORTED","message":"disabled"}]})");
    }
    if (path.ends_with("/tags/list")) {
      const std::string repository = path.substr(0, path.size() - sizeof("/tags/list") + 1);
      return fakes::RawResponse(200, fmt::format(R"({{"tags":{}}})", content_.Tags(repository)));
    }
    std::string bytes;
    if (!content_.Find(path, bytes)) {
      return fakes::RawResponse(404, "");
    }
    return fakes::RawResponse(200, method == "HEAD" ? "" : bytes,
                              "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n");
  }

  std::string Store(const std::string& path, const std::string& bytes) const {
    const std::string digest = DigestOf(bytes).ToString();
    if (const size_t upload = path.find("/blobs/uploads/"); upload != std::string::npos) {
      content_.Put(fmt::format("{}/blobs/{}", path.substr(0, upload), digest), bytes);
    } else {
      content_.Put(path, bytes);
      content_.Put(path.substr(0, path.rfind('/') + 1) + digest, bytes);
    }
    return fakes::RawResponse(201, "");
  }

  RegistryContent& content_;
  const SmallRegistryOptions options_;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  fakes::RawServer server_;
};

}  // namespace cachewarm::cli
