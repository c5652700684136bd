// SPDX-License-Identifier: Apache-2.0
// Files built by hand; tests/python/test_gpu_code.py reads those of real compilers.
#include "lib/caches/gpu_images.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/unit/lib/caches/elf_image.h"

namespace cachewarm::caches {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSpecific = 1U << 20U;
constexpr uint64_t kFamily = 1U << 21U;
constexpr uint64_t kCompressed = 0x8000;

void Put(std::string& out, size_t at, uint64_t value, size_t width) {
  out.resize(std::max(out.size(), at + width));
  for (size_t i = 0; i < width; ++i) {
    out[at + i] = static_cast<char>(value >> (8 * i) & 0xFFU);
  }
}

std::string Image(int kind, int architecture, uint64_t flags, size_t payload = 32) {
  std::string out(64, '\0');
  Put(out, 0, static_cast<uint64_t>(kind), 2);
  Put(out, 4, 64, 4);
  Put(out, 8, payload, 8);
  Put(out, 28, static_cast<uint64_t>(architecture), 4);
  Put(out, 40, flags, 8);
  return out + std::string(payload, 'x');
}

std::string Fatbin(const std::string& images) {
  std::string out(16, '\0');
  Put(out, 0, 0xBA55ED50, 4);
  Put(out, 4, 1, 2);
  Put(out, 6, 16, 2);
  Put(out, 8, images.size(), 8);
  return out + images;
}

// A host ELF file, or a CUDA one with `os_abi` 65, with one section `name` that holds `content`.
std::string WithSection(const std::string& name, const std::string& content, uint8_t os_abi = 0,
                        uint16_t machine = 62, uint32_t flags = 0) {
  constexpr size_t kHeader = 64;
  const std::string names = std::string(1, '\0') + name + '\0';
  std::string out =
      ElfImage({.os_abi = os_abi, .machine = machine, .flags = flags}).substr(0, kHeader);
  const size_t names_at = kHeader + content.size();
  const size_t table_at = names_at + names.size();
  out += content + names + std::string(3 * 64, '\0');
  Put(out, 40, table_at, 8);
  Put(out, 58, 64, 2);
  Put(out, 60, 3, 2);
  Put(out, 62, 2, 2);
  const auto section = [&](size_t index, uint64_t text, uint64_t at, uint64_t bytes) {
    Put(out, table_at + index * 64, text, 4);
    Put(out, table_at + index * 64 + 24, at, 8);
    Put(out, table_at + index * 64 + 32, bytes, 8);
  };
  section(1, 1, kHeader, content.size());
  section(2, 0, names_at, names.size());
  return out;
}

std::set<std::string> CodeIn(const std::string& bytes) {
  const auto found = FindGpuCode(
      bytes.size(), [&bytes](uint64_t offset, size_t size) -> absl::StatusOr<std::string> {
        return offset > bytes.size() ? std::string() : bytes.substr(offset, size);
      });
  EXPECT_TRUE(found.ok()) << found.status();
  return found.value_or(std::set<std::string>());
}

TEST(FindGpuCode, FatBinaryNamesTheArchitectureOfEachImage) {
  EXPECT_THAT(CodeIn(Fatbin(Image(2, 80, 0) + Image(2, 90, kSpecific | kCompressed) +
                            Image(2, 120, kFamily) + Image(1, 90, 0, 8))),
              ElementsAre("compute_90", "sm_120f", "sm_80", "sm_90a"));
  EXPECT_THAT(CodeIn(Fatbin(Image(1, 100, kSpecific))), ElementsAre("compute_100a"));
  EXPECT_THAT(CodeIn(Fatbin("")), IsEmpty());
  EXPECT_THAT(CodeIn(Fatbin(Image(8, 80, 0) + Image(2, 0, 0))), IsEmpty()) << "neither is code";
}

TEST(FindGpuCode, HostObjectHoldsSeveralFatBinaries) {
  const std::string two =
      Fatbin(Image(2, 80, 0, 33)) + std::string(7, '\0') + Fatbin(Image(2, 89, 0));
  EXPECT_THAT(CodeIn(WithSection(".nv_fatbin", two)), ElementsAre("sm_80", "sm_89"));
  EXPECT_THAT(CodeIn(WithSection("__nv_relfatbin", two)), ElementsAre("sm_80", "sm_89"));
  EXPECT_THAT(CodeIn(WithSection(".data", two)), IsEmpty());
}

TEST(FindGpuCode, SuffixOfACubinIsThatOfItsCommandLine) {
  const auto cubin = [](const std::string& note, uint32_t architecture) {
    return CodeIn(WithSection(".note.nv.tkinfo", note, 65, 190, architecture << 8U));
  };
  EXPECT_THAT(cubin("ptxas -arch sm_90a ", 90), ElementsAre("sm_90a"));
  EXPECT_THAT(cubin("-arch sm_120f ", 120), ElementsAre("sm_120f"));
  EXPECT_THAT(cubin("-arch sm_90 ", 90), ElementsAre("sm_90"));
  EXPECT_THAT(cubin("-arch sm_100a ", 90), ElementsAre("sm_90")) << "of another architecture";
  EXPECT_THAT(cubin("-arch sm_90", 90), ElementsAre("sm_90"));
  EXPECT_THAT(CodeIn(ElfImage({.os_abi = 51, .machine = 190, .flags = 0x5a0d5a})),
              ElementsAre("sm_90a"));
}

TEST(FindGpuCode, SuffixOfACubinIsOneLetter) {
  // Three sections with the same note, at the end of the file.
  const std::string note = "-arch sm_90aaaa ";
  std::string file = WithSection(".note.nv.tkinfo", note, 65, 190, 90U << 8U);
  const std::string section = file.substr(file.size() - 2 * 64, 64);
  const std::string names = file.substr(file.size() - 64);
  file.resize(file.size() - 64);
  file += section + section + names;
  Put(file, 60, 5, 2);
  Put(file, 62, 4, 2);
  EXPECT_THAT(CodeIn(file), ElementsAre("sm_90a"));
}

TEST(FindGpuCode, ReadsAtMostAMebibyte) {
  std::string empty;
  while (empty.size() < size_t{4} << 20U) {
    empty += Fatbin("");
  }
  for (const std::string& file : {empty, WithSection(".nv_fatbin", empty)}) {
    size_t read = 0;
    const auto found =
        FindGpuCode(file.size(), [&](uint64_t offset, size_t size) -> absl::StatusOr<std::string> {
          read += size;
          return offset > file.size() ? std::string() : file.substr(offset, size);
        });
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_LE(read, size_t{1} << 20U);
  }
}

TEST(FindGpuCode, OtherFilesHaveNone) {
  EXPECT_THAT(CodeIn(""), IsEmpty());
  EXPECT_THAT(CodeIn("def call(): pass"), IsEmpty());
  EXPECT_THAT(CodeIn(ElfImage({})), IsEmpty());
  EXPECT_THAT(CodeIn(ElfImage({.machine = 224, .flags = 0x4C})), ElementsAre("gfx942"));
}

TEST(FindGpuCode, MalformedPartEndsTheSearch) {
  std::string long_payload = Fatbin(Image(2, 80, 0) + Image(2, 89, 0));
  Put(long_payload, 16 + 96 + 8, UINT64_MAX, 8);
  EXPECT_THAT(CodeIn(long_payload), ElementsAre("sm_80"));
  std::string long_binary = Fatbin(Image(2, 80, 0));
  Put(long_binary, 8, UINT64_MAX, 8);
  EXPECT_THAT(CodeIn(long_binary), IsEmpty());
  std::string no_header = Fatbin(Image(2, 80, 0));
  Put(no_header, 16 + 4, 0, 4);
  EXPECT_THAT(CodeIn(no_header), IsEmpty());
  std::string sections = WithSection(".nv_fatbin", Fatbin(Image(2, 80, 0)));
  Put(sections, 62, 77, 2);  // index of the names
  EXPECT_THAT(CodeIn(sections), IsEmpty());
}

TEST(FindGpuCode, ChangedBytesNeverFail) {
  std::mt19937 random(1);
  const std::string whole = WithSection(
      ".nv_fatbin", Fatbin(Image(2, 80, 0) + Image(1, 90, 0)) + Fatbin(Image(2, 89, kSpecific)));
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    for (int change = 0; change < 4 && !bytes.empty(); ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    CodeIn(bytes);
  }
}

TEST(FindGpuCode, ErrorOfAReadIsReturned) {
  const auto found = FindGpuCode(
      100, [](uint64_t, size_t) -> absl::StatusOr<std::string> { return absl::UnknownError("x"); });
  EXPECT_FALSE(found.ok());
}

}  // namespace
}  // namespace cachewarm::caches
