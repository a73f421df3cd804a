#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/checkpoint_directory.h"

namespace tfjob::io {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  void Save(int64_t step) {
    auto writer = BundleWriter::Create(CheckpointPrefix(folder_, step));
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Add("dense/kernel", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})).ok());
    ASSERT_TRUE((*writer)->Add("global_step", Tensor::Scalar<int64_t>(step)).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }

  const std::string folder_ = testing::TempDir() + "/checkpoint_test";
};

TEST_F(CheckpointTest, ReadsBackWhatItWrote) {
  Save(7);
  auto reader = BundleReader::Open(CheckpointPrefix(folder_, 7));
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ((*reader)->entries().size(), 2u);
  StatusOr<Tensor> kernel = (*reader)->Read("dense/kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->shape(), Shape({2, 2}));
  EXPECT_EQ(kernel->data<float>()[3], 4);
  EXPECT_EQ((*reader)->Read("global_step")->data<int64_t>()[0], 7);
  EXPECT_TRUE(absl::IsNotFound((*reader)->Read("bias").status()));
}

// The header must have the bytes observed in files written by TensorFlow: one shard, producer 1.
TEST_F(CheckpointTest, IndexHoldsTensorFlowsHeaderBytes) {
  Save(7);
  const std::string index = *ReadFile(IndexFileName(CheckpointPrefix(folder_, 7)));
  EXPECT_NE(index.find(std::string("\x08\x01\x1a\x02\x08\x01", 6)), std::string::npos);
  EXPECT_EQ(index.substr(index.size() - 8), std::string("\x57\xfb\x80\x8b\x24\x75\x47\xdb"));
}

TEST_F(CheckpointTest, UnfinishedWriterLeavesNothing) {
  {
    auto writer = BundleWriter::Create(folder_ + "/part");
    ASSERT_TRUE((*writer)->Add("a", Tensor::Scalar<float>(1)).ok());
    EXPECT_TRUE(absl::IsAlreadyExists((*writer)->Add("a", Tensor::Scalar<float>(1))));
  }
  EXPECT_TRUE(ListDirectory(folder_)->empty());
}

TEST_F(CheckpointTest, DamageIsNamed) {
  Save(7);
  const std::string prefix = CheckpointPrefix(folder_, 7);
  const std::string data = DataFileName(prefix, 0, 1);
  std::string bytes = *ReadFile(data);
  bytes[0] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(data, bytes).ok());
  EXPECT_EQ(Message((*BundleReader::Open(prefix))->Read("dense/kernel").status()),
            StrCat("checkpoint ", prefix, ": the checksum of dense/kernel is wrong"));
  ASSERT_TRUE(WriteFileAtomically(data, bytes.substr(0, 3)).ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(prefix).status()));
  std::string index = *ReadFile(IndexFileName(prefix));
  index[10] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(IndexFileName(prefix), index).ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(prefix).status()));
  ASSERT_TRUE(WriteFileAtomically(IndexFileName(prefix), "short").ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(prefix).status()));
}

TEST_F(CheckpointTest, WrongPrefixIsExplained) {
  Save(7);
  const std::string prefix = CheckpointPrefix(folder_, 7);
  EXPECT_NE(
      Message(BundleReader::Open(prefix + ".index").status()).find("use the prefix " + prefix),
      std::string::npos);
  EXPECT_NE(Message(BundleReader::Open(folder_).status()).find("it is a folder"),
            std::string::npos);
}

TEST_F(CheckpointTest, KeepsTheNewestAndDeletesTheRest) {
  for (int64_t step : {1, 2, 3}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 2, Time(1000s)).ok());
  }
  StatusOr<std::vector<Checkpoint>> listed = ListCheckpoints(folder_);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(listed->front().step, 2);
  EXPECT_EQ((*LatestCheckpoint(folder_))->prefix, CheckpointPrefix(folder_, 3));
  EXPECT_FALSE(std::filesystem::exists(IndexFileName(CheckpointPrefix(folder_, 1))));
  EXPECT_FALSE(std::filesystem::exists(DataFileName(CheckpointPrefix(folder_, 1), 0, 1)));
  EXPECT_NE(ReadFile(folder_ + "/checkpoint")->find("model_checkpoint_path: \"model.ckpt-3\""),
            std::string::npos);
}

TEST_F(CheckpointTest, RollingBackForgetsLaterSteps) {
  for (int64_t step : {10, 20, 15}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 5, Time(1000s)).ok());
  }
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 15);
  EXPECT_EQ(ListCheckpoints(folder_)->size(), 2u);
}

TEST_F(CheckpointTest, FallsBackToTheNewestThatIsThere) {
  EXPECT_FALSE(LatestCheckpoint(folder_)->has_value());
  for (int64_t step : {1, 2}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 5, Time(1000s)).ok());
  }
  unlink(IndexFileName(CheckpointPrefix(folder_, 2)).c_str());
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 1);
}

}  // namespace
}  // namespace tfjob::io
