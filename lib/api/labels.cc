// SPDX-License-Identifier: Apache-2.0
#include "lib/api/labels.h"

#include <algorithm>

#include "lib/codec/varint.h"

namespace cachewarm::api {
namespace {

void Append(std::string_view text, std::string& out) {
  codec::AppendNumber(text.size(), out);
  out.append(text);
}

std::string_view Shift(std::string_view& rest) {
  const size_t size = codec::ShiftNumber(rest);
  const std::string_view text = rest.substr(0, size);
  rest.remove_prefix(text.size());
  return text;
}

}  // namespace

Labels::Iterator& Labels::Iterator::operator++() {
  at_ = names_.data();
  Read();
  return *this;
}

void Labels::Iterator::Read() {
  if (!names_.empty()) {
    entry_ = {Shift(names_), Shift(values_)};
  }
}

Labels::Labels(const Texts& texts) {
  if (texts.empty()) {
    return;
  }
  std::string names;
  for (const auto& [name, value] : texts) {
    Append(name, names);
    Append(value, values_);
  }
  names.shrink_to_fit();
  values_.shrink_to_fit();
  names_ = std::make_shared<const std::string>(std::move(names));
}

Labels::Labels(std::initializer_list<Texts::value_type> texts) : Labels(Texts(texts)) {}

Labels::Iterator Labels::find(std::string_view name) const {
  Iterator at = begin();
  while (at != end() && at->first < name) {
    ++at;
  }
  return at != end() && at->first == name ? at : end();
}

bool Labels::ShareNames(const Labels& other) {
  if (names() != other.names()) {
    return false;
  }
  names_ = other.names_;
  return true;
}

Labels::Texts Labels::AsMap() const {
  Texts texts;
  for (const auto& [name, value] : *this) {
    texts.emplace_hint(texts.end(), name, value);
  }
  return texts;
}

bool HasLabels(const Labels& labels, const Labels::Texts& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
    const auto found = labels.find(each.first);
    return found != labels.end() && found->second == each.second;
  });
}

}  // namespace cachewarm::api
