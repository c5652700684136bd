// SPDX-License-Identifier: Apache-2.0
#include "operator/engine_log/parse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cachewarm::engine_log {
namespace {

using api::EngineLog;
using api::EngineStart;

struct LogCase {
  std::string engine;
  std::string log;
  EngineStart expected;
};

// Lines as these versions write them, most of them from issues of vllm-project/vllm and
// sgl-project/sglang.
const std::vector<LogCase> kLogs = {
    {"vLLM 0.8, one process",
     "INFO 03-21 20:15:08 [loader.py:429] Loading weights took 2.56 seconds\n"
     "INFO 03-21 20:15:09 [gpu_model_runner.py:1176] Model loading took 14.9889 GB and 3.61 "
     "seconds\n"
     "INFO 03-21 20:15:21 [backends.py:425] Dynamo bytecode transform time: 8.05 s\n"
     "INFO 03-21 20:15:44 [monitor.py:33] torch.compile takes 28.77 s in total\n"
     "INFO 03-21 20:15:46 [kv_cache_utils.py:537] GPU KV cache size: 445,712 tokens\n"
     "INFO 03-21 20:15:46 [kv_cache_utils.py:540] Maximum concurrency for 8,192 tokens per "
     "request: 54.41x\n"
     "INFO 03-21 20:16:10 [gpu_model_runner.py:1442] Graph capturing finished in 24 secs, took "
     "0.57 GiB\n"
     "INFO 03-21 20:16:10 [core.py:138] init engine (profile, create kv cache, warmup model) took "
     "60.86 seconds\n",
     {.log = EngineLog::kFound,
      .weights_seconds = 2.56,
      .compile_seconds = 28.77,
      .graph_capture_seconds = 24,
      .init_seconds = 60.86,
      .kv_cache_tokens = 445'712}},
    {"vLLM 0.14, two stages with prefixes of their own",
     "(EngineCore_DP0 pid=181642) [Stage-0] INFO 02-02 18:25:03 [gpu_worker.py:358] Available KV "
     "cache memory: 100.43 GiB\n"
     "(EngineCore_DP0 pid=181642) [Stage-0] INFO 02-02 18:25:03 [kv_cache_utils.py:1305] GPU KV "
     "cache size: 2,925,232 tokens\n"
     "(EngineCore_DP0 pid=181642) [Stage-0] INFO 02-02 18:25:04 [core.py:273] init engine "
     "(profile, create kv cache, warmup model) took 2.60 seconds\n",
     {.log = EngineLog::kFound, .init_seconds = 2.6, .kv_cache_tokens = 2'925'232}},
    {"vLLM 0.19, warm start",
     "(EngineCore pid=1623438) INFO 04-13 22:09:33 [backends.py:1130] Dynamo bytecode transform "
     "time: 0.60 s\n"
     "(EngineCore pid=1623438) INFO 04-13 22:09:34 [backends.py:286] Directly load the compiled "
     "graph(s) for compile range (1, 2048) from the cache, took 0.904 s\n"
     "(EngineCore pid=1623438) INFO 04-13 22:09:34 [monitor.py:48] torch.compile took 1.61 s in "
     "total\n"
     "(EngineCore pid=1623438) INFO 04-13 22:09:35 [monitor.py:76] Initial profiling/warmup run "
     "took 0.11 s\n",
     {.log = EngineLog::kFound, .compile_seconds = 1.61}},
    {"vLLM 0.20, two ranks: the slowest one counts",
     "(Worker_TP0 pid=34322) INFO 05-06 20:59:57 [default_loader.py:384] Loading weights took "
     "24.84 seconds\n"
     "(Worker_TP1 pid=34323) INFO 05-06 20:59:58 [default_loader.py:384] Loading weights took "
     "25.31 seconds\n"
     "(Worker_TP0 pid=34322) INFO 05-06 20:59:59 [gpu_model_runner.py:4879] Model loading took "
     "12.66 GiB memory and 31.657031 seconds\n",
     {.log = EngineLog::kFound, .weights_seconds = 25.31}},
    {"vLLM 0.22, a loader that reports only the whole model",
     "(EngineCore pid=1265223) INFO 06-02 00:51:40 [model_runner.py:295] Model loading took 7.64 "
     "GiB and 32.969258 seconds\r\n",
     {.log = EngineLog::kFound, .weights_seconds = 32.969}},
    {"vLLM 0.28, progress bars and a draft model of the same rank",
     "Loading safetensors checkpoint shards: 100% Completed | 5/5 [00:02<00:00,  2.14it/s]\n"
     "(EngineCore pid=7476) INFO 07-25 13:42:16 [default_loader.py:430] Loading weights took 3.04 "
     "seconds\n"
     "(EngineCore pid=7476) INFO 07-25 13:42:18 [default_loader.py:430] Loading weights took 0.50 "
     "seconds\n"
     "Capturing CUDA graphs (FULL):   0%|          | 0/1 [00:00<?, ?it/s]\rCapturing CUDA graphs "
     "(FULL): 100%|#########| 1/1 [00:00<00:00,  4.98it/s]\n"
     "(EngineCore pid=7476) INFO 07-25 13:42:35 [model_runner.py:960] Graph capturing finished in "
     "4 secs, took 0.11 GiB\n",
     {.log = EngineLog::kFound, .weights_seconds = 3.54, .graph_capture_seconds = 4}},
    {"vLLM 0.32",
     "(EngineCore pid=93) INFO 11-20 10:00:01 [kv_cache_utils.py:2327] GPU KV cache size: 188,640 "
     "tokens, Maximum concurrency for 131,072 tokens per request: 5.23x\n"
     "(EngineCore pid=93) INFO 11-20 10:00:02 [monitor.py:92] torch.compile and initial "
     "profiling/warmup run together took 7.50 s in total\n"
     "(EngineCore pid=93) INFO 11-20 10:00:03 [core.py:395] init engine (profile, create kv "
     "cache, warmup model) took 21.90 s (compilation: 7.50 s)\n",
     {.log = EngineLog::kFound,
      .compile_seconds = 7.5,
      .init_seconds = 21.9,
      .kv_cache_tokens = 188'640}},
    {"vLLM 0.32, KV cache also in host memory",
     "(EngineCore pid=93) INFO 11-20 10:00:01 [kv_cache_utils.py:2327] GPU + host KV cache size: "
     "4,096 tokens, Maximum concurrency for 2,048 tokens per request: 2.00x\n",
     {.log = EngineLog::kFound, .kv_cache_tokens = 4'096}},
    {"vLLM 0.32 on CPU",
     "(EngineCore pid=93) INFO 11-20 10:00:01 [kv_cache_utils.py:2327] CPU KV cache size: 131,072 "
     "tokens, Maximum concurrency for 256 tokens per request: 512.00x\n",
     {.log = EngineLog::kFound, .kv_cache_tokens = 131'072}},
    {"SGLang 0.4, without the duration of the load",
     "[2025-11-30 12:50:02] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail "
     "mem=160.03 GB, mem usage=15.30 GB.\n"
     "[2025-11-30 12:50:10] KV Cache is allocated. #tokens: 2243474, K size: 59.91 GB, V size: "
     "59.91 GB\n"
     "[2025-11-30 12:50:15] Capture cuda graph end. Time elapsed: 5.37 s. mem usage=1.44 GB. avail "
     "mem=38.05 GB.\n"
     "[2025-11-30 12:50:16] max_total_num_tokens=2243474, chunked_prefill_size=16384, "
     "max_prefill_tokens=16384, max_running_requests=4096, context_len=40960\n",
     {.log = EngineLog::kFound, .graph_capture_seconds = 5.37, .kv_cache_tokens = 2'243'474}},
    {"SGLang 0.5, two ranks, a draft model, a log line behind a progress bar",
     "[2026-02-26 05:24:09 TP0] Load weight end. elapsed=152.41 s, type=GlmMoeDsaForCausalLM, "
     "avail mem=194.04 GB, mem usage=89.58 GB.\n"
     "[2026-02-26 05:24:11 TP1] Load weight end. elapsed=154.09 s, type=GlmMoeDsaForCausalLM, "
     "avail mem=194.04 GB, mem usage=89.58 GB.\n"
     "[2026-02-26 05:25:01 TP0] Load weight end. elapsed=49.46 s, type=GlmMTP, avail mem=1 GB.\n"
     "[2026-02-26 05:26:01 TP0] Capture target decode CUDA graph end. elapsed=4.83 s, mem "
     "usage=0.27 GB, avail mem=5.34 GB.\n"
     "Capturing batches:   0%|   | 0/5 [00:00<?, ?it/s][2026-02-26 05:26:05 TP0] Capture draft "
     "decode CUDA graph end. elapsed=1.30 s, mem usage=0.27 GB\n"
     "[2026-02-26 05:26:06 DP1 TP1] max_total_num_tokens=3080960, chunked_prefill_size=8192\n"
     "[2026-02-26 05:26:06 DP0 TP0] max_total_num_tokens=3080950, chunked_prefill_size=8192\n",
     {.log = EngineLog::kFound,
      .weights_seconds = 201.87,
      .graph_capture_seconds = 6.13,
      .kv_cache_tokens = 3'080'950}},
    {"another program",
     "Listening on 0.0.0.0:8080\nREADY hits=3 misses=0 compile_s=1.5\n",
     {.log = EngineLog::kNothingFound}},
    {"an empty log", "", {.log = EngineLog::kNothingFound}},
};

std::string Text(const EngineStart& start) {
  return std::to_string(static_cast<int>(start.log)) + " weights " +
         std::to_string(start.weights_seconds) + " compile " +
         std::to_string(start.compile_seconds) + " graphs " +
         std::to_string(start.graph_capture_seconds) + " init " +
         std::to_string(start.init_seconds) + " tokens " + std::to_string(start.kv_cache_tokens);
}

TEST(ParseEngineLog, ReadsEachVersion) {
  for (const LogCase& test : kLogs) {
    EXPECT_EQ(Text(ParseEngineLog(test.log)), Text(test.expected)) << test.engine;
  }
}

TEST(ParseEngineLog, ATotalIsNotAddedToAnEarlierOne) {
  EXPECT_EQ(
      ParseEngineLog("torch.compile takes 5.0 s in total\ntorch.compile takes 7.0 s in total\n")
          .compile_seconds,
      7);
}

// Returns the sum of all numbers that the log reports.
double NumbersIn(const std::string& log) {
  const EngineStart start = ParseEngineLog(log);
  return start.weights_seconds + start.compile_seconds + start.graph_capture_seconds +
         start.init_seconds + static_cast<double>(start.kv_cache_tokens);
}

TEST(ParseEngineLog, FakeNumbersAreIgnored) {
  for (const char* number : {"inf", "nan", "-1", "+1", "1e9", "0x10", "", ".", "1.2.3", "604801",
                             "1_0", " 1", ",5", "99999999999999999999999999999", "1\u0661"}) {
    EXPECT_EQ(NumbersIn(std::string("Loading weights took ") + number + " seconds\n"), 0) << number;
  }
  for (const char* number :
       {"0", "-1", "inf", "1,000,000,000,001", "18446744073709551616", "1e3"}) {
    EXPECT_EQ(NumbersIn(std::string("GPU KV cache size: ") + number + " tokens\n"), 0) << number;
  }
  EXPECT_EQ(NumbersIn("Loading weights took 604800 seconds\n"), 604'800);
  EXPECT_EQ(NumbersIn("Loading weights took 3 seconds\nLoading weights took 604801 seconds\n"), 3)
      << "an ignored number changes no other";
  EXPECT_EQ(NumbersIn("GPU KV cache size: 1,000,000,000,000 tokens\n"), 1e12);
}

TEST(ParseEngineLog, SumBeyondAWeekIsIgnored) {
  std::string log;
  for (int i = 0; i < 3; ++i) {
    log += "Loading weights took 300000 seconds\n";
  }
  EXPECT_EQ(NumbersIn(log), 0);
}

TEST(ParseEngineLog, TruncatedMessageIsIgnored) {
  EXPECT_EQ(NumbersIn("Loading weights took 2"), 0);
  EXPECT_EQ(NumbersIn("GPU KV cache size: 188"), 0);
  EXPECT_EQ(NumbersIn("init engine (profile"), 0);
  EXPECT_EQ(NumbersIn("init engine (" + std::string(48, 'x') + ") took 3 s"), 3);
  EXPECT_EQ(NumbersIn("init engine (" + std::string(49, 'x') + ") took 3 s"), 0);
}

TEST(ParseEngineLog, TextOfRequestsIsNotAMessage) {
  const std::string fake = "Loading weights took 77 seconds";
  EXPECT_EQ(NumbersIn("INFO 01-01 [logger.py:4] Received request: prompt: '" + fake + "'\n"), 0);
  for (const char* serves : {"(APIServer pid=7) INFO:     Application startup complete.\n",
                             "[2026-01-01 00:00:00] The server is fired up and ready to roll!\n"}) {
    EXPECT_EQ(NumbersIn(serves + fake + "\n"), 0) << serves;
    EXPECT_EQ(NumbersIn(fake + "\n" + serves), 77) << serves;
  }
}

TEST(ParseEngineLog, ControlCharactersDoNotHideLines) {
  const std::string zero(1, '\0');
  EXPECT_EQ(
      NumbersIn("\x1b[32mINFO\x1b[0m 01-01 00:00:00 [a.py:1] Loading weights took 3 seconds\n" +
                zero + "\xff\xfe\n[a.py:1] torch.compile took 4 s in total\n"),
      7);
}

TEST(ParseEngineLog, HostileLogIsBounded) {
  const std::string message = "Loading weights took 1 seconds\n";
  EXPECT_EQ(NumbersIn(std::string(kLogBytesMax, 'x') + "\n" + message), 0) << "beyond the limit";
  EXPECT_EQ(NumbersIn(std::string(1U << 20U, 'x') + "\n" + message), 1) << "after a huge line";
  std::string brackets;
  while (brackets.size() < kLogBytesMax) {
    brackets += "] Capture ";
  }
  EXPECT_EQ(NumbersIn(brackets), 0);
  EXPECT_EQ(NumbersIn(std::string(4096, 'x') + "] " + message), 0) << "far behind in a long line";
  std::string ranks;
  for (int i = 0; i < 20'000; ++i) {
    ranks += "(Rank" + std::to_string(i) + " pid=1) [a] " + message;
  }
  EXPECT_EQ(NumbersIn(ranks), 1);
}

}  // namespace
}  // namespace cachewarm::engine_log
