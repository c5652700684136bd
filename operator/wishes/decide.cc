// SPDX-License-Identifier: Apache-2.0
#include "operator/wishes/decide.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/api/annotations.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/caches/cache_table.h"
#include "lib/kube/core/object.h"
#include "operator/wishes/wanted.h"

namespace cachewarm::wishes {
namespace {

using codec::Json;
namespace reason = api::reason;

enum class Answer { kYes, kNo, kUnclear };

struct Question {
  Answer answer = Answer::kNo;
  std::string problem;  // when it is unclear
};

Question Asks(const Asked& asked) {
  const auto found = asked.annotations.find(std::string(api::kWarmAnnotation));
  if (found == asked.annotations.end()) {
    return {.answer = asked.namespace_asks && asked.accelerator ? Answer::kYes : Answer::kNo};
  }
  if (found->second == "true") {
    return {.answer = Answer::kYes};
  }
  if (found->second == "false") {
    return {.answer = Answer::kNo};
  }
  return {.answer = Answer::kUnclear,
          .problem = fmt::format("annotation {}: \"{}\" is refused: set it to true or false, or "
                                 "remove it",
                                 api::kWarmAnnotation, found->second.substr(0, 80))};
}

bool Says(const Asked& asked) {
  return asked.annotations.contains(std::string(api::kWarmAnnotation));
}

bool IsOwned(const Asked& asked) {
  const kube::Owner owner = kube::ControllerOf(*asked.present);
  return !asked.uid.empty() && owner.uid == asked.uid;
}

// Of a workload of this name that is gone: the garbage collector will take it.
bool IsOrphan(const Asked& asked) {
  const kube::Owner owner = kube::ControllerOf(*asked.present);
  return owner.kind == asked.kind && owner.name == asked.name && owner.uid != asked.uid;
}

std::string UnaskedSince(const Json& present) {
  return kube::TextAt(present, {"metadata", "annotations", api::kUnaskedSinceAnnotation});
}

Json MarkPatch(const Json& present, const Json& since) {
  return {{"metadata",
           {{"resourceVersion", kube::ResourceVersionOf(present)},
            {"annotations", {{std::string(api::kUnaskedSinceAnnotation), since}}}}}};
}

std::vector<Note> PresetProblems(const Json& spec) {
  std::vector<Note> problems;
  const auto& known = caches::PresetNames();
  const Json* chosen = kube::At(spec, {"caches"});
  for (const Json& cache : chosen == nullptr ? Json::array() : *chosen) {
    const std::string name = kube::TextAt(cache, {"name"});
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problems.push_back({.is_warning = true,
                          .reason = reason::kAnnotationRefused,
                          .text = fmt::format("annotation cachewarm.io/caches: there is no preset "
                                              "\"{}\"; use {}",
                                              name, fmt::join(known, ", "))});
    }
  }
  return problems;
}

std::vector<Note> Problems(const api::SpecWish& wish) {
  std::vector<Note> problems;
  for (const std::string& text : wish.problems) {
    problems.push_back({.is_warning = true, .reason = reason::kAnnotationRefused, .text = text});
  }
  for (Note& note : PresetProblems(wish.spec)) {
    problems.push_back(std::move(note));
  }
  return problems;
}

Note Warning(std::string_view reason, std::string text) {
  return {.is_warning = true, .reason = reason, .text = std::move(text)};
}

// Without what the annotations set: fields that a create wrote would stay when an apply leaves them
// out later. They follow by an apply at once.
Verdict Make(const Asked& asked) {
  if (!asked.served_by.empty()) {
    if (!Says(asked)) {
      return {};
    }
    return {.problems = {Warning(
                reason::kAlreadyServed,
                fmt::format("CacheWarmup {} already warms it: remove that one or the annotation {}",
                            asked.served_by, api::kWarmAnnotation))}};
  }
  return {.step = Step::kCreate,
          .object = Wanted(asked, Json::object(), ""),
          .news = {{.reason = reason::kWarmupMade,
                    .text = fmt::format("made CacheWarmup {}: new pods will start warm; running "
                                        "ones are left alone",
                                        asked.warmup)}}};
}

Verdict Clash(const Asked& asked) {
  if (IsOrphan(asked)) {
    return {};  // its end comes back as a change
  }
  return {.problems = {Warning(
              reason::kWarmupNameTaken,
              fmt::format("no CacheWarmup is made: {} exists and is not this workload's; delete or "
                          "rename that one, or make a CacheWarmup of another name by hand",
                          asked.warmup))}};
}

// Somebody asks for it.
Verdict Keep(const Asked& asked) {
  const api::SpecWish wish = api::ReadSpecWish(asked.annotations);
  Verdict out;
  out.problems = Problems(wish);
  if (asked.present != nullptr && !IsOwned(asked)) {
    Verdict clash = Clash(asked);
    std::move(clash.problems.begin(), clash.problems.end(), std::back_inserter(out.problems));
    return out;
  }
  if (asked.present != nullptr && !UnaskedSince(*asked.present).empty()) {
    out.step = Step::kPatch;
    out.object = MarkPatch(*asked.present, nullptr);
    return out;
  }
  if (!out.problems.empty()) {
    return out;
  }
  if (asked.present == nullptr) {
    return asked.over ? Verdict{} : Make(asked);
  }
  Json wanted = Wanted(asked, wish.spec, kube::UidOf(*asked.present));
  if (!Holds(*asked.present, wanted)) {
    out.step = Step::kApply;
    out.object = std::move(wanted);
  }
  return out;
}

Verdict Mark(const Asked& asked) {
  const std::string due = FormatTime(asked.now + asked.grace);
  return {.step = Step::kPatch,
          .object = MarkPatch(*asked.present, FormatTime(asked.now)),
          .news = {{.reason = reason::kWarmupUnasked,
                    .text = fmt::format("nobody asks for it to be warm any more: CacheWarmup {} is "
                                        "deleted at {}, unless {}=true comes back",
                                        asked.warmup, due, api::kWarmAnnotation)}},
          .look_again = asked.grace};
}

// Nobody asks for it.
Verdict LetGo(const Asked& asked) {
  // What is not marked as made for annotations is a user's, even if the workload owns it.
  if (asked.present == nullptr || !IsOwned(asked) ||
      kube::TextAt(*asked.present, {"metadata", "annotations", api::kWishAnnotation}).empty()) {
    return {};
  }
  const std::string text = UnaskedSince(*asked.present);
  const auto since = ParseTime(text);
  // A time to come was not written by us.
  if (text.empty() || !since.ok() || *since > asked.now) {
    return Mark(asked);
  }
  const WallTime due = *since + asked.grace;
  if (asked.now < due) {
    return {.look_again = due - asked.now};
  }
  return {.step = Step::kDelete,
          .news = {{.reason = reason::kWarmupRemoved,
                    .text = fmt::format("deleted CacheWarmup {}: nobody has asked for it since {}",
                                        asked.warmup, text)}}};
}

}  // namespace

Verdict Decide(const Asked& asked) {
  if (asked.is_part) {
    return {};
  }
  const Question question = Asks(asked);
  switch (question.answer) {
    case Answer::kYes:
      return Keep(asked);
    case Answer::kNo:
      return asked.over ? Verdict{} : LetGo(asked);
    case Answer::kUnclear:
      break;
  }
  return {.problems = {Warning(reason::kAnnotationRefused, question.problem)}};
}

}  // namespace cachewarm::wishes
