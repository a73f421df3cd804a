#include "operator/keys/key_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "operator/keys/job_key.h"

namespace tfjob::keys {
namespace {

using Ids = std::vector<std::string>;

constexpr char kUid[] = "5e0f7a52-6b52-4a9e-9d1c-0f4a54f5a3a1";

std::string Bytes0To31() {
  std::string bytes;
  for (char c = 0; c < 32; ++c) bytes += c;
  return bytes;
}

// The literals come from openssl:
//   printf 'tfjob.dev/job-key/v1\0%s' $uid | openssl dgst -sha256 -mac HMAC -macopt hexkey:0001…1f
TEST(JobKey, IsWhatOpensslComputes) {
  EXPECT_EQ(DeriveJobKey(Bytes0To31(), kUid),
            "83ac8c44a10a06eda2a2cef5032b2b592e314775d9af0377ae9b372280892587");
  EXPECT_EQ(DeriveJobKey(Bytes0To31(), ""),
            "3cd22889ba06dfc6865b7c8940e37b032c471833746b3ed89cf0a2fdfb1f2d97");
  EXPECT_EQ(DeriveJobKey("a text of thirty-three characters", "job-uid"),
            "6d05e0a61fd43c1256ce53d1ce3db52ec32cae1d55adfaf3b3bbddc1f7da369c");
  EXPECT_EQ(Fingerprint(Bytes0To31()), "2782a2a4");
  EXPECT_EQ(Fingerprint("a text of thirty-three characters"), "291c4cb1");
}

TEST(JobKey, RandomSecretsDifferAndFitIntoARing) {
  const StatusOr<std::string> one = RandomSecret(), other = RandomSecret();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(*one, *other);
  EXPECT_TRUE(KeyRing().Add("1", *one).ok());
}

TEST(KeyRing, DerivesUnderTheKeyOfTheId) {
  KeyRing ring;
  ASSERT_TRUE(ring.Add("2", "a text of thirty-three characters").ok());
  ASSERT_TRUE(ring.Add("1", Bytes0To31()).ok());
  EXPECT_EQ(ring.ids(), (Ids{"1.2782a2a4", "2.291c4cb1"}));
  EXPECT_EQ(ring.JobKey("1.2782a2a4", kUid), DeriveJobKey(Bytes0To31(), kUid));
  EXPECT_EQ(ring.JobKey("2.291c4cb1", kUid),
            DeriveJobKey("a text of thirty-three characters", kUid));
  for (const char* id : {"", "1", "1.", "1.291c4cb1", "3.2782a2a4"}) {
    EXPECT_EQ(ring.JobKey(id, kUid), "") << id;
  }
}

// If the id did not change with the secret, the operator would give replacement pods a key that
// differs from the key of the running pods.
TEST(KeyRing, AnotherSecretUnderTheSameNameHasAnotherId) {
  KeyRing before, after;
  ASSERT_TRUE(before.Add("1", Bytes0To31()).ok());
  ASSERT_TRUE(after.Add("1", "a text of thirty-three characters").ok());
  EXPECT_NE(before.ids(), after.ids());
  EXPECT_FALSE(before == after);
}

TEST(KeyRing, OrdersNamesWithNumbersByTheirValue) {
  const Ids kOrdered = {"0",  "1-a",  "01-b",   "7",       "9",       "09-a",
                        "10", "2026", "2026-9", "2026-11", "2027-01", "99999999999999999999999",
                        "a",  "a-1",  "a1",     "a2",      "a10",     "a10b",
                        "b",  "key9", "key10"};
  Ids sorted = kOrdered;
  std::vector<Ids> orders = {kOrdered, {kOrdered.rbegin(), kOrdered.rend()}};
  for (size_t shift = 1; shift < kOrdered.size(); shift += 4) {
    std::rotate(sorted.begin(), sorted.begin() + 4, sorted.end());
    orders.push_back(sorted);
  }
  for (const Ids& order : orders) {
    KeyRing ring;
    for (const std::string& name : order) ASSERT_TRUE(ring.Add(name, Bytes0To31()).ok()) << name;
    Ids names;
    for (const std::string& id : ring.ids()) names.push_back(id.substr(0, id.find('.')));
    EXPECT_EQ(names, kOrdered);
  }
}

TEST(KeyRing, MayGetOnlyKeysThatAreNewerThanItsOwn) {
  KeyRing ring;
  EXPECT_TRUE(ring.MayGet("1.2782a2a4"));
  for (const char* name : {"2", "10"}) ASSERT_TRUE(ring.Add(name, Bytes0To31()).ok());
  for (const char* id : {"11.2782a2a4", "10-a.2782a2a4"}) EXPECT_TRUE(ring.MayGet(id)) << id;
  for (const char* id : {"10.291c4cb1", "9.2782a2a4", "1.2782a2a4"}) {
    EXPECT_FALSE(ring.MayGet(id)) << id;
  }
}

TEST(KeyRing, BreaksTiesByTheBytes) {
  KeyRing ring;
  for (const char* name : {"1", "001", "01"}) ASSERT_TRUE(ring.Add(name, Bytes0To31()).ok());
  EXPECT_EQ(ring.ids(), (Ids{"001.2782a2a4", "01.2782a2a4", "1.2782a2a4"}));
}

TEST(KeyRing, RefusesWhatIsNoKey) {
  const std::string secret = Bytes0To31();
  const std::tuple<std::string, std::string, const char*> kCases[] = {
      {"", secret, "name of a key"},
      {"A", secret, "name of a key"},
      {"a.b", secret, "name of a key"},
      {"a_b", secret, "name of a key"},
      {"-a", secret, "name of a key"},
      {"a-", secret, "name of a key"},
      {std::string(64, 'a'), secret, "at most 63"},
      {"a", "", "expected 32 to 4096 random bytes, got 0"},
      {"a", secret.substr(1), "expected 32 to 4096 random bytes, got 31"},
      {"a", std::string(4096, 'x') + "y", "expected 32 to 4096 random bytes, got 4097"},
      {"a", std::string(32, '\0'), "got 32 equal ones"}};
  for (const auto& [name, bytes, words] : kCases) {
    KeyRing ring;
    const Status status = ring.Add(name, bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_NE(status.ToString().find(words), std::string::npos) << status;
    EXPECT_TRUE(ring.ids().empty());
  }
  KeyRing ring;
  ASSERT_TRUE(ring.Add(std::string(63, 'a'), std::string(4095, 'x') + "y").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(ring.Add(std::string(63, 'a'), secret)));
}

}  // namespace
}  // namespace tfjob::keys
