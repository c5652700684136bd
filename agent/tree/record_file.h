// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"
#include "lib/fs/dir.h"
#include "lib/fs/file.h"

// Reads and writes the JSON files of the journal (journal.h). Only the agent writes there, but the
// disk may be damaged, so reads are limited and checked.
//
// The fields of a record are described once, by a function object `fields(io, record)`. It calls
// `io(name, member, limits)` for every field and `io.List()` for every list of records.
// RecordReader and RecordWriter are the two types of `io`.
namespace cachewarm::agent {

// Limits that RecordReader checks.
struct FieldLimits {
  bool required = false;    // the field exists and is not an empty text
  int64_t min = INT64_MIN;  // of a number; an int is never negative
  size_t size_max = 4096;   // bytes of a text, or items of a list
};

class RecordWriter {
 public:
  const codec::Json& object() const { return object_; }

  template <class T>
  void operator()(std::string_view name, const T& value, const FieldLimits& /*limits*/ = {}) {
    codec::Json& field = object_[std::string(name)];
    if constexpr (std::is_same_v<T, Digest>) {
      field = value.ToString();
    } else if constexpr (std::is_same_v<T, WallTime>) {
      field = value.time_since_epoch().count();
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      // As a signed number, which is the only kind that codec::Reader reads.
      field = static_cast<int64_t>(value);
    } else if constexpr (std::is_same_v<T, std::vector<Digest>>) {
      field = codec::Json::array();
      for (const Digest& digest : value) {
        field.push_back(digest.ToString());
      }
    } else {
      field = value;
    }
  }
  void operator()(std::string_view name, const std::optional<WallTime>& time) {
    if (time.has_value()) {
      (*this)(name, *time);
    }
  }
  template <class T, class Fields>
  void List(std::string_view name, std::vector<T>& items, size_t /*items_max*/,
            const Fields& fields) {
    codec::Json& list = object_[std::string(name)] = codec::Json::array();
    for (T& item : items) {
      RecordWriter writer;
      fields(writer, item);
      list.push_back(std::move(writer.object_));
    }
  }

 private:
  codec::Json object_ = codec::Json::object();
};

class RecordReader {
 public:
  explicit RecordReader(codec::Reader& reader) : reader_(reader) {}

  template <class T>
  void operator()(std::string_view name, T& value, const FieldLimits& limits = {}) {
    if (limits.required) {
      reader_.Require(name);
    }
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>) {
      reader_.Read(name, value, limits.size_max);
    } else if constexpr (std::is_same_v<T, int>) {
      reader_.Read(name, value, 0, INT32_MAX);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      reader_.Read(name, value, limits.min);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      auto number = static_cast<int64_t>(value);
      reader_.Read(name, number);
      value = static_cast<uint64_t>(number);
    } else if constexpr (std::is_same_v<T, WallTime>) {
      reader_.ReadMilliseconds(name, value);
    } else if constexpr (std::is_same_v<T, std::optional<WallTime>>) {
      if (reader_.Has(name)) {
        reader_.ReadMilliseconds(name, value.emplace());
      }
    } else if constexpr (std::is_same_v<T, std::vector<Digest>>) {
      ReadDigests(name, value, limits);
    } else {
      reader_.Read(name, value);
    }
  }
  template <class T, class Fields>
  void List(std::string_view name, std::vector<T>& items, size_t items_max, const Fields& fields) {
    reader_.List(name, items_max, [&](codec::Reader& item) {
      RecordReader reader(item);
      fields(reader, items.emplace_back());
    });
  }

 private:
  void ReadDigests(std::string_view name, std::vector<Digest>& value, const FieldLimits& limits);

  codec::Reader& reader_;
};

inline constexpr mode_t kRecordMode = 0600;
// Maximum bytes of a record, except one with a list of files.
inline constexpr int64_t kRecordBytesMax = int64_t{1} << 20;

// Reads the JSON object in `path`. Errors: NOT_FOUND; INVALID_ARGUMENT names the file.
absl::StatusOr<codec::Json> ReadJsonFile(const fs::Dir& root, const std::string& path,
                                         int64_t bytes_max);
// Replaces `path` atomically by a rename.
absl::Status WriteJsonFile(const fs::Dir& root, const std::string& path, const codec::Json& object,
                           fs::Durable durable);

// Reads the record in `path`; absent fields keep their defaults. Errors as ReadJsonFile().
template <class T, class Fields>
absl::StatusOr<T> ReadRecord(const fs::Dir& root, const std::string& path, const Fields& fields,
                             int64_t bytes_max = kRecordBytesMax) {
  CW_ASSIGN_OR_RETURN(const codec::Json object, ReadJsonFile(root, path, bytes_max));
  T record;
  codec::Reader reader(object, path);
  RecordReader io(reader);
  fields(io, record);
  CW_RETURN_IF_ERROR(reader.status());
  return record;
}

template <class T, class Fields>
absl::Status WriteRecord(const fs::Dir& root, const std::string& path, const Fields& fields,
                         T record, fs::Durable durable = fs::Durable::kNow) {
  RecordWriter io;
  fields(io, record);
  return WriteJsonFile(root, path, io.object(), durable);
}

// Calls `visit` with the path of every record in `folder`. Errors: RESOURCE_EXHAUSTED if the folder
// has more than 10,000 entries.
absl::Status ForEachRecord(const fs::Dir& root, std::string_view folder,
                           const std::function<void(const std::string& path)>& visit);

}  // namespace cachewarm::agent
