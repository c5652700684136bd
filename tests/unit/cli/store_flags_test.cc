// SPDX-License-Identifier: Apache-2.0
// Tests every store option with every verb that has it, from the command line to the requests that
// a registry receives, and the proxies of the environment.
#include <algorithm>
#include <memory>

#include "cli/reference.h"
#include "gmock/gmock.h"
#include "lib/http/client.h"
#include "lib/megacache/artifact.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/await.h"
#include "tests/fakes/noise.h"
#include "tests/fakes/tunnel_proxy.h"
#include "tests/unit/cli/program_fixture.h"
#include "tests/unit/cli/small_registry.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"
#include "tests/unit/lib/bundle/store/registry_fixture.h"

namespace cachewarm::cli {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

// Certificates for all tests of this file, because openssl needs a process for each.
struct Certificates {
  TempDir folder;
  fakes::Authority authority{folder.path(), "local"};
  fakes::Authority other{folder.path(), "other"};
  std::string server = authority.Issue("registry", "DNS:registry.test,IP:127.0.0.1");
  std::string client = authority.Issue("client", "DNS:client");

  fakes::RawServerOptions Tls() const {
    return {.certificate_file = server + ".crt", .key_file = server + ".key"};
  }
};

const Certificates& Shared() {
  static const Certificates certificates;
  return certificates;
}

bool TakesStoreOptions(const Verb& verb) {
  const std::vector<Option> options = OptionsOf(verb);
  return std::any_of(options.begin(), options.end(),
                     [](const Option& option) { return option.name == "auth-file"; });
}

std::vector<std::string> StoreVerbs() {
  std::vector<std::string> names;
  for (const Verb& verb : AllVerbs()) {
    if (TakesStoreOptions(verb)) {
      names.emplace_back(verb.name);
    }
  }
  return names;
}

// A registry with the bundle oci://HOST/team/llama, and calls of verbs that read this bundle.
class StoreFlags : public ProgramFixture {
 protected:
  StoreFlags() {
    http::PrepareProcess();
    temp_.Write("key.pem", bundle::kSigner);
    temp_.Write("tree/inductor/dynamo/code_state_job.pkl", "profile");
    temp_.Write("artifact.bin", megacache::Write({{"pgo", "other", "profile"}}));
    Publish();
    clock_ = &impatient_;
  }

  // Packs "tree" into `content_`.
  void Publish() {
    const SmallRegistry plain(content_);
    const Outcome packed = Run({"pack", temp_ / "tree", "oci://" + plain.host() + "/team/llama",
                                "--node-facts", temp_ / "facts.json"});
    EXPECT_EQ(packed.code, 0) << packed.err;
    for (const std::string& line : plain.asked()) {
      if (const size_t at = line.find("/manifests/k-"); at != std::string::npos) {
        tag_ = line.substr(at + 11, line.find(' ', at) - at - 11);
      }
    }
  }

  // Calls `verb` with the bundle of the registry at `host`. Each call writes to names of its own.
  Outcome Call(const std::string& verb, const std::string& host, const Words& flags) {
    const std::string fresh = std::to_string(++calls_);
    const std::string name = "oci://" + host + "/team/llama";
    const std::string bundle = name + ":" + tag_;
    const std::string facts = temp_ / "facts.json";
    const std::map<std::string, Words> calls = {
        {"pack",
         {temp_ / "tree", name + ":again" + fresh, "--base", bundle, "--node-facts", facts}},
        {"unpack", {bundle, temp_ / ("unpacked" + fresh)}},
        {"push", {bundle, name + "-copy" + fresh}},
        {"pull", {bundle, fmt::format("layout://{}/pulled{}/llama", temp_.path(), fresh)}},
        {"sign", {bundle, "--key", temp_ / "key.pem"}},
        {"verify", {bundle}},
        {"inspect", {bundle}},
        {"import",
         {temp_ / "artifact.bin", "--store", "oci://" + host + "/team", "--name", "llama", "--dir",
          temp_ / ("import" + fresh), "--node-facts", facts, "--python", "/nonexistent"}},
        {"gc", {"--store", "oci://" + host, "--repository", "team/llama"}},
        {"export", {"--bundle", bundle, "--output", temp_ / "exported.bin"}},
        {"run",
         {"--store", "oci://" + host + "/team", "--name", "llama", "--dir", temp_ / ("run" + fresh),
          "--node-facts", facts}},
        {"load",
         {"--store", "oci://" + host + "/team", "--name", "llama", "--dir",
          temp_ / ("load" + fresh), "--node-facts", facts, "--python", "/nonexistent"}},
        {"save",
         {"--store", "oci://" + host + "/team", "--name", "llama", "--dir",
          temp_ / ("save" + fresh), "--node-facts", facts, "--python", "/nonexistent"}}};
    temp_.Write("save" + fresh + "/inductor/ab/c" + fresh + ".py", "print(2)\n");
    Words words = {verb};
    // These three limit the time that the store takes: a clock that jumps would end each at once.
    const bool limits_time = verb == "run" || verb == "load" || verb == "save";
    clock_ = limits_time ? nullptr : &impatient_;
    if (limits_time) {
      words.insert(words.end(), {"--max-wait", "5"});
    }
    words.insert(words.end(), calls.at(verb).begin(), calls.at(verb).end());
    words.insert(words.end(), flags.begin(), flags.end());
    if (verb == "run") {
      words.insert(words.end(), {"--", "/bin/true"});
    }
    return Run(words);
  }
  // True if the verb reached the store. A command that `run` starts cold succeeds nevertheless.
  static bool Works(const Outcome& outcome) {
    return outcome.code == 0 && outcome.err.find("starting cold") == std::string::npos;
  }

  RegistryContent content_;
  bundle::ImpatientClock impatient_;
  std::string tag_;
  int calls_ = 0;
};

class StoreFlag : public StoreFlags, public ::testing::WithParamInterface<std::string> {
 protected:
  Outcome Call(const std::string& host, const Words& flags) {
    return StoreFlags::Call(GetParam(), host, flags);
  }
  // The store that the verb opens with these flags.
  std::shared_ptr<bundle::Store> Open(const std::string& host, const Words& flags) {
    const auto verb = std::find_if(AllVerbs().begin(), AllVerbs().end(),
                                   [](const Verb& each) { return each.name == GetParam(); });
    const auto arguments = Arguments::Parse(flags, OptionsOf(*verb));
    EXPECT_TRUE(arguments.ok()) << arguments.status();
    std::ostringstream text;
    const Console console{.out = text, .err = text, .err_is_terminal = false, .clock = impatient_};
    const auto opened = OpenReference("oci://" + host + "/team/llama", *arguments, console);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened->store;
  }
};

INSTANTIATE_TEST_SUITE_P(Verbs, StoreFlag, ::testing::ValuesIn(StoreVerbs()),
                         [](const auto& each) { return each.param; });

TEST_P(StoreFlag, AuthFileHasTheCredentials) {
  const std::string credentials = "d2FybTpzZWNyZXQ=";  // warm:secret
  const SmallRegistry registry(content_, {.server = {}, .credentials = credentials});
  temp_.Write("auth.json",
              fmt::format(R"({{"auths":{{"{}":{{"auth":"{}"}}}}}})", registry.host(), credentials));
  const Outcome with = Call(registry.host(), {"--auth-file", temp_ / "auth.json"});
  EXPECT_TRUE(Works(with)) << with.err;
  EXPECT_FALSE(Works(Call(registry.host(), {})));
}

TEST_P(StoreFlag, CaFileDecidesWhichServerIsTrusted) {
  const SmallRegistry registry(content_, {.server = Shared().Tls()});
  const Outcome with = Call(registry.host(), {"--ca-file", Shared().authority.ca()});
  EXPECT_TRUE(Works(with)) << with.err;
  EXPECT_FALSE(Works(Call(registry.host(), {"--ca-file", Shared().other.ca()})));
}

TEST_P(StoreFlag, ClientCertificateAndKeyAreSent) {
  fakes::RawServerOptions server = Shared().Tls();
  server.client_ca_file = Shared().authority.ca();
  const SmallRegistry registry(content_, {.server = server});
  const Words trusted = {"--ca-file", Shared().authority.ca()};
  Words flags = trusted;
  flags.insert(flags.end(), {"--client-certificate", Shared().client + ".crt", "--client-key",
                             Shared().client + ".key"});
  const Outcome with = Call(registry.host(), flags);
  EXPECT_TRUE(Works(with)) << with.err;
  EXPECT_FALSE(Works(Call(registry.host(), trusted)));
}

TEST_P(StoreFlag, InsecureHostIsAccessedByPlainHttp) {
  const SmallRegistry registry(content_);
  // With --ca-file, TLS is expected on loopback too.
  const Words secure = {"--ca-file", Shared().authority.ca()};
  Words flags = secure;
  flags.insert(flags.end(),
               {"--insecure-host", "unrelated.test", "--insecure-host", registry.host()});
  const Outcome with = Call(registry.host(), flags);
  EXPECT_TRUE(Works(with)) << with.err;
  // The registry waits for more of what it takes for a request: the call is stopped.
  const SmallRegistry plain(content_);
  const std::jthread stopper([&] {
    fakes::Await([&] { return plain.connections() > 0; });
    stop_.request_stop();
  });
  EXPECT_FALSE(Works(Call(plain.host(), secure)));
  EXPECT_THAT(plain.asked(), IsEmpty());
}

TEST_P(StoreFlag, MirrorIsReadBeforeTheRegistry) {
  const SmallRegistry registry(content_);
  RegistryContent nothing;
  const SmallRegistry empty(nothing);
  const SmallRegistry mirror(content_);
  const Outcome outcome =
      Call(registry.host(), {"--mirror", empty.host() + "/copy", "--mirror", mirror.host()});
  EXPECT_TRUE(Works(outcome)) << outcome.err;
  const auto by_digest = StartsWith("GET /v2/team/llama/manifests/sha256:");
  EXPECT_THAT(empty.asked(), Contains(StartsWith("GET /v2/copy/team/llama/manifests/sha256:")));
  EXPECT_THAT(mirror.asked(), Contains(by_digest));
  EXPECT_THAT(registry.asked(), Not(Contains(by_digest)));
}

TEST_P(StoreFlag, ProxyReceivesTheRequests) {
  const SmallRegistry proxy(content_);
  const Outcome outcome = Call(
      "registry.test", {"--insecure-host", "registry.test", "--proxy", "http://" + proxy.host()});
  EXPECT_TRUE(Works(outcome)) << outcome.err;
  EXPECT_THAT(proxy.asked(), Not(IsEmpty()));
  EXPECT_THAT(proxy.asked(), Each(HasSubstr(" http://registry.test:80/v2/team/llama")));
}

TEST_P(StoreFlag, ProxyTunnelsTls) {
  const SmallRegistry registry(content_, {.server = Shared().Tls()});
  const fakes::TunnelProxy proxy(registry.port());
  const Outcome outcome = Call("registry.test", {"--ca-file", Shared().authority.ca(), "--proxy",
                                                 "http://" + proxy.address()});
  EXPECT_TRUE(Works(outcome)) << outcome.err;
  EXPECT_THAT(proxy.asked(), Contains("CONNECT registry.test:443 HTTP/1.1"));
}

Duration Sum(const std::vector<Duration>& all) {
  Duration sum{0};
  for (const Duration each : all) {
    sum += each;
  }
  return sum;
}

TEST_P(StoreFlag, BytesPerSecondSlowsDownloads) {
  constexpr int64_t kBytes = 256 << 10;
  const SmallRegistry registry(content_);
  const std::string blob(kBytes, 'x');
  content_.Put("team/llama/blobs/" + DigestOf(blob).ToString(), blob);
  const auto seconds_for = [&](const Words& flags) {
    const Duration before = Sum(impatient_.slept());
    bundle::TextSink sink(1U << 20U);
    const absl::Status read =
        Open(registry.host(), flags)
            ->ReadBlob("team/llama", {.digest = DigestOf(blob), .bytes = kBytes}, sink, {});
    EXPECT_TRUE(read.ok()) << read;
    return std::chrono::duration<double>(Sum(impatient_.slept()) - before).count();
  };
  EXPECT_NEAR(seconds_for({"--bytes-per-second", "65536"}), 3, 0.1)
      << "256 KiB, of which 64 KiB come at once";
  EXPECT_EQ(seconds_for({}), 0);
}

TEST_F(StoreFlags, BytesPerSecondSlowsWholeVerbs) {
  temp_.Write("tree/inductor/ab/clarge.py", fakes::Noise(300'000, 1));
  Publish();
  const SmallRegistry registry(content_);
  for (const char* verb : {"unpack", "push", "pull", "verify"}) {
    const Duration before = Sum(impatient_.slept());
    const Outcome outcome = Call(verb, registry.host(), {"--bytes-per-second=100000"});
    EXPECT_TRUE(Works(outcome)) << verb << outcome.err;
    EXPECT_GT(Sum(impatient_.slept()) - before, std::chrono::seconds(1)) << verb;
  }
}

class EnvironmentProxy : public StoreFlags, public ::testing::WithParamInterface<bool> {
 protected:
  // The name of a variable, in lower case if the parameter says so.
  static std::string Name(std::string upper) {
    if (GetParam()) {
      std::transform(upper.begin(), upper.end(), upper.begin(),
                     [](char c) { return c == '_' ? c : static_cast<char>(c + 32); });
    }
    return upper;
  }
};

INSTANTIATE_TEST_SUITE_P(Case, EnvironmentProxy, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "lower" : "upper"; });

TEST_P(EnvironmentProxy, HttpProxyReceivesTheRequests) {
  const SmallRegistry proxy(content_);
  environment_[Name("HTTP_PROXY")] = "http://" + proxy.host();
  const Outcome outcome = Call("verify", "registry.test", {"--insecure-host", "registry.test"});
  EXPECT_TRUE(Works(outcome)) << outcome.err;
  EXPECT_THAT(proxy.asked(), Contains(StartsWith("GET http://registry.test:80/v2/")));
}

TEST_P(EnvironmentProxy, HttpsProxyTunnelsTls) {
  const SmallRegistry registry(content_, {.server = Shared().Tls()});
  const fakes::TunnelProxy proxy(registry.port());
  environment_[Name("HTTPS_PROXY")] = "http://" + proxy.address();
  const Outcome outcome = Call("verify", "registry.test", {"--ca-file", Shared().authority.ca()});
  EXPECT_TRUE(Works(outcome)) << outcome.err;
  EXPECT_THAT(proxy.asked(), Contains("CONNECT registry.test:443 HTTP/1.1"));
}

TEST_P(EnvironmentProxy, NoProxyNamesHostsThatAreAccessedDirectly) {
  const SmallRegistry registry(content_);
  const SmallRegistry proxy(content_);
  // The system connects 0.0.0.0 to loopback, but only names of loopback are exempt by themselves.
  const std::string host = fmt::format("0.0.0.0:{}", registry.port());
  const Words flags = {"--insecure-host", "0.0.0.0"};
  environment_[Name("HTTP_PROXY")] = "http://" + proxy.host();
  EXPECT_TRUE(Works(Call("inspect", host, flags)));
  EXPECT_THAT(registry.asked(), IsEmpty());
  environment_[Name("NO_PROXY")] = "0.0.0.0";
  const size_t before = proxy.asked().size();
  const Outcome direct = Call("inspect", host, flags);
  EXPECT_TRUE(Works(direct)) << direct.err;
  EXPECT_THAT(registry.asked(), Not(IsEmpty()));
  EXPECT_EQ(proxy.asked().size(), before);
}

TEST_F(StoreFlags, ProxyFlagPrecedesTheEnvironment) {
  const SmallRegistry proxy(content_);
  RegistryContent nothing;
  const SmallRegistry other(nothing);
  environment_["HTTP_PROXY"] = "http://" + other.host();
  const Outcome outcome =
      Call("inspect", "registry.test",
           {"--insecure-host", "registry.test", "--proxy", "http://" + proxy.host()});
  EXPECT_TRUE(Works(outcome)) << outcome.err;
  EXPECT_THAT(other.asked(), IsEmpty());
}

}  // namespace
}  // namespace cachewarm::cli
