// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/packed.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

// Appends a number as little-endian groups of 7 bits.
void AppendNumber(uint64_t number, std::string& out) {
  while (number >= 0x80U) {
    out.push_back(static_cast<char>((number & 0x7FU) | 0x80U));
    number >>= 7U;
  }
  out.push_back(static_cast<char>(number));
}

// Removes the first number from `bytes` and returns it.
uint64_t ShiftNumber(std::string_view& bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) {
      break;
    }
  }
  return number;
}

// The first byte of each encoded value; the comments describe the bytes after it. Numbers are
// encoded by AppendNumber().
enum Tag : char {
  kNull,
  kFalse,
  kTrue,
  kNegative,  // a number n; the value is -1 - n
  kUnsigned,  // the value, as a number
  kDouble,    // 8 bytes in the byte order of the machine
  kText,      // length, bytes
  kShared,    // number of a shared part in the table
  kArray,     // length in bytes, values
  kObject,    // length in bytes, names and values alternating
};

// Parts shorter than this are stored in place, because a reference would save nothing.
constexpr size_t kSharedBytesMin = 5;
constexpr uint32_t kSharedOccurrencesMin = 3;
constexpr size_t kPartCost = 112;      // bytes of bookkeeping per shared part
constexpr size_t kReferenceBytes = 4;  // size of a typical reference

void AppendSized(Tag tag, std::string_view bytes, std::string& out) {
  out.push_back(tag);
  AppendNumber(bytes.size(), out);
  out.append(bytes);
}

std::string TextPart(std::string_view text) {
  std::string part;
  AppendSized(kText, text, part);
  return part;
}

Tag ShiftTag(std::string_view& bytes) {
  const char tag = bytes.empty() ? char{kNull} : bytes.front();
  bytes.remove_prefix(bytes.empty() ? 0 : 1);
  return static_cast<Tag>(tag);
}

// Removes the first value from `bytes` and returns its encoding.
std::string_view ShiftValue(std::string_view& bytes) {
  const std::string_view whole = bytes;
  switch (ShiftTag(bytes)) {
    case kNull:
    case kFalse:
    case kTrue:
      break;
    case kDouble:
      bytes.remove_prefix(sizeof(double));
      break;
    case kNegative:
    case kUnsigned:
    case kShared:
      ShiftNumber(bytes);
      break;
    case kText:
    case kArray:
    case kObject: {
      const uint64_t size = ShiftNumber(bytes);
      bytes.remove_prefix(size);
      break;
    }
  }
  return whole.substr(0, whole.size() - bytes.size());
}

using RawDouble = std::array<char, sizeof(double)>;

void AppendFloat(double number, std::string& out) {
  const auto raw = std::bit_cast<RawDouble>(number);
  out.push_back(kDouble);
  out.append(raw.begin(), raw.end());
}

double FloatOf(std::string_view bytes) {
  RawDouble raw{};
  bytes.copy(raw.data(), raw.size());
  return std::bit_cast<double>(raw);
}

void AppendInteger(const Json& value, std::string& out) {
  if (value.is_number_unsigned() || value.get<int64_t>() >= 0) {
    out.push_back(kUnsigned);
    AppendNumber(value.get<uint64_t>(), out);
  } else {
    out.push_back(kNegative);
    AppendNumber(static_cast<uint64_t>(-1 - value.get<int64_t>()), out);
  }
}

}  // namespace

// ---- reading ------------------------------------------------------------------------------------

PackedValue PackedValue::Resolved() const {
  PackedValue at = *this;
  while (!at.bytes_.empty() && at.bytes_.front() == kShared) {
    std::string_view rest = at.bytes_.substr(1);
    at.bytes_ = table_->BytesOf(ShiftNumber(rest));
  }
  return at;
}

bool PackedValue::is_null() const {
  const std::string_view bytes = Resolved().bytes_;
  return bytes.empty() || bytes.front() == kNull;
}

bool PackedValue::is_object() const {
  const std::string_view bytes = Resolved().bytes_;
  return !bytes.empty() && bytes.front() == kObject;
}

bool PackedValue::is_array() const {
  const std::string_view bytes = Resolved().bytes_;
  return !bytes.empty() && bytes.front() == kArray;
}

bool PackedValue::is_string() const {
  const std::string_view bytes = Resolved().bytes_;
  return !bytes.empty() && bytes.front() == kText;
}

std::string_view PackedValue::Content() const {
  std::string_view bytes = Resolved().bytes_;
  ShiftTag(bytes);
  ShiftNumber(bytes);
  return bytes;
}

PackedValue PackedValue::Shift(std::string_view& bytes) const {
  return {table_, ShiftValue(bytes)};
}

PackedValue PackedValue::Member(std::string_view name) const {
  if (!is_object()) {
    return {};
  }
  std::string_view rest = Content();
  while (!rest.empty()) {
    const PackedValue key = Shift(rest);
    const PackedValue value = Shift(rest);
    if (key.Text() == name) {
      return value;
    }
  }
  return {};
}

PackedValue PackedValue::At(std::initializer_list<std::string_view> path) const {
  PackedValue at = *this;
  for (const std::string_view name : path) {
    at = at.Member(name);
  }
  return at;
}

std::string_view PackedValue::Text() const {
  return is_string() ? Content() : std::string_view();
}

std::string_view PackedValue::TextAt(std::initializer_list<std::string_view> path) const {
  return At(path).Text();
}

std::vector<PackedValue> PackedValue::Items() const {
  std::vector<PackedValue> items;
  if (is_array()) {
    std::string_view rest = Content();
    while (!rest.empty()) {
      items.push_back(Shift(rest));
    }
  }
  return items;
}

Json PackedValue::Unpack() const {
  std::string_view bytes = Resolved().bytes_;
  switch (ShiftTag(bytes)) {
    case kNull:
    case kShared:
      return nullptr;
    case kFalse:
      return false;
    case kTrue:
      return true;
    case kNegative:
      return -1 - static_cast<int64_t>(ShiftNumber(bytes));
    case kUnsigned:
      return ShiftNumber(bytes);
    case kDouble:
      return FloatOf(bytes);
    case kText:
      return std::string(Content());
    case kArray: {
      Json array = Json::array();
      for (std::string_view rest = Content(); !rest.empty();) {
        array.push_back(Shift(rest).Unpack());
      }
      return array;
    }
    case kObject: {
      Json object = Json::object();
      auto& members = object.get_ref<Json::object_t&>();
      for (std::string_view rest = Content(); !rest.empty();) {
        const PackedValue name = Shift(rest);
        members.emplace_hint(members.end(), name.Text(), Shift(rest).Unpack());
      }
      return object;
    }
  }
  return nullptr;
}

// ---- one value ----------------------------------------------------------------------------------

PackedJson::PackedJson(std::shared_ptr<PackTable> table, std::string_view bytes)
    : table_(std::move(table)),
      bytes_(std::make_unique<char[]>(bytes.size())),
      size_(static_cast<uint32_t>(bytes.size())) {
  bytes.copy(bytes_.get(), bytes.size());
}

PackedJson::PackedJson(PackedJson&& other) noexcept
    : table_(std::move(other.table_)),
      bytes_(std::move(other.bytes_)),
      size_(std::exchange(other.size_, 0)) {}

PackedJson& PackedJson::operator=(PackedJson&& other) noexcept {
  if (this != &other) {
    Drop();
    table_ = std::move(other.table_);
    bytes_ = std::move(other.bytes_);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

PackedJson::~PackedJson() {
  Drop();
}

Json PackedJson::Unpack() const {
  return value().Unpack();
}

void PackedJson::Drop() {
  if (table_ != nullptr) {
    table_->Release({bytes_.get(), size_});
  }
}

// ---- shared parts -------------------------------------------------------------------------------

std::shared_ptr<PackTable> PackTable::Make() {
  return std::shared_ptr<PackTable>(new PackTable());
}

PackTable::~PackTable() {
  for (const std::atomic<Chunk*>& chunk : parts_) {
    delete chunk.load();
  }
}

PackedJson PackTable::Pack(const Json& value) {
  std::string bytes;
  {
    std::lock_guard lock(mutex_);
    Append(value, bytes);
  }
  return {shared_from_this(), bytes};
}

size_t PackTable::parts() const {
  std::lock_guard lock(mutex_);
  return ids_.size();
}

size_t PackTable::part_bytes() const {
  std::lock_guard lock(mutex_);
  return part_bytes_;
}

PackTable::Part& PackTable::PartAt(uint64_t part) const {
  Chunk* chunk = parts_[part / kChunkParts].load(std::memory_order_acquire);
  return (*chunk)[part % kChunkParts];
}

std::string_view PackTable::BytesOf(uint64_t part) const {
  return PartAt(part).bytes;
}

void PackTable::Append(const Json& value, std::string& out) {
  if (value.is_string()) {
    AppendShared(TextPart(value.get_ref<const std::string&>()), out);
  } else if (value.is_array() || value.is_object()) {
    std::string content;
    for (const auto& [name, member] : value.items()) {
      if (value.is_object()) {
        AppendShared(TextPart(name), content);
      }
      Append(member, content);
    }
    std::string part;
    AppendSized(value.is_array() ? kArray : kObject, content, part);
    AppendShared(std::move(part), out);
  } else if (value.is_number_float()) {
    AppendFloat(value.get<double>(), out);
  } else if (value.is_number()) {
    AppendInteger(value, out);
  } else {
    out.push_back(!value.is_boolean() ? kNull : value.get<bool>() ? kTrue : kFalse);
  }
}

void PackTable::AppendShared(std::string part, std::string& out) {
  if (part.size() < kSharedBytesMin) {
    out.append(part);
    return;
  }
  uint64_t id = 0;
  if (const auto known = ids_.find(part); known != ids_.end()) {
    id = known->second;
    // The table already has this part, with references to the parts inside it. Release the
    // references that were counted for the new copy.
    ReleaseLocked(part);
  } else if (CountOccurrence(part) && (!free_.empty() || next_ < kChunkParts * kChunksMax)) {
    id = Add(std::move(part));
  } else {
    out.append(part);
    return;
  }
  ++PartAt(id).holders;
  out.push_back(kShared);
  AppendNumber(id, out);
}

PackTable::Occurrence& PackTable::OccurrenceOf(std::string_view part, uint32_t& mark) {
  const size_t hash = std::hash<std::string_view>()(part);
  mark = static_cast<uint32_t>(hash >> 32U);
  return occurrences_[hash % kOccurrences];
}

bool PackTable::CountOccurrence(std::string_view part) {
  uint32_t mark = 0;
  Occurrence& seen = OccurrenceOf(part, mark);
  seen = {.hash = mark, .times = seen.hash == mark ? seen.times + 1 : 1};
  const size_t saved = seen.times * (part.size() - std::min(part.size(), kReferenceBytes));
  return seen.times >= kSharedOccurrencesMin && saved >= kPartCost + part.size();
}

void PackTable::UncountOccurrence(std::string_view part) {
  uint32_t mark = 0;
  if (Occurrence& seen = OccurrenceOf(part, mark); seen.hash == mark && seen.times > 0) {
    --seen.times;
  }
}

uint64_t PackTable::Add(std::string part) {
  uint64_t id = next_;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else {
    if (next_ % kChunkParts == 0) {
      parts_[next_ / kChunkParts].store(new Chunk(), std::memory_order_release);
    }
    ++next_;
  }
  Part& kept = PartAt(id);
  part.shrink_to_fit();
  kept.bytes = std::move(part);
  part_bytes_ += kept.bytes.size();
  ids_.emplace(kept.bytes, id);
  return id;
}

void PackTable::Release(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  ReleaseLocked(bytes);
}

void PackTable::ReleaseLocked(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view whole = ShiftValue(bytes);
    std::string_view value = whole;
    const Tag tag = ShiftTag(value);
    if (tag == kShared) {
      ReleasePart(ShiftNumber(value));
    } else if (tag == kText || tag == kArray || tag == kObject) {
      UncountOccurrence(whole);
      if (tag != kText) {
        ShiftNumber(value);
        ReleaseLocked(value);
      }
    }
  }
}

void PackTable::ReleasePart(uint64_t number) {
  Part& part = PartAt(number);
  if (--part.holders == 0) {
    ids_.erase(part.bytes);
    part_bytes_ -= part.bytes.size();
    const std::string last = std::exchange(part.bytes, std::string());
    free_.push_back(number);
    ReleaseLocked(last);
  }
}

}  // namespace cachewarm::codec
