#include "operator/local/process/path_owner.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "operator/local/process/volumes.h"

namespace tfjob::process {
namespace {

// Creates a shared folder, like /var/tmp, that contains files of a stranger. Only root can give
// files to another user. Without root, the files still belong to the test's user, and the test
// checks the paths for another user, who trusts no one else, not even root.
class PathOwnerTest : public ::testing::Test {
 protected:
  PathOwnerTest() : shared_(testing::TempDir() + "/shared-XXXXXX") {
    EXPECT_NE(mkdtemp(shared_.data()), nullptr);
    EXPECT_EQ(chmod(shared_.c_str(), 01777), 0);
    shared_ = std::filesystem::canonical(shared_).string();
  }
  ~PathOwnerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(shared_, ignored);
  }

  std::string Path(const std::string& name) const { return shared_ + "/" + name; }
  void Folder(const std::string& name) { EXPECT_EQ(mkdir(Path(name).c_str(), 0755), 0); }
  void Link(const std::string& name, const std::string& target) {
    EXPECT_EQ(symlink(target.c_str(), Path(name).c_str()), 0);
  }
  void GiveAway(const std::string& name) {
    given_ = lchown(Path(name).c_str(), kStranger, kStranger) == 0;
  }
  // Checks the path on behalf of a user who does not own the stranger's files.
  std::string Foreign(const std::string& path) {
    const uid_t user = given_ ? geteuid() : geteuid() + 1;
    return std::string(Message(CheckPathOwners(path, {user})));
  }
  std::string Refusal(const std::string& name) {
    const uid_t owner = given_ ? kStranger : geteuid();
    return StrCat(Path(name), " belongs to user ", owner,
                  ", who could replace it, because everybody may write in its folder; remove it, "
                  "or use another path");
  }

  static constexpr uid_t kStranger = 12345;
  std::string shared_;
  bool given_ = false;  // whether the files were given to kStranger
};

TEST_F(PathOwnerTest, OwnFoldersAndMissingOnesAreFine) {
  Folder("mine");
  EXPECT_EQ(CheckPathOwners(Path("mine/model/x"), {geteuid()}), OkStatus());
  EXPECT_EQ(CheckPathOwners(Path("missing/model"), {geteuid()}), OkStatus());
  EXPECT_EQ(CheckPathOwners("/usr/share", {geteuid() + 1, 0}), OkStatus());
}

TEST_F(PathOwnerTest, AFolderOfAStrangerIsRefusedWithAllThatIsInIt) {
  Folder("tfjob");
  GiveAway("tfjob");
  EXPECT_EQ(Foreign(Path("tfjob")), Refusal("tfjob"));
  EXPECT_EQ(Foreign(Path("tfjob/fashion-mnist")), Refusal("tfjob"));
  EXPECT_EQ(Foreign(Path("./tfjob/../tfjob/x")), Refusal("tfjob"));
}

TEST_F(PathOwnerTest, LinksAreCheckedAndFollowed) {
  Link("passwd", "/etc/passwd");
  GiveAway("passwd");
  EXPECT_EQ(Foreign(Path("passwd")), Refusal("passwd"));
  Folder("mine");
  Folder("theirs");
  GiveAway("theirs");
  EXPECT_EQ(chmod(Path("mine").c_str(), 0755), 0);
  Link("mine/link", "../theirs");
  EXPECT_EQ(Foreign(Path("theirs")), Refusal("theirs"));
  if (given_) {
    EXPECT_EQ(Foreign(Path("mine/link/x")), Refusal("theirs"));
  }
  Link("mine/loop", "loop");
  EXPECT_EQ(Message(CheckPathOwners(Path("mine/loop"), {geteuid()})),
            StrCat("cannot follow ", Path("mine/loop")));
}

TEST_F(PathOwnerTest, AVolumeThatAStrangerCouldReplaceIsNotMade) {
  Folder("tfjob");
  GiveAway("tfjob");
  if (!given_) GTEST_SKIP() << "only root can give a folder away";
  PodSpec pod;
  pod.volumes.push_back({.name = "model",
                         .kind = Volume::Kind::kHostPath,
                         .source = Path("tfjob/mnist"),
                         .host_type = "DirectoryOrCreate"});
  pod.containers.emplace_back().mounts.push_back({.volume = "model", .path = "/model"});
  const auto prepare = [&] { return PrepareVolumes(pod, Path("pod"), nullptr, nullptr); };
  EXPECT_EQ(Message(prepare().status()),
            StrCat("volume \"model\" (hostPath ", Path("tfjob/mnist"), "): ", Refusal("tfjob")));
  EXPECT_FALSE(std::filesystem::exists(Path("tfjob/mnist")));
  EXPECT_EQ(lchown(Path("tfjob").c_str(), geteuid(), getegid()), 0);
  EXPECT_EQ(prepare().status(), OkStatus());
  EXPECT_TRUE(std::filesystem::exists(Path("tfjob/mnist")));
}

TEST_F(PathOwnerTest, AFolderThatOnlyItsOwnerMayWriteInIsItsOwnersBusiness) {
  Folder("mine");
  Folder("mine/theirs");
  GiveAway("mine/theirs");
  EXPECT_EQ(CheckPathOwners(Path("mine/theirs/x"), {geteuid()}), OkStatus());
}

}  // namespace
}  // namespace tfjob::process
