// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/label_names.h"

#include <string>

#include "gtest/gtest.h"

namespace cachewarm::observe {
namespace {

using api::Labels;

const char* NamesOf(const Labels& labels) {
  return labels.begin()->first.data();
}

TEST(LabelNames, NodesOfAPoolShareNames) {
  LabelNames names;
  Labels first = {{"hostname", "a"}, {"pool", "x"}};
  Labels other = {{"hostname", "b"}};
  Labels second = {{"hostname", "c"}, {"pool", "x"}};
  for (Labels* labels : {&first, &other, &second}) {
    names.Share(*labels);
  }
  EXPECT_EQ(NamesOf(first), NamesOf(second));
  EXPECT_NE(NamesOf(first), NamesOf(other));
  EXPECT_EQ(second, (Labels{{"hostname", "c"}, {"pool", "x"}}));
}

TEST(LabelNames, OldestSetIsReplaced) {
  LabelNames names;
  Labels oldest = {{"oldest", "1"}};
  Labels kept = {{"kept", "1"}};
  names.Share(oldest);
  names.Share(kept);
  for (size_t i = 0; i < LabelNames::kSetsMax - 1; ++i) {
    Labels other = {{"name-" + std::to_string(i), "1"}};
    names.Share(other);
  }
  Labels again = {{"oldest", "2"}};
  Labels kept_again = {{"kept", "2"}};
  names.Share(kept_again);
  names.Share(again);
  EXPECT_EQ(NamesOf(kept_again), NamesOf(kept));
  EXPECT_NE(NamesOf(again), NamesOf(oldest));
}

}  // namespace
}  // namespace cachewarm::observe
