// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/api/samples.h"

#include "lib/codec/json_value.h"

namespace cachewarm::api {
namespace {

using codec::Json;

WallTime At(int64_t millis) {
  return WallTime(Duration(1'700'000'000'000 + millis));
}

CacheChoice OwnCache() {
  return {.name = "mine", .env = "MY_CACHE", .path = "my/cache", .include = {"*.so"}};
}

HungStart FullHungStart() {
  return {.pod_uid = "99cc",
          .pod = "llama-0",
          .node = "node-a",
          .group = "leaderworkerset.sigs.k8s.io/name=llama/0",
          .started_time = At(4000),
          .detected_time = At(904'000)};
}

SuspendedBundle FullSuspendedBundle() {
  return {.key = KeyOf('a'),
          .digest = DigestOfText("hangs"),
          .gpu_type = "nvidia/h100-80gb-hbm3/sm_90",
          .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21",
          .image = "registry.example.com/llama:1",
          .native = false,
          .extends = {DigestOfText("before").ToString()},
          .suspended_time = At(905'000),
          .hung_starts = {FullHungStart()},
          .message = "2 starts hung"};
}

BundleStatus FullBundle() {
  return {.key = KeyOf('a'),
          .gpu_type = "nvidia/h100-80gb-hbm3/sm_90",
          .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21",
          .image = "registry.example.com/llama:1",
          .digest = DigestOfText("bundle"),
          .bytes = 123'456'789,
          .files = 812,
          .native = false,
          .compile_seconds = 41.25,
          .builder_pod = "llama-6f9c-x2",
          .builder_node = "node-a",
          .published_time = At(1000),
          .harvested_time = At(1500),
          .extends = {DigestOfText("before").ToString()},
          .nodes_desired = 12,
          .nodes_ready = 11,
          .nodes_failed = 1,
          .nodes_waiting = 3,
          .hung_starts = {FullHungStart()},
          .factors = {{.name = "env/HOME", .value = "h:0123456789abcdef"}},
          .message = "1 node has no room"};
}

BuilderStatus FullBuilder() {
  return {.key = KeyOf('b'),
          .gpu_type = "cpu",
          .cpu_class = "x86-64-v3/intel-6-85/0123abcd",
          .image = "registry.example.com/llama:2",
          .revision = "6f9c",
          .settings_hash = "89abcdef0123",
          .pod_uid = "77aa",
          .pod_name = "llama-6f9c-x3",
          .job = "llama-bbbbbbbb-2",
          .node = "node-b",
          .state = BuilderState::kFailed,
          .attempt = 2,
          .bundles_suspended = 1,
          .gpu_seconds = 41.5,
          .elected_time = At(2000),
          .answered_time = At(2500),
          .finished_time = At(3250),
          .reason = "BuilderTimeout",
          .message = "never ready",
          .ranks = {"77aa", "77ab"},
          .captured = CapturedBundle{.digest = DigestOfText("ranks"),
                                     .bytes = 3456,
                                     .files = 7,
                                     .native = false,
                                     .compile_seconds = 2.5,
                                     .captured_time = At(3000),
                                     .factors = {{.name = "image", .value = "server:1"}}},
          .proof = ProofStatus{.job = "warm-0a1b2c3d-2-proof",
                               .pod_uid = "77bb",
                               .started_time = At(3000),
                               .requested_time = At(4000),
                               .answered_time = At(5000)}};
}

HarvestStatus FullHarvest() {
  return {.key = KeyOf('a'),
          .number = 3,
          .node = "node-a",
          .pod_uid = "77aa",
          .run_as = "u1000",
          .generation = "5c0d9f21",
          .units = 12,
          .set = "0123456789abcdef",
          .base_digest = DigestOfText("before"),
          .digest = DigestOfText("bundle"),
          .started_time = At(6000),
          .finished_time = At(7000),
          .reason = "Harvested",
          .message = "12 units",
          .refusal = "spec.paused is set",
          .harvested_sets = {"0123456789abcdef"}};
}

Suspension FullSuspension() {
  return {.reason = "PodsCrashing",
          .message = "pod llama-6f9c-x5 ended 2 times",
          .suspended_time = At(4000),
          .template_hash = "t-0123456789ab",
          .policy_hash = "ba9876543210",
          .generation = 7,
          .nodes = {{.name = "node-d", .uid = "99cc", .boot_id = "1f2e3d4c"}},
          .revision = "6f9c",
          .resumed_time = At(5000)};
}

Starts FullStarts() {
  const StartSample sample{.pod_uid = "88bb",
                           .pod = "llama-6f9c-x4",
                           .node = "node-c",
                           .key = KeyOf('a'),
                           .gpu_type = "cpu",
                           .result = StartResult::kHit,
                           .start_seconds = 5,
                           .hold_seconds = 2,
                           .compile_seconds = 0.5,
                           .compiled_after_seconds = 4.5,
                           .saved_seconds = -1.5,
                           .devices = 2,
                           .cause = "argument --dtype differs",
                           .engine = EngineStart{.log = EngineLog::kFound,
                                                 .weights_seconds = 1.25,
                                                 .compile_seconds = 12.5,
                                                 .graph_capture_seconds = 3,
                                                 .init_seconds = 20.5,
                                                 .kv_cache_tokens = 188'640}};
  const StartCounts counts = {.builder = 1,
                              .cold = 2,
                              .hit = 3,
                              .partial = 4,
                              .miss = 5,
                              .inert = 6,
                              .hollow = 7,
                              .unknown = 8};
  return {.counting_started_time = At(0),
          .counts = counts,
          .gpu_types = {{.gpu_type = "cpu",
                         .counts = counts,
                         .saved_seconds = 13'260,
                         .lost_seconds = 3,
                         .saved_gpu_seconds = 26'520,
                         .lost_gpu_seconds = 6,
                         .builder_gpu_seconds = 90.5,
                         .late_compiles = 21}},
          .hold_median_seconds = 2,
          .cold_median_seconds = 41,
          .warm_median_seconds = 5.5,
          .saved_seconds = 13'260,
          .lost_seconds = 3,
          .recent = {sample},
          .counted_pod_uids = {"77aa", "88bb"},
          .late_reports = {{.node = "node-a", .report = 1'700'000'060'000}}};
}

}  // namespace

std::string KeyOf(char digit) {
  return std::string(64, digit);
}
Digest DigestOfText(const std::string& text) {
  return DigestOf(text);
}

WarmupSpec FullWarmupSpec() {
  WarmupSpec spec;
  spec.workload_ref = WorkloadRef{"apps/v1", "Deployment", "llama"};
  spec.pod_template = std::make_shared<const Json>(
      Json{{"metadata", {{"labels", {{"app", "llama"}}}}},
           {"spec", {{"containers", Json::array({{{"name", "server"}}})}}}});
  spec.selector = {{"app", "llama"}};
  spec.container = "server";
  spec.caches = {{.name = "vllm"}, OwnCache()};
  spec.gpu_types = {"cpu", "nvidia/h100-80gb-hbm3/sm_90"};
  spec.node_selector = {{"pool", "gpu"}};
  spec.compile = {.builder = Builder::kJob,
                  .proof = Proof::kEngine,
                  .timeout_seconds = 900,
                  .pending_seconds = 300,
                  .settle_seconds = 2,
                  .backoff_limit = 5};
  spec.compile.overrides = {
      .command = {"serve"},
      .args = {"--warm"},
      .env = {{.name = "MODE", .value = "warm"}},
      .tolerations = {{.key = "spare", .op = "Equal", .value = "yes", .effect = "NoSchedule"}},
      .node_selector = {{"pool", "spare"}},
      .resources = {{.container = "proxy",
                     .requests = {{"cpu", "500m"}},
                     .limits = {{"nvidia.com/gpu", "0"}}}}};
  spec.compile.requests = {{.method = "POST",
                            .path = "/v1/completions?a=b",
                            .port = 8000,
                            .headers = {{.name = "Content-Type", .value = "application/json"}},
                            .body = "{}",
                            .expect_status = 201,
                            .repeat = 2,
                            .timeout_seconds = 30},
                           {.path = "/", .port = 1}};
  spec.gate = {.mode = GateMode::kNever, .max_hold_seconds = 120};
  spec.hang_seconds = 900;
  spec.retain = 3;
  spec.harvest = true;
  spec.paused = true;
  return spec;
}

WarmupStatus FullWarmupStatus() {
  WarmupStatus status;
  status.observed_generation = 7;
  status.min_available = 3;
  status.conditions = {{"Ready", "True", "Injecting", "accepted", 7, At(0)}};
  status.injection = Injection{.labels = {{"app", "llama"}},
                               .container = "server",
                               .env = {{"TRITON_CACHE_DIR", "/var/cache/cachewarm/triton"}},
                               .gate = true,
                               .node_selector = {{"pool", "a"}},
                               .warm_revisions = {"6f9c"}};
  status.suspension = FullSuspension();
  status.admitted = AdmittedContainer{
      .revision = "t-0123456789ab", .image = "mirror.example/server:1", .devices = 2};
  status.bundles = {FullBundle()};
  status.suspended_bundles = {FullSuspendedBundle()};
  status.builders = {FullBuilder()};
  status.harvests = {FullHarvest()};
  status.starts = FullStarts();
  status.summary = {
      .types = "2/2", .nodes = "12/12", .hit = "97%", .partial = "2%", .saved = "3h41m"};
  return status;
}

NodeCacheSpec FullNodeCacheSpec() {
  NodeCacheSpec spec;
  spec.node = {.devices = {{"nvidia.com/gpu", 8}},
               .labels = {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}},
               .published = {{.driver = "gpu.nvidia.com",
                              .product = "NVIDIA H100 80GB HBM3",
                              .compute_capability = "9.0.0",
                              .count = 8}}};
  spec.warmups = {{.uid = "0b9c",
                   .ns = "default",
                   .name = "llama",
                   .run_as = {"image", "u1000"},
                   .caches = {OwnCache()},
                   .bundles = {{KeyOf('a'), DigestOfText("bundle"), 123'456'789}},
                   .renew = 2,
                   .renewed_for = {"77aa:1", "88bb:1"},
                   .fetch_priority = kFetchPriorityBound,
                   .fetch_granted_time = At(1001),
                   .retain = 0,
                   .late_counted = 1'700'000'060'000,
                   .harvest = true}};
  spec.evict = {
      {.generation = "cold-0123456789abcdef", .warmup_uid = "0b9c", .unlinked_time = At(70'000)}};
  spec.captures = {{.id = "77aa",
                    .warmup_uid = "0b9c",
                    .pod_uid = "77aa",
                    .run_as = "u1000",
                    .key = KeyOf('b'),
                    .factors = {.gpu_type = "cpu",
                                .cpu_class = "x86-64-v3/intel-6-85/0123abcd",
                                .image = "registry.example.com/llama:2",
                                .devices = 2,
                                .container = "server"},
                    .settle_seconds = 2,
                    .started_time = At(1000),
                    .ready_time = At(42'000),
                    .base_digest = DigestOfText("ranks"),
                    .grouped = true,
                    .generation = "5c0d9f21"}};
  spec.starts = {{.pod_uid = "88bb",
                  .warmup_uid = "0b9c",
                  .run_as = "image",
                  .started_time = At(3000),
                  .ready_time = At(8000)}};
  return spec;
}

NodeCacheStatus FullNodeCacheStatus() {
  NodeCacheStatus status;
  status.node = {.gpu_type = "nvidia/h100-80gb-hbm3/sm_90",
                 .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21",
                 .devices = 8,
                 .driver = "570.86.15",
                 .agent_version = "0.1.0",
                 .extends_bundles = true,
                 .root = {.path = "/var/lib/cachewarm",
                          .writable = true,
                          .executable = true,
                          .used_bytes = 1'500'000'000,
                          .limit_bytes = 20'000'000'000,
                          .free_bytes = 200'000'000'000,
                          .evictable_bytes = 700'000'000,
                          .evicted_bytes = 300'000'000,
                          .message = "nearly full"}};
  status.conditions = {{.type = "GPUNotVisible",
                        .status = "False",
                        .reason = "DevicesVisible",
                        .message = "the driver reports 8 devices",
                        .observed_generation = 3,
                        .last_transition_time = At(50'000)}};
  status.heartbeat = At(60'000);
  status.warmups = {{.uid = "0b9c",
                     .prepared = {"image", "u1000"},
                     .generation = "5c0d9f21",
                     .bundles = {{.digest = DigestOfText("bundle"),
                                  .state = BundleState::kFetching,
                                  .bytes_done = 1024,
                                  .fetch_seconds = 1.5,
                                  .reason = "FetchFailed",
                                  .message = "registry is away"}},
                     .late_compiles = {.report = 1'700'000'061'000,
                                       .entries = 12,
                                       .first_time = At(40'000),
                                       .last_time = At(60'000)},
                     .harvestable = {.generation = "5c0d9f21",
                                     .run_as = "u1000",
                                     .units = 12,
                                     .set = "0123456789abcdef",
                                     .message = "file events of the tree were lost"},
                     .message = "u1001 cannot be prepared"}};
  status.captures = {
      {.id = "77aa",
       .state = CaptureState::kPushed,
       .digest = DigestOfText("bundle"),
       .bytes = 123'456'789,
       .files = 812,
       .native = false,
       .compile_seconds = 41.25,
       .left_behind = {.files = 3, .bytes = 10'000'000, .directories = {"new_engine/kernels", "."}},
       .reason = "Published",
       .message = "pushed"}};
  status.starts = {{.pod_uid = "88bb",
                    .result = StartResult::kHollow,
                    .opened = 30,
                    .written = 2,
                    .native_built = 1,
                    .compile_seconds = 3.5,
                    .compiled_after_seconds = 9.25,
                    .differing_key_factors = {"env.VLLM_USE_V1", "config_hash"}}};
  status.evictable = {{.generation = "retired-5c0d9f215c0d9f215c0d9f215c0d9f21-0",
                       .warmup_uid = "0b9c",
                       .unlinked_time = At(70'000)}};
  return status;
}

Json MinimalWarmup() {
  return {{"apiVersion", "cachewarm.io/v1alpha1"},
          {"kind", "CacheWarmup"},
          {"metadata", {{"name", "llama"}, {"namespace", "default"}, {"uid", "0b9c"}}},
          {"spec", {{"selector", {{"matchLabels", {{"app", "llama"}}}}}}}};
}

Json MinimalNodeCache() {
  return {{"apiVersion", "cachewarm.io/v1alpha1"},
          {"kind", "NodeCache"},
          {"metadata", {{"name", "node-a"}}}};
}

}  // namespace cachewarm::api
