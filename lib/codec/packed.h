// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/codec/json_fwd.h"

// JSON values as few bytes as may be, for whoever keeps thousands of them and looks at a few: a
// tree of codec::Json takes ten times its text, because every member is an allocation of its own.
namespace cachewarm::codec {

class PackTable;
class Packed;

// Looks into a Packed without taking it apart. Valid while that Packed is. Never throws: what is
// absent or of another type reads as null or empty.
class PackedValue {
 public:
  PackedValue() = default;

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;

  // The member below `path`; null where there is none.
  PackedValue At(std::initializer_list<std::string_view> path) const;
  std::string_view Text() const;
  std::string_view TextAt(std::initializer_list<std::string_view> path) const;
  // The items of an array; none of anything else.
  std::vector<PackedValue> Items() const;

  // The value taken apart: the caller's own.
  Json Unpack() const;

 private:
  friend class Packed;
  friend class PackTable;
  PackedValue(const PackTable* table, std::string_view bytes) : table_(table), bytes_(bytes) {}

  // The same value with no reference in front of it.
  PackedValue Resolved() const;
  PackedValue Member(std::string_view name) const;
  // Bytes of what an object or array holds.
  std::string_view Content() const;
  // Takes the first value off `bytes`.
  PackedValue Shift(std::string_view& bytes) const;

  const PackTable* table_ = nullptr;
  std::string_view bytes_;
};

// One packed value. Moves; it and what its views gave end with it.
class Packed {
 public:
  Packed() = default;
  Packed(Packed&& other) noexcept;
  Packed& operator=(Packed&& other) noexcept;
  ~Packed();

  PackedValue value() const { return {table_.get(), {bytes_.get(), size_}}; }
  Json Unpack() const;
  // Of its own; what it shares is the table's.
  size_t bytes() const { return size_; }

 private:
  friend class PackTable;
  Packed(std::shared_ptr<PackTable> table, std::string_view bytes);
  void Drop();

  std::shared_ptr<PackTable> table_;
  std::unique_ptr<char[]> bytes_;
  uint32_t size_ = 0;
};

// What many packed values have in common, kept once: member names, labels, whole containers. A
// part becomes common when values that live have it in place so often, as far as some thousand
// sightings can tell, that keeping it once takes less; and ends with the last value that has it.
// Thread-safe; reading a value takes no lock.
class PackTable : public std::enable_shared_from_this<PackTable> {
 public:
  static std::shared_ptr<PackTable> Make();
  ~PackTable();
  PackTable(const PackTable&) = delete;
  PackTable& operator=(const PackTable&) = delete;

  // Any value gives the same back, except that invalid UTF-8 stays as it is.
  Packed Pack(const Json& value);

  // Parts kept in common, and the bytes of those.
  size_t parts() const;
  size_t part_bytes() const;

 private:
  friend class Packed;
  friend class PackedValue;

  static constexpr size_t kChunkParts = 1024;
  static constexpr size_t kChunksMax = 4096;
  static constexpr size_t kSightings = 16384;

  struct Part {
    std::string bytes;
    uint32_t holders = 0;
  };
  struct Sighting {
    uint32_t hash = 0;
    uint32_t times = 0;
  };
  using Chunk = std::array<Part, kChunkParts>;
  Sighting& SightingOf(std::string_view part, uint32_t& mark);

  PackTable() : sightings_(kSightings) {}

  std::string_view BytesOf(uint64_t part) const;
  void Release(std::string_view bytes);

  // All below with mutex_ held.
  void Append(const Json& value, std::string& out);
  void AppendShared(std::string part, std::string& out);
  // Notes that a value has `part` in place; true when it is worth to be kept in common.
  bool See(std::string_view part);
  // And that one has it no more: an object that is packed again with every change of it must not
  // make its own name common.
  void Unsee(std::string_view part);
  uint64_t Add(std::string part);
  void ReleaseLocked(std::string_view bytes);
  void ReleasePart(uint64_t number);
  Part& PartAt(uint64_t part) const;

  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, uint64_t> ids_;  // by the bytes of parts_
  // Parts never move, so that a reader needs no lock for one that its value holds.
  std::array<std::atomic<Chunk*>, kChunksMax> parts_{};
  std::vector<uint64_t> free_;
  uint64_t next_ = 0;
  size_t part_bytes_ = 0;
  std::vector<Sighting> sightings_;
};

}  // namespace cachewarm::codec
