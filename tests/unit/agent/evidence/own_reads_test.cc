// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/own_reads.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

namespace cachewarm::agent {
namespace {

FileEvent Opened(const std::string& path) {
  return {.type = FileEventType::kOpened, .path = path};
}
FileEvent Closed(const std::string& path) {
  return {.type = FileEventType::kRead, .path = path};
}

TEST(OwnReadScopes, ConsumeOneOpenAndOneClose) {
  OwnReadScopes scopes;
  OwnReads reads = scopes.Begin("g");
  reads.Opening("a");
  EXPECT_TRUE(scopes.Consume("g", Opened("a")));
  EXPECT_TRUE(scopes.Consume("g", Closed("a")));
  EXPECT_FALSE(scopes.Consume("g", Opened("a"))) << "the second is an engine's";
  EXPECT_FALSE(scopes.Consume("g", Closed("a")));
}

TEST(OwnReadScopes, IgnoreOtherFilesTreesAndEvents) {
  OwnReadScopes scopes;
  OwnReads reads = scopes.Begin("g");
  reads.Opening("a");
  EXPECT_FALSE(scopes.Consume("g", Opened("b")));
  EXPECT_FALSE(scopes.Consume("h", Opened("a")));
  for (FileEventType type : {FileEventType::kCreated, FileEventType::kWritten,
                             FileEventType::kMovedTo, FileEventType::kDirectoryIn}) {
    EXPECT_FALSE(scopes.Consume("g", {.type = type, .path = "a"}));
  }
}

TEST(OwnReadScopes, CountReadsOfEachScope) {
  OwnReadScopes scopes;
  OwnReads capture = scopes.Begin("g");
  OwnReads scrub = scopes.Begin("g");
  capture.Opening("a");
  scrub.Opening("a");
  EXPECT_TRUE(scopes.Consume("g", Opened("a")));
  EXPECT_TRUE(scopes.Consume("g", Opened("a")));
  EXPECT_FALSE(scopes.Consume("g", Opened("a")));
}

TEST(OwnReadScopes, EndedScopeLastsUntilItsEventsAreRead) {
  OwnReadScopes scopes;
  {
    OwnReads reads = scopes.Begin("g");
    reads.Opening("a");
    EXPECT_TRUE(scopes.EndedScopes().empty());
  }
  const OwnReadScopes::Ended ended = scopes.EndedScopes();
  EXPECT_EQ(ended.size(), 1U);
  EXPECT_TRUE(scopes.Consume("g", Opened("a")));
  scopes.Forget(ended);
  EXPECT_FALSE(scopes.Consume("g", Closed("a")));
}

TEST(OwnReadScopes, ScopeMayOutliveThem) {
  std::optional<OwnReads> reads;
  {
    OwnReadScopes scopes;
    reads = scopes.Begin("g");
  }
  reads->Opening("a");
  reads.reset();
}

TEST(OwnReads, MovedFromHasNoEffect) {
  OwnReadScopes scopes;
  OwnReads first = scopes.Begin("g");
  OwnReads second = std::move(first);
  second.Opening("a");
  EXPECT_TRUE(scopes.EndedScopes().empty());
  EXPECT_TRUE(scopes.Consume("g", Opened("a")));
}

}  // namespace
}  // namespace cachewarm::agent
