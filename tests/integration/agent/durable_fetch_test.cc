// SPDX-License-Identifier: Apache-2.0
// System calls of a fetch, as ptrace(2) sees them: an activation must not wait for the disk.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "tests/integration/agent/kill_at_call.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

// The text at `address` of a stopped process; as far as it can be read.
std::string TextAt(pid_t process, uint64_t address) {
  std::array<char, 256> bytes{};
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {  // one by one: a page may end behind the text
    iovec here{.iov_base = &bytes[i], .iov_len = 1};
    iovec there{.iov_base = reinterpret_cast<void*>(address + i), .iov_len = 1};
    if (process_vm_readv(process, &here, 1, &there, 1, 0) != 1 || bytes[i] == '\0') {
      break;
    }
  }
  return bytes.data();
}

enum class Call { kChange, kSync, kNaming };

class DurableFetch : public ::testing::Test, protected Workbench {
 protected:
  // Fetches `files` once under ptrace.
  void Fetch(const std::map<std::string, std::string>& files) {
    const auto published = PublishFiles(files);
    ASSERT_TRUE(published.ok()) << published.status();
    packed_bytes_ = published->publication.bytes;
    const auto step = FetchOf({published->publication.digest});
    const auto on_call = [&](const CallEntry& entry) {
      Note(entry, step.generation);
      return 0;
    };
    const TracedRun run =
        FailCalls([&] { return std::holds_alternative<Fetched>(RunFetch(step)); }, on_call);
    ASSERT_TRUE(run.succeeded);
  }

  void Note(const CallEntry& entry, const std::string& generation) {
    // Relative to the directories of staging and of generations, under the same name in both.
    const bool is_naming = entry.number == SYS_renameat2 &&
                           TextAt(entry.process, entry.arguments[1]) == generation &&
                           TextAt(entry.process, entry.arguments[3]) == generation;
    if (is_naming) {
      calls_.push_back(Call::kNaming);
    } else if (entry.number == SYS_fsync || entry.number == SYS_fdatasync ||
               entry.number == SYS_sync || entry.number == SYS_syncfs) {
      calls_.push_back(Call::kSync);
    } else if (entry.ChangesFiles()) {
      calls_.push_back(Call::kChange);
    }
    if (entry.number == SYS_write || entry.number == SYS_pwrite64) {
      written_bytes_ += static_cast<int64_t>(entry.arguments[2]);
    }
  }

  std::vector<Call> calls_;
  int64_t written_bytes_ = 0;
  int64_t packed_bytes_ = 0;
};

TEST_F(DurableFetch, NamesTheTreeAndWaitsForNoSync) {
  Fetch({{kIndexFile, "index"}, {kObjectFile, SharedObject("code")}});
  EXPECT_EQ(std::count(calls_.begin(), calls_.end(), Call::kNaming), 1)
      << "the rename was not seen";
  EXPECT_EQ(std::count(calls_.begin(), calls_.end(), Call::kSync), 0)
      << "someone else's data on the same disk would delay the activation";
}

TEST_F(DurableFetch, WritesNoCopyOfTheArchive) {
  constexpr int64_t kBytes = 1 << 20;
  std::minstd_rand random(1);
  std::string noise(kBytes, '\0');
  std::generate(noise.begin(), noise.end(), [&] { return static_cast<char>(random() >> 8U); });
  Fetch({{kIndexFile, noise}});
  ASSERT_GT(packed_bytes_, kBytes / 2) << "it can be compressed, and a copy would not be seen";
  EXPECT_GE(written_bytes_, kBytes);
  EXPECT_LT(written_bytes_, kBytes + packed_bytes_ / 2);
}

}  // namespace
}  // namespace cachewarm::agent
