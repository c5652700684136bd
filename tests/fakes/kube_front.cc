// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kube_front.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/watch_event.h"

namespace cachewarm::fakes {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string HeaderOf(std::string head, std::string_view name) {
  std::string lower = head;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const size_t at = lower.find(fmt::format("\r\n{}:", name));
  if (at == std::string::npos) {
    return "";
  }
  const size_t begin = head.find_first_not_of(' ', at + name.size() + 3);
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

kube::Request Parse(const std::string& text) {
  const size_t head_end = text.find(kHeadEnd);
  const size_t first = text.find(' ');
  const size_t second = text.find(' ', first + 1);
  const std::string target = text.substr(first + 1, second - first - 1);
  const size_t question = std::min(target.find('?'), target.size());
  kube::Request request{.verb = text.substr(0, first),
                        .method = text.substr(0, first),
                        .path = target.substr(0, question),
                        .query = target.substr(std::min(question + 1, target.size())),
                        .content_type = HeaderOf(text.substr(0, head_end + 2), "content-type"),
                        .body = text.substr(head_end + kHeadEnd.size())};
  return request;
}

std::string AnswerOf(const absl::StatusOr<codec::Json>& answer) {
  if (answer.ok()) {
    return RawResponse(200, answer->dump(), "Content-Type: application/json\r\n");
  }
  const int code = kube::HttpCodeOf(answer.status()) == 0 ? 500 : kube::HttpCodeOf(answer.status());
  const codec::Json status = {{"kind", "Status"},
                              {"code", code},
                              {"reason", kube::ReasonOf(answer.status())},
                              {"message", Message(answer.status())}};
  return RawResponse(code, status.dump(), "Content-Type: application/json\r\n");
}

std::string_view TypeName(kube::WatchEventType type) {
  switch (type) {
    case kube::WatchEventType::kAdded:
      return "ADDED";
    case kube::WatchEventType::kModified:
      return "MODIFIED";
    case kube::WatchEventType::kDeleted:
      return "DELETED";
    default:
      return "BOOKMARK";
  }
}

}  // namespace

KubeFront::KubeFront(FakeApiServer& server)
    : server_(server), raw_(std::make_unique<RawServer>([this](RawConnection& connection, int) {
        Serve(connection);
      })) {}

KubeFront::~KubeFront() {
  stop_.request_stop();
  raw_.reset();
}

std::string KubeFront::Kubeconfig() const {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
      "clusters: [{{name: c, cluster: {{server: \"http://127.0.0.1:{}\"}}}}]\n"
      "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
      "users: [{{name: u, user: {{token: t}}}}]\n",
      raw_->port());
}

void KubeFront::Serve(RawConnection& connection) {
  for (std::string text = connection.ReadRequest(); !text.empty();
       text = connection.ReadRequest()) {
    const kube::Request request = Parse(text);
    if (request.query.find("watch=true") != std::string::npos ||
        request.query.find("watch=1") != std::string::npos) {
      return Watch(connection, request);
    }
    connection.Write(AnswerOf(server_.Do(request, stop_.get_token())));
  }
}

void KubeFront::Watch(RawConnection& connection, const kube::Request& request) {
  connection.Write(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  const absl::Status status = server_.Watch(
      request,
      [&](const kube::WatchEvent& event) {
        const codec::Json line = {{"type", TypeName(event.type)}, {"object", *event.object}};
        connection.Write(RawChunk(line.dump() + "\n"));
        return absl::OkStatus();
      },
      stop_.get_token());
  if (absl::IsOutOfRange(status)) {
    const codec::Json error = {
        {"type", "ERROR"},
        {"object", {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}, {"message", "old"}}}};
    connection.Write(RawChunk(error.dump() + "\n"));
  }
  connection.Write("0\r\n\r\n");
}

}  // namespace cachewarm::fakes
