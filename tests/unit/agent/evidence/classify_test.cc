// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/classify.h"

#include <gmock/gmock.h>

#include "lib/api/condition.h"

namespace cachewarm::agent {
namespace {

using api::StartResult;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr WallTime kStart{Duration(1'700'000'000'000)};
constexpr char kAot[] = "inductor/aotautograd/ax34/0f3a";
constexpr char kFx[] = "inductor/fxgraph/rm/frm2/9bc1";
constexpr char kPy[] = "inductor/ab/cabc.py";
constexpr char kMainCpp[] = "inductor/cd/ccde.main.cpp";
constexpr char kMainSo[] = "inductor/cd/ccde.main.so";
constexpr char kProbeSo[] = "inductor/ef/cefg.so";
constexpr char kProbeOk[] = "inductor/ef/cefg.so.load_ok";
constexpr char kLock[] = "inductor/locks/ccde.lock";

api::StartWindow Window() {
  return {.started_time = kStart, .ready_time = kStart + std::chrono::seconds(30)};
}

// Builds the events of one start, a second apart.
class Script {
 public:
  Script& Add(FileEventType type, const std::string& path) {
    time_ += Duration(1000);
    record_.events.push_back({.type = type, .time = time_, .mtime = time_, .path = path});
    return *this;
  }
  Script& Read(const std::string& path) {
    return Add(FileEventType::kOpened, path).Add(FileEventType::kRead, path);
  }
  // Writes a temporary file and renames it.
  Script& MoveIn(const std::string& path) {
    return Add(FileEventType::kCreated, path + ".123.456.tmp").Add(FileEventType::kMovedTo, path);
  }
  Script& InPlace(const std::string& path) {
    return Add(FileEventType::kCreated, path)
        .Add(FileEventType::kOpened, path)
        .Add(FileEventType::kWritten, path);
  }
  // Opens for writing and closes without a change.
  Script& Touch(const std::string& path) {
    Add(FileEventType::kOpened, path).Add(FileEventType::kWritten, path);
    record_.events.back().mtime = WallTime{};
    return *this;
  }
  Script& Incomplete() {
    record_.complete = false;
    return *this;
  }
  const EventRecord& record() const { return record_; }

 private:
  WallTime time_ = kStart;
  EventRecord record_;
};

// The rows of the table in docs/design/0003-file-events.md.
Script FullHit() {
  return Script().Touch(kLock).Read(kAot).Read(kFx).Read(kPy).Read(kMainSo).Touch(kLock);
}
Script ColdMiss() {
  return Script()
      .InPlace(kProbeSo)
      .InPlace(kProbeOk)
      .Touch(kLock)
      .MoveIn(kMainCpp)
      .InPlace(kMainSo)
      .Read(kMainSo)
      .MoveIn(kPy)
      .Read(kPy)
      .MoveIn(kFx)
      .MoveIn(kAot);
}
Script HollowHit() {
  return Script().Read(kAot).Read(kFx).MoveIn(kPy).Read(kPy).MoveIn(kMainCpp).InPlace(kMainSo);
}

struct Case {
  const char* name;
  Script script;
  StartResult result;
  int opened;
  int written;
  int native;
  int span_seconds;
};

void Expect(const Case& c) {
  SCOPED_TRACE(c.name);
  const Observation seen =
      ClassifyStart(c.script.record(), Window(), caches::CacheTable::AllPresets());
  EXPECT_EQ(api::Name(seen.result), api::Name(c.result));
  EXPECT_EQ(seen.entries_opened, c.opened);
  EXPECT_EQ(seen.entries_written, c.written);
  EXPECT_EQ(seen.native_built, c.native);
  EXPECT_EQ(seen.compile_span, Duration(c.span_seconds * 1000));
}

TEST(ClassifyStart, ClassifiesInductorStarts) {
  const Case cases[] = {
      {"full hit", FullHit(), StartResult::kHit, 2, 0, 0, 0},
      {"miss on an empty tree", ColdMiss(), StartResult::kMiss, 0, 2, 1, 22},
      {"index hit, native code missing", HollowHit(), StartResult::kHollow, 2, 0, 1, 0},
      {"another model in a warm tree",
       Script().MoveIn(kMainCpp).InPlace(kMainSo).MoveIn(kFx).MoveIn(kAot), StartResult::kMiss, 0,
       2, 1, 7},
      {"one graph hits, another compiles",
       FullHit().InPlace("inductor/xy/cxyz.main.so").MoveIn("inductor/fxgraph/qq/fqq/77"),
       StartResult::kPartial, 2, 1, 1, 4},
      {"mounted and never read", Script(), StartResult::kInert, 0, 0, 0, 0},
      {"only locks are opened", Script().Touch(kLock).Touch(kLock), StartResult::kInert, 0, 0, 0,
       0},
      {"native code without any index", Script().InPlace(kMainSo), StartResult::kMiss, 0, 0, 1, 0},
      {"probes alone are no rebuild",
       Script().Read(kAot).Read(kFx).InPlace(kProbeSo).InPlace(kProbeOk), StartResult::kHit, 2, 0,
       0, 0},
      {"a probe of an old torch version counts", Script().Read(kFx).InPlace(kProbeSo),
       StartResult::kHollow, 1, 0, 1, 0},
      {"the record overflowed", FullHit().Incomplete(), StartResult::kUnknown, 2, 0, 0, 0},
      {"a guard variant is added to a key",
       Script().Read(kFx).MoveIn("inductor/fxgraph/rm/frm2/aaaa"), StartResult::kPartial, 1, 1, 0,
       0},
  };
  for (const Case& c : cases) {
    Expect(c);
  }
}

TEST(ClassifyStart, ClassifiesStartsOfOtherEngines) {
  const char* jax = "jax/jit_f-0123-cache";
  const char* triton = "triton/ABCD/__grp__kernel.json";
  const char* gemm = "deepgemm/cache/kernel.x.1/kernel.cubin";
  const char* vllm = "vllm/torch_compile_cache/torch_aot_compile/aa/rank_0_0/model";
  const char* silent =
      "vllm/torch_compile_cache/torch_aot_compile/aa/inductor_cache/fxgraph/ab/fab/11";
  const Case cases[] = {
      {"jax hit", Script().Read(jax), StartResult::kHit, 1, 0, 0, 0},
      {"jax miss is written in place", Script().InPlace(jax), StartResult::kMiss, 0, 1, 0, 2},
      {"triton hit", Script().Read(triton), StartResult::kHit, 1, 0, 0, 0},
      {"triton miss", Script().MoveIn(triton), StartResult::kMiss, 0, 1, 0, 0},
      {"inductor unpacks triton kernels on its own hit",
       FullHit().Add(FileEventType::kDirectoryIn, triton), StartResult::kHit, 2, 0, 0, 0},
      {"deepgemm renames a whole directory", Script().Add(FileEventType::kDirectoryIn, gemm),
       StartResult::kMiss, 0, 1, 0, 0},
      {"vllm loads its model and unpacks entries again", Script().Read(vllm).MoveIn(silent),
       StartResult::kHit, 1, 0, 0, 0},
      {"vllm writes its model", Script().MoveIn(silent).MoveIn(vllm), StartResult::kMiss, 0, 1, 0,
       2},
      {"vllm inspects the model long before it compiles",
       Script().InPlace("vllm/modelinfos/x.json").MoveIn(vllm), StartResult::kMiss, 0, 1, 0, 0},
  };
  for (const Case& c : cases) {
    Expect(c);
  }
}

TEST(ClassifyStart, CloseAfterWriteCountsOnlyIfFileChanged) {
  const std::string index = "vllm/torch_compile_cache/aa/rank_0_0/backbone/vllm_compile_cache.py";
  EXPECT_EQ(ClassifyStart(Script().Read(index).Touch(index).record(), Window(),
                          caches::CacheTable::AllPresets())
                .result,
            StartResult::kHit);
  EXPECT_EQ(ClassifyStart(Script().Read(index).Add(FileEventType::kWritten, index).record(),
                          Window(), caches::CacheTable::AllPresets())
                .result,
            StartResult::kPartial);
}

TEST(ClassifyStart, MappedEntryCountsAsRead) {
  const std::string module = "torch_extensions/ops/ops.so";
  const Observation seen = ClassifyStart(Script().Add(FileEventType::kOpened, module).record(),
                                         Window(), caches::CacheTable::AllPresets());
  EXPECT_EQ(seen.result, StartResult::kHit);
  EXPECT_EQ(seen.entries_opened, 1);
  const Observation built =
      ClassifyStart(Script().InPlace(module).Add(FileEventType::kOpened, module).record(), Window(),
                    caches::CacheTable::AllPresets());
  EXPECT_EQ(built.result, StartResult::kMiss);
  EXPECT_EQ(built.entries_opened, 0);
}

TEST(ClassifyStart, OpenForWritingIsNoRead) {
  EXPECT_EQ(
      ClassifyStart(Script().Touch("cuda/a/b").record(), Window(), caches::CacheTable::AllPresets())
          .result,
      StartResult::kInert);
}

TEST(ClassifyStart, ReadOfOwnEntryIsNoHit) {
  const Observation seen = ClassifyStart(Script().MoveIn(kFx).Read(kFx).record(), Window(),
                                         caches::CacheTable::AllPresets());
  EXPECT_EQ(seen.result, StartResult::kMiss);
  EXPECT_EQ(seen.entries_opened, 0);
}

TEST(ClassifyStart, LastCompiledFileIsTimedFromTheStartOfTheContainer) {
  const auto compiled_after = [](const Script& script) {
    return ClassifyStart(script.record(), Window(), caches::CacheTable::AllPresets())
        .compiled_after;
  };
  EXPECT_EQ(compiled_after(FullHit()), Duration(0)) << "nothing was compiled";
  EXPECT_EQ(compiled_after(Script().MoveIn(kFx)), Duration(2'000));
  EXPECT_EQ(compiled_after(Script().MoveIn(kFx).Read(kFx).MoveIn(kAot).Touch(kLock).Read(kAot)),
            Duration(6'000));
  EXPECT_EQ(compiled_after(HollowHit()), Duration(13'000)) << "the last file is native code";
  EXPECT_EQ(compiled_after(Script().MoveIn(kFx).Incomplete()), Duration(2'000));
}

// An engine that writes one file after it has compiled everything: the span between its first and
// its last file says nothing.
TEST(ClassifyStart, OneFileAtTheEndHasATimeAndNoSpan) {
  const std::string entry = "jax/jit_step-" + std::string(64, 'a') + "-cache";
  const Script jax = Script().Touch(kLock).Touch(kLock).Touch(kLock).InPlace(entry);
  const Observation seen = ClassifyStart(jax.record(), Window(), caches::CacheTable::AllPresets());
  EXPECT_EQ(seen.result, StartResult::kMiss);
  EXPECT_LE(seen.compile_span, Duration(2'000));
  EXPECT_EQ(seen.compiled_after, Duration(9'000));
}

TEST(ClassifyStart, FileBeforeTheStartOfTheContainerHasTheTimeZero) {
  api::StartWindow window = Window();
  window.started_time += std::chrono::seconds(5);
  EXPECT_EQ(ClassifyStart(Script().MoveIn(kFx).record(), window, caches::CacheTable::AllPresets())
                .compiled_after,
            Duration(0));
}

TEST(ClassifyStart, RepeatedReadsCountAsOneEntry) {
  Script script;
  for (int i = 0; i < 100; ++i) {
    script.Read(kFx);
  }
  EXPECT_EQ(
      ClassifyStart(script.record(), Window(), caches::CacheTable::AllPresets()).entries_opened, 1);
}

TEST(ClassifyStart, UnsafeNamesAreIgnored) {
  Script script;
  for (const char* path : {"../../etc/passwd", "/etc/passwd", "inductor//x", "", "inductor/\xff/x",
                           "nowhere/fxgraph/a/b/c", "inductor/fxgraph/a/b"}) {
    script.Read(path).MoveIn(path).InPlace(path);
  }
  const Observation seen =
      ClassifyStart(script.record(), Window(), caches::CacheTable::AllPresets());
  EXPECT_EQ(seen.result, StartResult::kInert);
  EXPECT_EQ(seen.compile_span, Duration(0));
}

TEST(ClassifyStart, ClassifiesUserDefinedCache) {
  const auto table = caches::CacheTable::Make(
      {{.name = "mine", .env = "MY_CACHE", .path = "mine", .include = {"*.bin"}}});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(ClassifyStart(Script().Read("mine/a.bin").record(), Window(), *table).result,
            StartResult::kHit);
  EXPECT_EQ(ClassifyStart(Script().InPlace("mine/a.bin").record(), Window(), *table).result,
            StartResult::kMiss);
  EXPECT_EQ(ClassifyStart(Script().Read("mine/a.txt").record(), Window(), *table).result,
            StartResult::kInert);
}

TEST(StartWindow, IsWidenedForWholeSeconds) {
  EXPECT_EQ(WindowBegin(Window()), kStart - std::chrono::seconds(1));
  EXPECT_EQ(WindowEnd(Window()), kStart + std::chrono::seconds(32));
}

TEST(CompiledIn, ReturnsIndexEntriesThatArrivedAndNoOtherFile) {
  const Script script = Script()
                            .Read(kAot)
                            .Touch(kLock)
                            .InPlace(kMainSo)
                            .MoveIn(kPy)
                            .MoveIn(kFx)
                            .MoveIn(kFx)
                            .Touch("jax/a-cache")
                            .InPlace("jax/b-cache");
  EXPECT_THAT(CompiledIn(script.record(), kStart, caches::CacheTable::AllPresets()),
              ElementsAre(Pair(kFx, kStart + std::chrono::seconds(11)), Pair("jax/b-cache", _)));
}

TEST(UsedIn, ReturnsUsedFilesThatMayTravel) {
  const UsedFiles used = UsedIn(
      FullHit().MoveIn("inductor/zz/czz.py").InPlace("inductor/x.log").Read("etc/x").record(),
      caches::CacheTable::AllPresets());
  EXPECT_FALSE(used.all);
  EXPECT_THAT(used.paths, UnorderedElementsAre(kAot, kFx, kPy, kMainSo, "inductor/zz/czz.py"));
}

TEST(UsedIn, IncompleteRecordSelectsAllFiles) {
  EXPECT_TRUE(UsedIn(Script().Incomplete().record(), caches::CacheTable::AllPresets()).all);
}

}  // namespace
}  // namespace cachewarm::agent
