// Fills the disk under model_dir, a small tmpfs, while the Fashion-MNIST example trains. All steps
// must be completed without a restart, and the last complete checkpoint must not change. If space
// becomes free in time, the job must succeed. Otherwise, it must fail, and the chief's error must
// name the step.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "absl/strings/str_replace.h"
#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "tests/processes/job_run.h"

namespace tfjob::processes {
namespace {

const cluster::Task kChief{"chief", 0};
constexpr char kFull[] = "No space left on device";

// Moves this process to a new mount namespace, which its children inherit, and which is removed
// when they exit. Without root, also creates a user namespace for it. Returns false if the machine
// does not allow this.
bool EnterMountNamespace() {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (user == 0) return unshare(CLONE_NEWNS) == 0;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return true;
}

// Initialize this before the first thread starts.
const bool kOwnMounts =
    EnterMountNamespace() && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;

class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    // CI runs as root. A skipped test would go unnoticed there, so fail instead.
    if (!kOwnMounts && getuid() == 0) FAIL() << "root may not mount: run this test privileged";
    if (!kOwnMounts) GTEST_SKIP() << "this machine allows no mount; see runtime/train:disk_test";
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(model_dir_).ok());
    // The file system has space for several checkpoints; one has 4.9 MB.
    ASSERT_EQ(mount("model", model_dir_.c_str(), "tmpfs", 0, "size=16m"), 0);
  }
  void TearDown() override {
    job_.reset();
    umount2(model_dir_.c_str(), MNT_DETACH);
  }

  void StartJob(int final_save_secs) {
    std::string manifest = *ReadFile(Runfile("deploy/examples/fashion-mnist.yaml"));
    manifest = absl::StrReplaceAll(
        WithModelFolder(manifest, "fashion-mnist", model_dir_),
        {{"save_checkpoints_steps: 1000",
          "save_checkpoints_steps: 200\n    keep_checkpoint_max: 1"},
         {"save_summary_steps: 500", "save_summary_steps: 50"},
         {"epochs: 25", StrCat("epochs: 6\n    final_save_secs: ", final_save_secs)}});
    job_ = JobRun::Start(manifest, folder_ + "/run");
  }
  // Fills all free space with another file.
  void FillDisk() {
    const int file = open(filler_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    const std::string block(1 << 16, 'x');
    while (write(file, block.data(), block.size()) > 0) {
    }
    close(file);
  }
  template <typename Condition>
  bool Await(Duration timeout, const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!job_->Ended() && std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }
  // Returns the contents of the newest checkpoint's files, by name.
  std::map<std::string, std::string> NewestFiles() const {
    std::map<std::string, std::string> files;
    const auto latest = io::LatestCheckpoint(model_dir_);
    EXPECT_TRUE(latest.ok() && *latest) << latest.status();
    if (!latest.ok() || !*latest) return files;
    const std::string name = std::filesystem::path((*latest)->prefix).filename();
    const std::vector<std::string> present = *ListDirectory(model_dir_);
    for (const std::string& file : present) {
      if (file.starts_with(name + ".")) files[file] = *ReadFile(model_dir_ + "/" + file);
    }
    return files;
  }
  std::string ChiefLog() const {
    return ReadFile(folder_ + "/run/state/logs/fashion-mnist-chief-0/tensorflow.log").value_or("");
  }
  // Returns the problem with checkpoints that the chief's progress reports, or "" if there is none.
  std::string CheckpointProblem() const {
    const auto progress = job_->ProgressOf(kChief);
    if (!progress || !progress->problems.contains("checkpoints")) return "";
    return progress->problems.at("checkpoints");
  }
  // Returns the first line of the job's output that contains `text`.
  std::string OutputLine(std::string_view text) const {
    const std::string output = job_->Output();
    const size_t found = output.find(text);
    if (found == std::string::npos) return "";
    const size_t begin = output.rfind('\n', found) + 1;  // npos + 1 is 0
    return output.substr(begin, output.find('\n', found) - begin);
  }
  // Fills the disk in the middle of the run, and waits until the chief has completed all steps and
  // cannot save. The function waits until a fraction of the steps is completed and there is a
  // complete checkpoint. It does not fill the disk after a fixed time, because a slow machine might
  // not have a checkpoint yet, and a fast machine might have completed all steps.
  void TrainToTheEndOnAFullDisk() {
    ASSERT_TRUE(job_->AwaitPart(0.2, 120s)) << job_->Output();
    ASSERT_TRUE(Await(60s, [&] {
      const auto latest = io::LatestCheckpoint(model_dir_);
      return latest.ok() && *latest && (*latest)->step > 0;
    })) << job_->Output();
    pid_ = job_->Await(kChief, 10s).pid;
    FillDisk();
    // The checkpoint that was being written when the disk was filled may still be completed, so the
    // test waits until the chief reports a problem.
    ASSERT_TRUE(Await(60s, [&] { return !CheckpointProblem().empty(); })) << job_->Output();
    EXPECT_NE(CheckpointProblem().find(kFull), std::string::npos) << CheckpointProblem();
    before_ = NewestFiles();
    ASSERT_EQ(before_.size(), 2u);
    ASSERT_TRUE(Await(120s, [&] {
      const auto progress = job_->ProgressOf(kChief);
      return progress && progress->step >= progress->max_steps &&
             progress->state == progress::State::kSaving;
    })) << job_->Output();
    EXPECT_EQ(job_->Await(kChief, 10s).pid, pid_) << "the chief was restarted";
    // `tfjob run` queries the progress of the tasks every few seconds.
    EXPECT_TRUE(Await(60s, [&] { return !OutputLine(kFull).empty(); })) << job_->Output();
    EXPECT_NE(CheckpointProblem().find(kFull), std::string::npos) << CheckpointProblem();
    EXPECT_EQ(NewestFiles(), before_);
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/full_disk_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string model_dir_ = folder_ + "/model";
  const std::string filler_ = model_dir_ + "/filler";
  std::unique_ptr<JobRun> job_;
  pid_t pid_ = 0;
  std::map<std::string, std::string> before_;
};

TEST_F(FullDiskTest, IfRoomComesBackInTimeTheJobSucceeds) {
  StartJob(600);
  ASSERT_NO_FATAL_FAILURE(TrainToTheEndOnAFullDisk());
  ASSERT_EQ(unlink(filler_.c_str()), 0);
  EXPECT_EQ(job_->AwaitEnd(120s), 0) << job_->Output();
  const auto latest = io::LatestCheckpoint(model_dir_);
  ASSERT_TRUE(latest.ok() && *latest) << latest.status();
  EXPECT_GE((*latest)->step, 1800) << "6 epochs of 300 batches";
  auto reader = io::BundleReader::Open((*latest)->prefix);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const auto& [name, entry] : (*reader)->entries())
    EXPECT_TRUE((*reader)->Read(name).ok()) << name;
  EXPECT_EQ(ChiefLog().find("failed error="), std::string::npos) << ChiefLog();
}

TEST_F(FullDiskTest, OtherwiseTheJobDoesNotSucceedAndTheStepIsNamed) {
  StartJob(5);
  ASSERT_NO_FATAL_FAILURE(TrainToTheEndOnAFullDisk());
  ASSERT_TRUE(Await(60s, [&] { return ChiefLog().find("failed error=") != std::string::npos; }))
      << job_->Output();
  const std::string log = ChiefLog();
  EXPECT_NE(log.find("UNAVAILABLE: the checkpoint of step 18"), std::string::npos) << log;
  // The event contains the container's termination message.
  constexpr char kExit[] = "exited with code 138";
  EXPECT_TRUE(Await(60s, [&] { return !OutputLine(kExit).empty(); })) << job_->Output();
  EXPECT_NE(OutputLine(kExit).find(": the checkpoint of step 18"), std::string::npos)
      << OutputLine(kExit);
  EXPECT_NE(OutputLine(kExit).find(" was not saved: "), std::string::npos) << OutputLine(kExit);
  EXPECT_EQ(NewestFiles(), before_);
  job_->Signal(SIGTERM);
  EXPECT_EQ(job_->AwaitEnd(60s), 143) << job_->Output();
  EXPECT_EQ(job_->Output().find("Succeeded"), std::string::npos) << job_->Output();
}

}  // namespace
}  // namespace tfjob::processes
