// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/factor_salt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/codec/base64.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "tests/unit/operator/cluster_cache_fixture.h"

namespace cachewarm::apply {
namespace {

using codec::Json;
using ::testing::SizeIs;

class FactorSaltTest : public op::testing::ClusterCacheFixture {
 protected:
  FactorSaltTest() { Put("cachewarm-engine-salt", Json::object()); }

  void Put(const std::string& name, const Json& data) {
    server.Put(kube::kSecrets, {{"apiVersion", "v1"},
                                {"kind", "Secret"},
                                {"metadata", {{"namespace", "system"}, {"name", name}}},
                                {"data", data}});
  }
  void PutSecret(const Json& data = Json::object()) { Put("cachewarm-salt", data); }
  FactorSalt Make() {
    return FactorSalt({.client = server, .clock = clock, .log = log, .ns = "system"});
  }
  std::string Stored(const std::string& name = "cachewarm-salt") {
    const kube::Object secret = server.Find(kube::kSecrets, {"system", name});
    return codec::DecodeBase64(codec::TextAt(*secret, {"data", "salt"})).value_or("");
  }
};

TEST_F(FactorSaltTest, EmptySecretGetsARandomSalt) {
  PutSecret();
  FactorSalt salt = Make();
  const std::string first = salt.Get({});
  EXPECT_EQ(first.size(), 32U);
  EXPECT_EQ(Stored(), first);
  PutSecret();
  EXPECT_NE(Make().Get({}), first) << "random";
}

TEST_F(FactorSaltTest, SaltOfTheSecretIsReadOnce) {
  const std::string known = "0123456789abcdef0123456789abcdef";
  PutSecret({{"salt", codec::EncodeBase64(known)}});
  FactorSalt salt = Make();
  EXPECT_EQ(salt.Get({}), known);
  EXPECT_EQ(salt.Get({}), known);
  EXPECT_THAT(server.Requests(), SizeIs(3)) << "one, and two for the salt of the agents";
}

TEST_F(FactorSaltTest, MissingSecretIsReadAgainAfterAMinute) {
  FactorSalt salt = Make();
  EXPECT_EQ(salt.Get({}), "");
  clock.Advance(std::chrono::seconds(61));
  EXPECT_EQ(salt.Get({}), "");
  EXPECT_EQ(log.Count("no salt for the factors of starts"), 1) << "logged once";
  PutSecret();
  EXPECT_EQ(salt.Get({}), "") << "not at every call";
  clock.Advance(std::chrono::seconds(61));
  EXPECT_EQ(salt.Get({}).size(), 32U);
}

TEST_F(FactorSaltTest, DamagedSaltIsNotReplaced) {
  for (const std::string& text : {std::string("%%%"), codec::EncodeBase64("short")}) {
    PutSecret({{"salt", text}});
    EXPECT_EQ(Make().Get({}), "");
    EXPECT_EQ(
        codec::TextAt(*server.Find(kube::kSecrets, {"system", "cachewarm-salt"}), {"data", "salt"}),
        text);
  }
}

TEST_F(FactorSaltTest, SaltOfAnotherReplicaWins) {
  PutSecret();
  const std::string other = "fedcba9876543210fedcba9876543210";
  server.Intercept([&, once = true](const kube::Request& request) mutable {
    if (request.verb == "update" && std::exchange(once, false)) {
      return absl::AbortedError("the object has been modified");
    }
    return absl::OkStatus();
  });
  FactorSalt salt = Make();
  EXPECT_EQ(salt.Get({}), "");
  PutSecret({{"salt", codec::EncodeBase64(other)}});
  clock.Advance(std::chrono::seconds(61));
  EXPECT_EQ(salt.Get({}), other);
}

TEST_F(FactorSaltTest, AgentsGetADerivedSalt) {
  const std::string known = "0123456789abcdef0123456789abcdef";
  PutSecret({{"salt", codec::EncodeBase64(known)}});
  EXPECT_EQ(Make().Get({}), known);
  // printf engine | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
  EXPECT_EQ(Stored("cachewarm-engine-salt"),
            "a298564fe045650cc67e1f5cbfb87ac095132592768d6fc95973325f0aa900dc");
  const size_t requests = server.Requests().size();
  Make().Get({});
  EXPECT_THAT(server.Requests(), SizeIs(requests + 2)) << "reads both, writes none";
}

TEST_F(FactorSaltTest, AnotherSaltReplacesTheDerivedOne) {
  for (const char digit : {'a', 'b'}) {
    const std::string known(32, digit);
    PutSecret({{"salt", codec::EncodeBase64(known)}});
    Make().Get({});
    EXPECT_EQ(Stored("cachewarm-engine-salt"), DeriveEngineSalt(known));
  }
  EXPECT_NE(DeriveEngineSalt(std::string(32, 'a')), DeriveEngineSalt(std::string(32, 'b')));
}

TEST_F(FactorSaltTest, WithoutTheSecretOfTheAgentsStartsAreExplainedAndItIsReadAgain) {
  server.Remove(kube::kSecrets, {"system", "cachewarm-engine-salt"});
  PutSecret();
  FactorSalt salt = Make();
  const std::string known = salt.Get({});
  EXPECT_EQ(known.size(), 32U);
  EXPECT_EQ(log.Count("cannot store the salt of the agents"), 1);
  EXPECT_EQ(log.Count("no salt for the factors of starts"), 0);
  Put("cachewarm-engine-salt", Json::object());
  EXPECT_EQ(salt.Get({}), known);
  EXPECT_EQ(Stored("cachewarm-engine-salt"), "") << "not at every call";
  clock.Advance(std::chrono::seconds(61));
  EXPECT_EQ(salt.Get({}), known);
  EXPECT_EQ(Stored("cachewarm-engine-salt"), DeriveEngineSalt(known));
}

TEST_F(FactorSaltTest, DeletedSecretOfTheAgentsIsFilledAgainOnceItExists) {
  PutSecret();
  FactorSalt salt = Make();
  const std::string known = salt.Get({});
  for (const int round : {1, 2}) {
    server.Remove(kube::kSecrets, {"system", "cachewarm-engine-salt"});
    EXPECT_EQ(salt.Get({}), known);
    EXPECT_EQ(log.Count("cannot store the salt of the agents"), round - 1) << "not at every call";
    clock.Advance(FactorSalt::kEngineSaltCheck);
    EXPECT_EQ(salt.Get({}), known);
    EXPECT_EQ(log.Count("cannot store the salt of the agents"), round);
    Put("cachewarm-engine-salt", Json::object());
    clock.Advance(std::chrono::seconds(61));
    EXPECT_EQ(salt.Get({}), known);
    EXPECT_EQ(Stored("cachewarm-engine-salt"), DeriveEngineSalt(known));
  }
}

TEST_F(FactorSaltTest, EmptiedSecretOfTheAgentsIsFilledAgain) {
  PutSecret();
  FactorSalt salt = Make();
  const std::string known = salt.Get({});
  Put("cachewarm-engine-salt", Json::object());
  clock.Advance(FactorSalt::kEngineSaltCheck);
  EXPECT_EQ(salt.Get({}), known);
  EXPECT_EQ(Stored("cachewarm-engine-salt"), DeriveEngineSalt(known));
  EXPECT_EQ(log.Count("cannot store the salt of the agents"), 0);
}

}  // namespace
}  // namespace cachewarm::apply
