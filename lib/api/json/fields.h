// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lib/api/json/checks.h"
#include "lib/api/json/words.h"
#include "lib/api/json/writer.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

// Tables of the fields of JSON objects. A row names one field, the member of a struct that holds
// its value, and the limits of the value. ReadObject() and WriteObject() follow the rows, and
// tests/unit/lib/api/fields_test.cc compares the rows with the CRDs:
//
//   constexpr Field<StartWindow> kStartWindow[] = {
//       Required<&StartWindow::pod_uid>("podUID", kUid),
//       Optional<&StartWindow::ready_time>("readyTime"),
//   };
//
// A row of an object or of a list of objects also names their table, and a row of an enum the table
// of its words: Optional<&NodeCacheSpec::starts, kStartWindow>("starts", {.items = 64}).
namespace cachewarm::api::json {

enum class FieldPresence {
  kRequired,  // An object without the field is rejected. The value is written without being cut.
  kAlways,    // The value is always written. If the field is absent, the member keeps its value.
  kOptional,  // As kAlways, but an empty, zero or false value is not written.
};

struct Shape;
Shape AnyObject();

// The part of a row that does not depend on the struct. A row without a name is a check.
struct Rule {
  std::string_view name;
  FieldPresence presence = FieldPresence::kOptional;
  Limit limit = {};
  Shape (*shape)() = AnyObject;
};

// The type of a field in the terms of OpenAPI.
struct Shape {
  std::string_view type = "object";          // or the format: "int64", "date-time"
  std::vector<Rule> fields = {};             // of the object, or of each object in the list
  std::vector<std::string_view> words = {};  // the values of an enum
};

// One row: a field of the JSON object of a T.
template <typename T>
struct Field : Rule {
  void (*read)(const Rule& rule, codec::Reader& reader, T& out);
  void (*write)(const Rule& rule, const T& object, Writer& out);
};

template <typename T>
using Rows = std::span<const Field<T>>;

// Reads the fields in the order of the rows. Records the first problem in `reader`.
template <typename T>
void ReadObject(std::type_identity_t<Rows<T>> rows, codec::Reader& reader, T& out) {
  for (const Field<T>& row : rows) {
    if (row.presence == FieldPresence::kRequired) {
      reader.Require(row.name);
    }
    row.read(row, reader, out);
  }
}

template <typename T>
codec::Json WriteObject(std::type_identity_t<Rows<T>> rows, const T& object) {
  Writer out;
  for (const Field<T>& row : rows) {
    row.write(row, object, out);
  }
  return out.Take();
}

// Returns a copy of the rules of a table.
template <typename Table>
std::vector<Rule> RulesOf(const Table& rows) {
  return {std::begin(rows), std::end(rows)};
}

// Read and write the value of a row without a table. Readers reject a value beyond the limit, and
// an `int` above kCountMax; writers cut strings and lists.
void ReadValue(const Rule& rule, codec::Reader& reader, std::string& out);
void ReadValue(const Rule& rule, codec::Reader& reader, int& out);
void ReadValue(const Rule& rule, codec::Reader& reader, int64_t& out);
void ReadValue(const Rule& rule, codec::Reader& reader, std::vector<std::string>& out);
void ReadValue(const Rule& rule, codec::Reader& reader, std::map<std::string, std::string>& out);
template <typename V>
void ReadValue(const Rule& rule, codec::Reader& reader, V& out) {
  reader.Read(rule.name, out);
}

void WriteValue(const Rule& rule, const std::string& value, Writer& out);
void WriteValue(const Rule& rule, const Digest& value, Writer& out);
void WriteValue(const Rule& rule, const std::vector<std::string>& value, Writer& out);
void WriteValue(const Rule& rule, const std::map<std::string, std::string>& value, Writer& out);
template <typename V>
void WriteValue(const Rule& rule, const V& value, Writer& out) {
  if constexpr (!std::is_integral_v<V>) {
    out.Put(rule.name, value);
  } else if (value != V{} || rule.presence != FieldPresence::kOptional) {
    out.Always(rule.name, value);
  }
}

// Writes an object or list that is encoded already.
void WritePart(const Rule& rule, codec::Json value, Writer& out);

template <typename V>
concept IsList = requires(V value) {
  value.emplace_back();
};
template <typename V>
concept IsOptional = requires(V value) {
  value.emplace();
};

// The table of a row that needs none.
struct NoTable {};
inline constexpr NoTable kNoTable;
template <const auto& kTable>
inline constexpr bool kHasTable = !std::is_same_v<decltype(kTable), const NoTable&>;

template <const auto& kTable, typename V>
void ReadMember(const Rule& rule, codec::Reader& reader, V& out) {
  using codec::Reader;
  if constexpr (!kHasTable<kTable>) {
    ReadValue(rule, reader, out);
  } else if constexpr (std::is_enum_v<V>) {
    ReadWord(reader, rule.name, kTable, out);
  } else if constexpr (IsList<V>) {
    reader.List(rule.name, rule.limit.items,
                [&out](Reader& item) { ReadObject(kTable, item, out.emplace_back()); });
  } else if constexpr (IsOptional<V>) {
    reader.Object(rule.name, [&out](Reader& part) { ReadObject(kTable, part, out.emplace()); });
  } else {
    reader.Object(rule.name, [&out](Reader& part) { ReadObject(kTable, part, out); });
  }
}

template <const auto& kTable, typename V>
void WriteMember(const Rule& rule, const V& value, Writer& out) {
  if constexpr (!kHasTable<kTable>) {
    WriteValue(rule, value, out);
  } else if constexpr (IsList<V>) {
    const auto encode = [](const auto& item) { return WriteObject(kTable, item); };
    WritePart(rule, ListOf(value, rule.limit.items, encode), out);
  } else if constexpr (IsOptional<V>) {
    if (value.has_value()) {
      WritePart(rule, WriteObject(kTable, *value), out);
    }
  } else if (rule.presence == FieldPresence::kOptional && value == V{}) {
    return;
  } else if constexpr (std::is_enum_v<V>) {
    out.Always(rule.name, TextOf(kTable, value));
  } else {
    WritePart(rule, WriteObject(kTable, value), out);
  }
}

template <typename V, const auto& kTable>
Shape ShapeOf() {
  Shape shape;
  if constexpr (std::is_enum_v<V>) {
    shape.words = TextsOf(kTable);
  } else if constexpr (kHasTable<kTable>) {
    shape.fields = RulesOf(kTable);
  }
  shape.type = std::is_same_v<V, std::string> || std::is_enum_v<V> ? "string"
               : std::is_same_v<V, bool>                           ? "boolean"
               : std::is_same_v<V, int>                            ? "int32"
               : std::is_same_v<V, int64_t>                        ? "int64"
               : std::is_same_v<V, double>                         ? "number"
               : std::is_same_v<V, WallTime>                       ? "date-time"
               : std::is_same_v<V, Digest>                         ? "digest"
               : IsList<V>                                         ? "array"
                                                                   : "object";
  return shape;
}

template <auto kMember, const auto& kTable, typename T, typename V>
constexpr Field<T> MakeField(V T::*, Rule rule) {
  rule.shape = ShapeOf<V, kTable>;
  return {rule,
          [](const Rule& row, codec::Reader& reader, T& out) {
            ReadMember<kTable>(row, reader, out.*kMember);
          },
          [](const Rule& row, const T& object, Writer& out) {
            WriteMember<kTable>(row, object.*kMember, out);
          }};
}

template <auto kMember, const auto& kTable = kNoTable>
constexpr auto Required(std::string_view name, const Limit& limit = {}) {
  return MakeField<kMember, kTable>(kMember, {name, FieldPresence::kRequired, limit});
}
template <auto kMember, const auto& kTable = kNoTable>
constexpr auto Always(std::string_view name, const Limit& limit = {}) {
  return MakeField<kMember, kTable>(kMember, {name, FieldPresence::kAlways, limit});
}
template <auto kMember, const auto& kTable = kNoTable>
constexpr auto Optional(std::string_view name, const Limit& limit = {}) {
  return MakeField<kMember, kTable>(kMember, {name, FieldPresence::kOptional, limit});
}

// A field with a reader and a writer of its own.
template <typename T>
constexpr Field<T> Custom(const Rule& rule, decltype(Field<T>::read) read,
                          decltype(Field<T>::write) write) {
  return {rule, read, write};
}

// The last row of a table: checks how the fields of an object fit together.
template <auto kCheck, typename T>
constexpr Field<T> MakeCheck(void (*)(codec::Reader&, const T&)) {
  return {{},
          [](const Rule&, codec::Reader& reader, T& out) { kCheck(reader, out); },
          [](const Rule&, const T&, Writer&) {}};
}
template <auto kCheck>
constexpr auto Check() {
  return MakeCheck<kCheck>(kCheck);
}

}  // namespace cachewarm::api::json
