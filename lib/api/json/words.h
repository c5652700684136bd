// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/codec/reader.h"

// The texts of the enum values, as in the CRDs (tests/unit/lib/api/schema_test.cc compares them).
namespace cachewarm::api::json {

template <typename E>
struct Word {
  E value;
  std::string_view text;
};

inline constexpr std::array<Word<Builder>, 3> kBuilderWords = {
    {{Builder::kAuto, "Auto"}, {Builder::kFirstPod, "FirstPod"}, {Builder::kJob, "Job"}}};
inline constexpr std::array<Word<Proof>, 2> kProofWords = {
    {{Proof::kNone, "None"}, {Proof::kEngine, "Engine"}}};
inline constexpr std::array<std::string_view, 6> kRequestMethods = {"GET", "HEAD",  "POST",
                                                                    "PUT", "PATCH", "DELETE"};
inline constexpr std::array<Word<GateMode>, 3> kGateModeWords = {
    {{GateMode::kAuto, "Auto"}, {GateMode::kHold, "Hold"}, {GateMode::kNever, "Never"}}};
inline constexpr std::array<Word<BuilderState>, 5> kBuilderStateWords = {
    {{BuilderState::kElected, "Elected"},
     {BuilderState::kCapturing, "Capturing"},
     {BuilderState::kProving, "Proving"},
     {BuilderState::kCaptured, "Captured"},
     {BuilderState::kFailed, "Failed"}}};
inline constexpr std::array<Word<StartResult>, 8> kStartResultWords = {
    {{StartResult::kBuilder, "builder"},
     {StartResult::kCold, "cold"},
     {StartResult::kHit, "hit"},
     {StartResult::kPartial, "partial"},
     {StartResult::kMiss, "miss"},
     {StartResult::kInert, "inert"},
     {StartResult::kHollow, "hollow"},
     {StartResult::kUnknown, "unknown"}}};
inline constexpr std::array<Word<EngineLog>, 3> kEngineLogWords = {
    {{EngineLog::kFound, "Found"},
     {EngineLog::kNothingFound, "NothingFound"},
     {EngineLog::kUnreadable, "Unreadable"}}};
inline constexpr std::array<Word<BundleState>, 4> kBundleStateWords = {
    {{BundleState::kWaiting, "Waiting"},
     {BundleState::kFetching, "Fetching"},
     {BundleState::kActive, "Active"},
     {BundleState::kFailed, "Failed"}}};
inline constexpr std::array<Word<CaptureState>, 4> kCaptureStateWords = {
    {{CaptureState::kWaiting, "Waiting"},
     {CaptureState::kPacking, "Packing"},
     {CaptureState::kPushed, "Pushed"},
     {CaptureState::kFailed, "Failed"}}};

template <typename E, size_t N>
constexpr std::string_view TextOf(const std::array<Word<E>, N>& words, E value) {
  for (const Word<E>& word : words) {
    if (word.value == value) {
      return word.text;
    }
  }
  return "";
}

template <typename E, size_t N>
std::vector<std::string_view> TextsOf(const std::array<Word<E>, N>& words) {
  std::vector<std::string_view> texts;
  texts.reserve(N);
  for (const Word<E>& word : words) {
    texts.push_back(word.text);
  }
  return texts;
}

// Reads the member `name` as one of the words. Leaves `out` unchanged if the member is absent.
template <typename E, size_t N>
void ReadWord(codec::Reader& reader, std::string_view name, const std::array<Word<E>, N>& words,
              E& out) {
  if (!reader.Has(name)) {
    return;
  }
  std::string text;
  reader.Read(name, text, 64);
  std::string choices;
  for (const Word<E>& word : words) {
    if (word.text == text) {
      out = word.value;
      return;
    }
    choices += (choices.empty() ? "" : ", ") + std::string(word.text);
  }
  reader.Fail(name, "expected one of " + choices);
}

}  // namespace cachewarm::api::json
