#include "operator/keys/key_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "operator/keys/job_key.h"
#include "runtime/base/fake_clock.h"

namespace tfjob::keys {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// Returns the names of the keys in a ring.
Names NamesOf(const KeyRing& ring) {
  Names names;
  for (const std::string& id : ring.ids()) names.push_back(id.substr(0, id.find('.')));
  return names;
}

class KeyFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/keys-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string Secret(char last) {
    return "0123456789abcdef0123456789abcde" + std::string(1, last);
  }

  void Write(const std::string& path, const std::string& content) {
    std::ofstream(fs::path(folder_) / path, std::ios::binary) << content;
  }

  // Writes the files as a kubelet does: into a new folder, to which it then points `..data`.
  void Project(const std::string& version, const std::map<std::string, std::string>& files) {
    const fs::path root = folder_, hidden = ".." + version;
    fs::create_directory(root / hidden);
    for (const auto& [name, content] : files) {
      Write(hidden / name, content);
      if (!fs::is_symlink(root / name)) fs::create_symlink(fs::path("..data") / name, root / name);
    }
    fs::remove(root / "..next");
    fs::create_symlink(hidden, root / "..next");
    fs::rename(root / "..next", root / "..data");
  }

  std::string folder_;
  FakeClock clock_{Time(std::chrono::hours(1))};
};

TEST_F(KeyFolderTest, ReadsEveryFileAsItIs) {
  Write("2", Secret('2') + "\n");
  Write("10", Secret('a'));
  const auto found = ReadKeys(folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->problems.empty());
  KeyRing expected;
  ASSERT_TRUE(expected.Add("2", Secret('2') + "\n").ok());
  ASSERT_TRUE(expected.Add("10", Secret('a')).ok());
  EXPECT_TRUE(found->ring == expected);
}

TEST_F(KeyFolderTest, ABadFileIsNamedAndSkipped) {
  Write("1", Secret('1'));
  Write("2", "short");
  Write("3", std::string(5000, 'x'));
  Write("Key", Secret('4'));
  Write(".hidden", "short");
  fs::create_directory(fs::path(folder_) / "5");
  const auto found = ReadKeys(folder_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(NamesOf(found->ring), (Names{"1"}));
  ASSERT_EQ(found->problems.size(), 4u);
  EXPECT_EQ(found->problems[0], folder_ + "/2: expected 32 to 4096 random bytes, got 5");
  EXPECT_EQ(found->problems[1], folder_ + "/3: expected at most 4096 bytes, got 5000");
  EXPECT_EQ(found->problems[2], folder_ + "/5: expected a file");
  EXPECT_EQ(found->problems[3].find(folder_ + "/Key: the name of a key: expected"), 0u);
}

TEST_F(KeyFolderTest, FollowsTheKubelet) {
  Project("v1", {{"1", Secret('1')}});
  KeyFolder keys(folder_, clock_);
  const auto first = keys.Ring();
  EXPECT_EQ(NamesOf(*first), (Names{"1"}));
  Project("v2", {{"1", Secret('1')}, {"2", Secret('2')}});
  clock_.Advance(10s - 1us);
  EXPECT_EQ(keys.Ring(), first);
  clock_.Advance(1us);
  EXPECT_EQ(NamesOf(*keys.Ring()), (Names{"1", "2"}));
  EXPECT_EQ(NamesOf(*first), (Names{"1"}));  // a ring that is in use does not change
  Project("v3", {{"2", Secret('2')}});
  clock_.Advance(10s);
  EXPECT_EQ(NamesOf(*keys.Ring()), (Names{"2"}));
}

TEST_F(KeyFolderTest, UnchangedKeysStayTheSameRing) {
  Project("v1", {{"1", Secret('1')}});
  KeyFolder keys(folder_, clock_);
  const auto first = keys.Ring();
  clock_.Advance(1min);
  EXPECT_EQ(keys.Ring(), first);
}

TEST_F(KeyFolderTest, KeepsTheKeysWhileTheFolderCannotBeRead) {
  Write("1", Secret('1'));
  KeyFolder keys(folder_, clock_);
  EXPECT_EQ(NamesOf(*keys.Ring()), (Names{"1"}));
  fs::remove_all(folder_);
  clock_.Advance(1min);
  EXPECT_EQ(NamesOf(*keys.Ring()), (Names{"1"}));
}

// An optional Secret that does not exist yet appears as an empty folder, which yields no keys.
TEST_F(KeyFolderTest, StartsWithoutKeys) {
  KeyFolder none("", clock_), missing(folder_ + "/none", clock_), empty(folder_, clock_);
  for (KeyFolder* keys : {&none, &missing, &empty}) EXPECT_TRUE(keys->Ring()->ids().empty());
  Write("1", Secret('1'));
  clock_.Advance(10s);
  EXPECT_EQ(NamesOf(*empty.Ring()), (Names{"1"}));
}

// The folder becomes empty after `kubectl delete secret`. Running jobs keep their keys, and new
// jobs also get keys; without a key, their tasks would accept any peer.
TEST_F(KeyFolderTest, KeepsTheKeysOfAFolderThatIsEmptiedAndWarnsOnce) {
  const auto count = [](const std::string& log, const std::string& words) {
    size_t times = 0;
    for (size_t at = log.find(words); at != std::string::npos; at = log.find(words, at + 1))
      ++times;
    return times;
  };
  const std::string warning = "there are no job keys any more";
  Project("v1", {{"1", Secret('1')}, {"2", Secret('2')}});
  KeyFolder keys(folder_, clock_);
  const auto before = keys.Ring();
  ::testing::internal::CaptureStderr();
  Project("v2", {});
  for (int look = 0; look < 3; ++look) {
    clock_.Advance(10s);
    EXPECT_EQ(keys.Ring(), before);
  }
  EXPECT_EQ(NamesOf(*KeyFolder(folder_, clock_).Ring()), Names());  // the next operator has none
  std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(log, warning), 1u) << log;
  EXPECT_EQ(count(log, "the tasks of new jobs accept any peer"), 1u) << log;
  ::testing::internal::CaptureStderr();
  Project("v3", {{"2", Secret('2')}});
  clock_.Advance(10s);
  EXPECT_EQ(NamesOf(*keys.Ring()), (Names{"2"}));
  Project("v4", {});
  clock_.Advance(10s);
  EXPECT_EQ(NamesOf(*keys.Ring()), (Names{"2"}));
  log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(log, warning), 1u) << log;
}

TEST_F(KeyFolderTest, NeverLogsASecret) {
  Write("1", Secret('1'));
  Write("2", "topsecret");
  ::testing::internal::CaptureStderr();
  KeyFolder keys(folder_, clock_);
  keys.Ring();
  clock_.Advance(1min);
  keys.Ring();
  KeyFolder("", clock_).Ring();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("topsecret"), std::string::npos) << log;
  EXPECT_EQ(log.find("0123456789"), std::string::npos) << log;
  const std::string problem = folder_ + "/2: expected 32 to 4096 random bytes, got 9";
  const size_t once = log.find(problem);
  EXPECT_NE(once, std::string::npos) << log;
  EXPECT_EQ(log.find(problem, once + 1), std::string::npos) << log;
  EXPECT_NE(log.find("newest=1." + Fingerprint(Secret('1'))), std::string::npos) << log;
  EXPECT_NE(log.find("accept any peer"), std::string::npos) << log;
}

}  // namespace
}  // namespace tfjob::keys
