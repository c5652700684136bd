// SPDX-License-Identifier: Apache-2.0
// Damages the stored blobs of a bundle in many ways: fetching, extracting and verifying must always
// fail with DATA_LOSS and never finish a tree. (Bytes appended to a blob are not part of it and are
// not read.)
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/transfer.h"
#include "tests/fakes/memory_store.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr char kRepository[] = "team/llama";
constexpr unsigned kSeeds = 1000;  // of flipped bits in each blob

using Random = std::mt19937;

size_t Below(Random& random, size_t bound) {
  return random() % bound;
}

void FlipABit(std::string& bytes, Random& random) {
  char& victim = bytes[Below(random, bytes.size())];
  victim = static_cast<char>(victim ^ (1 << Below(random, 8)));
}

struct Damage {
  std::string name;
  std::function<void(std::string& bytes, Random& random)> apply;
};

// Kinds of damage by disks, networks, caches and copying programs.
std::vector<Damage> OtherDamages() {
  return {
      {"truncated", [](std::string& b, Random& r) { b.resize(Below(r, b.size())); }},
      {"empty", [](std::string& b, Random&) { b.clear(); }},
      {"longer", [](std::string& b, Random& r) { b += b.substr(0, 1 + Below(r, 100)); }},
      {"bytes lost in the middle",
       [](std::string& b, Random& r) { b.erase(Below(r, b.size()), 1 + Below(r, 64)); }},
      {"bytes twice",
       [](std::string& b, Random& r) {
         const size_t at = Below(r, b.size());
         b.insert(at, b.substr(at, 1 + Below(r, 64)));
       }},
      {"a sector of zeros",
       [](std::string& b, Random& r) {
         const size_t at = Below(r, b.size()) / 512 * 512;
         b.replace(at, 512, std::min<size_t>(512, b.size() - at), '\0');
       }},
      {"noise",
       [](std::string& b, Random& r) {
         const size_t at = Below(r, b.size());
         const std::string noise =
             Noise(std::min<size_t>(16, b.size() - at), static_cast<uint32_t>(r()));
         b.replace(at, noise.size(), noise);
       }},
      {"two halves swapped",
       [](std::string& b, Random& r) {
         const size_t at = 1 + Below(r, b.size() - 1);
         b = b.substr(at) + b.substr(0, at);
       }},
      {"all zeros", [](std::string& b, Random&) { b.assign(b.size(), '\0'); }},
  };
}

// A published bundle whose blobs can be changed without the store.
class Stored {
 public:
  Stored() = default;
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;
  virtual ~Stored() = default;
  virtual Store& store() = 0;
  virtual void Replace(const Digest& digest, const std::string& bytes) = 0;

  void Publish() {
    const PackedSample sample = PackTree(SampleTree());
    ASSERT_TRUE(WriteSmallBlob(store(), kRepository, sample.layer, {}).ok());
    ASSERT_TRUE(WriteSmallBlob(store(), kRepository, sample.packed.config_text, {}).ok());
    ASSERT_TRUE(store().WriteManifest(kRepository, sample.packed.manifest_text, "k", {}).ok());
    digest_ = sample.packed.digest;
    blobs_ = {{"manifest", sample.packed.digest, sample.packed.manifest_text},
              {"config", DigestOf(sample.packed.config_text), sample.packed.config_text},
              {"layer", DigestOf(sample.layer), sample.layer}};
  }

  struct Blob {
    std::string name;
    Digest digest;
    std::string bytes;
  };
  const std::vector<Blob>& blobs() const { return blobs_; }
  const Digest& digest() const { return digest_; }

 private:
  Digest digest_;
  std::vector<Blob> blobs_;
};

class InMemory : public Stored {
 public:
  Store& store() override { return store_; }
  void Replace(const Digest& digest, const std::string& bytes) override {
    EXPECT_TRUE(store_.Corrupt(kRepository, digest, bytes));
  }

 private:
  MemoryStore store_;
};

class InALayout : public Stored {
 public:
  Store& store() override { return store_; }
  void Replace(const Digest& digest, const std::string& bytes) override {
    const auto blobs = temp_.Open().OpenDir(fmt::format("{}/blobs/sha256", kRepository));
    // A synced file would take most of the test's time.
    EXPECT_TRUE(
        blobs.ok() &&
        fs::WriteFileAtomic(*blobs, digest.hex(), bytes, 0444, fs::Durable::kOnceAllSynced).ok());
  }

 private:
  TempDir temp_;
  LayoutStore store_{temp_.path(), SystemClock()};
};

absl::Status FetchInto(const RepositoryRef& place, const Digest& digest, const fs::Dir& staging,
                       int threads) {
  const auto bundle = ReadBundle(place, digest, {});
  return bundle.ok()
             ? Extract(place,
                       {.bundle = *bundle, .staging = staging, .options = {.threads = threads}}, {})
             : bundle.status();
}

absl::Status VerifyAll(const RepositoryRef& place, const Digest& digest) {
  const auto bundle = ReadBundle(place, digest, {});
  return bundle.ok() ? Verify(place, *bundle, {}, {}) : bundle.status();
}

template <typename Kind>
class DamagedBundle : public ::testing::Test {
 protected:
  void SetUp() override { stored_.Publish(); }

  // Applies the damage and checks its detection. Returns true if the bytes changed.
  bool ExpectNoticed(const Stored::Blob& blob, const Damage& damage, unsigned seed) {
    Random random(seed);
    std::string bytes = blob.bytes;
    damage.apply(bytes, random);
    if (bytes == blob.bytes) {
      return false;
    }
    stored_.Replace(blob.digest, bytes);
    const TempDir temp;
    const absl::Status fetched =
        FetchInto(place_, stored_.digest(), temp.Open(), 1 + static_cast<int>(seed % 3));
    if (bytes.starts_with(blob.bytes) && fetched.ok()) {
      EXPECT_EQ(ReadTree(temp.Open()), ExpectedTree(SampleTree())) << Name(blob, damage, seed);
    } else {
      EXPECT_TRUE(absl::IsDataLoss(fetched)) << Name(blob, damage, seed) << fetched;
    }
    if (seed % 5 == 0 && !fetched.ok()) {
      const absl::Status verified = VerifyAll(place_, stored_.digest());
      EXPECT_TRUE(absl::IsDataLoss(verified)) << Name(blob, damage, seed) << verified;
    }
    stored_.Replace(blob.digest, blob.bytes);
    return true;
  }
  static std::string Name(const Stored::Blob& blob, const Damage& damage, unsigned seed) {
    return fmt::format("{} {}, seed {}: ", blob.name, damage.name, seed);
  }

  Kind stored_;
  const RepositoryRef place_{stored_.store(), kRepository};
};

using Kinds = ::testing::Types<InMemory, InALayout>;
class KindNames {
 public:
  template <typename Kind>
  static std::string GetName(int) {
    return std::is_same_v<Kind, InMemory> ? "mem" : "layout";
  }
};
TYPED_TEST_SUITE(DamagedBundle, Kinds, KindNames);

TYPED_TEST(DamagedBundle, EveryFlippedBitIsDetected) {
  for (const Stored::Blob& blob : this->stored_.blobs()) {
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      EXPECT_TRUE(this->ExpectNoticed(blob, {"flipped", FlipABit}, seed));
    }
    ASSERT_FALSE(this->HasFailure()) << blob.name;
  }
  const TempDir temp;
  EXPECT_TRUE(FetchInto(this->place_, this->stored_.digest(), temp.Open(), 2).ok());
  EXPECT_TRUE(VerifyAll(this->place_, this->stored_.digest()).ok());
}

TYPED_TEST(DamagedBundle, OtherDamageIsDetected) {
  for (const Stored::Blob& blob : this->stored_.blobs()) {
    for (const Damage& damage : OtherDamages()) {
      int changed = 0;
      for (unsigned seed = 0; seed < 15; ++seed) {
        changed += this->ExpectNoticed(blob, damage, seed) ? 1 : 0;
      }
      EXPECT_GT(changed, 10) << blob.name << damage.name;
    }
    ASSERT_FALSE(this->HasFailure()) << blob.name;
  }
}

TYPED_TEST(DamagedBundle, SwappedBlobIsDetected) {
  const auto& blobs = this->stored_.blobs();
  for (const Stored::Blob& blob : blobs) {
    for (const Stored::Blob& other : blobs) {
      this->ExpectNoticed(blob,
                          {"replaced by the " + other.name,
                           [&](std::string& bytes, Random&) { bytes = other.bytes; }},
                          0);
    }
  }
}

// Swapped frames: each has the digest of another one in the index.
TEST(DamagedFrames, SwappedFramesAreDetected) {
  const PackedSample sample = PackTree(SampleTree());
  const auto& frames = sample.packed.config.layers[0].frames;
  const auto text = [&](const Frame& frame) {
    return sample.layer.substr(static_cast<size_t>(frame.offset), static_cast<size_t>(frame.bytes));
  };
  ASSERT_GE(frames.size(), 4U);
  for (size_t first = 0; first < frames.size(); ++first) {
    for (size_t second = first + 1; second < frames.size(); ++second) {
      std::string layer;
      for (size_t i = 0; i < frames.size(); ++i) {
        layer += text(frames[i == first ? second : i == second ? first : i]);
      }
      const TempDir temp;
      const absl::Status status =
          Unpack({sample.packed.config, sample.packed.manifest, layer}, temp.Open());
      EXPECT_TRUE(absl::IsDataLoss(status)) << first << " and " << second << ": " << status;
    }
  }
}

}  // namespace
}  // namespace cachewarm::bundle
