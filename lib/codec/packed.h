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

// Stores JSON values in few bytes, for caches that keep thousands of values and read a few of their
// members. A tree of codec::Json takes ten times the size of its text, because every member is an
// allocation.
namespace cachewarm::codec {

class PackTable;
class PackedJson;

// A read-only view of a PackedJson; valid as long as the PackedJson. Never throws: a member that is
// missing or has another type reads as null or empty.
class PackedValue {
 public:
  PackedValue() = default;

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;

  // Returns the member at `path`, or null if there is none.
  PackedValue At(std::initializer_list<std::string_view> path) const;
  std::string_view Text() const;
  std::string_view TextAt(std::initializer_list<std::string_view> path) const;
  // Returns the items of an array; none for any other type.
  std::vector<PackedValue> Items() const;

  // Returns the value as a codec::Json tree that the caller owns.
  Json Unpack() const;

 private:
  friend class PackedJson;
  friend class PackTable;
  PackedValue(const PackTable* table, std::string_view bytes) : table_(table), bytes_(bytes) {}

  // Returns the value itself, or the shared part if the value is a reference to one.
  PackedValue Resolved() const;
  PackedValue Member(std::string_view name) const;
  // Returns the bytes after the tag and the length. The value must be a text, array or object.
  std::string_view Content() const;
  // Removes the first value from `bytes` and returns it.
  PackedValue Shift(std::string_view& bytes) const;

  const PackTable* table_ = nullptr;
  std::string_view bytes_;
};

// One packed value. Movable. Must outlive every PackedValue that value() has returned.
class PackedJson {
 public:
  PackedJson() = default;
  PackedJson(PackedJson&& other) noexcept;
  PackedJson& operator=(PackedJson&& other) noexcept;
  ~PackedJson();

  PackedValue value() const { return {table_.get(), {bytes_.get(), size_}}; }
  Json Unpack() const;
  // Returns the number of bytes that this value owns; shared parts belong to the table.
  size_t bytes() const { return size_; }

 private:
  friend class PackTable;
  PackedJson(std::shared_ptr<PackTable> table, std::string_view bytes);
  void Drop();

  std::shared_ptr<PackTable> table_;
  std::unique_ptr<char[]> bytes_;
  uint32_t size_ = 0;
};

// Stores parts that are common to many packed values (member names, labels, the container specs of
// pods) only once. A part becomes shared when it occurs so often that sharing saves memory. This is
// estimated from counts of the few thousand parts that were packed last. A shared part is removed
// with the last value that contains it. Thread-safe; reading a value takes no lock.
class PackTable : public std::enable_shared_from_this<PackTable> {
 public:
  static std::shared_ptr<PackTable> Make();
  ~PackTable();
  PackTable(const PackTable&) = delete;
  PackTable& operator=(const PackTable&) = delete;

  // Packs a value. Unpack() of the result returns an equal value, including invalid UTF-8.
  PackedJson Pack(const Json& value);

  // Return the number of shared parts, and their size in bytes.
  size_t parts() const;
  size_t part_bytes() const;

 private:
  friend class PackedJson;
  friend class PackedValue;

  static constexpr size_t kChunkParts = 1024;
  static constexpr size_t kChunksMax = 4096;
  static constexpr size_t kOccurrences = 16384;

  struct Part {
    std::string bytes;
    uint32_t holders = 0;
  };
  struct Occurrence {
    uint32_t hash = 0;
    uint32_t times = 0;
  };
  using Chunk = std::array<Part, kChunkParts>;
  Occurrence& OccurrenceOf(std::string_view part, uint32_t& mark);

  PackTable() : occurrences_(kOccurrences) {}

  std::string_view BytesOf(uint64_t part) const;
  void Release(std::string_view bytes);

  // The caller of the methods below must hold mutex_, except for PartAt().
  void Append(const Json& value, std::string& out);
  void AppendShared(std::string part, std::string& out);
  // Counts one more occurrence of `part`; returns true if sharing it saves memory now.
  bool CountOccurrence(std::string_view part);
  // Subtracts one occurrence of `part`; called when a value that contains it is destroyed.
  // Otherwise a part that only one object contains, such as its name, would look common after the
  // object has been packed several times.
  void UncountOccurrence(std::string_view part);
  uint64_t Add(std::string part);
  void ReleaseLocked(std::string_view bytes);
  void ReleasePart(uint64_t number);
  Part& PartAt(uint64_t part) const;

  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, uint64_t> ids_;  // keys are views into parts_
  // Parts never move, so that a reader needs no lock.
  std::array<std::atomic<Chunk*>, kChunksMax> parts_{};
  std::vector<uint64_t> free_;
  uint64_t next_ = 0;
  size_t part_bytes_ = 0;
  std::vector<Occurrence> occurrences_;
};

}  // namespace cachewarm::codec
