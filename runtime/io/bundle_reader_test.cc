// Tests reads of tensors into existing memory, on several threads.
#include "runtime/io/bundle_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/io/bundle_writer.h"

namespace tfjob::io {
namespace {

// Returns a tensor large enough to be read by several threads. The last thread reads fewer bytes
// than the other threads.
Tensor Large() {
  Tensor tensor(DType::kUInt8, {(9 << 20) + 12345});
  uint32_t state = 1;
  for (uint8_t& value : tensor.data<uint8_t>())
    value = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return tensor;
}

class BundleReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    auto writer = *BundleWriter::Create(prefix_);
    ASSERT_EQ(writer->Add("before", Tensor::Of<float>({2}, {1, 2})), OkStatus());
    ASSERT_EQ(writer->Add("large", large_), OkStatus());
    ASSERT_EQ(writer->Add("empty", Tensor(DType::kFloat32, {0})), OkStatus());
    ASSERT_EQ(writer->Finish(), OkStatus());
  }
  // Changes one byte of the tensor `large` in the file.
  void Damage(size_t at) {
    const std::string path = DataFileName(prefix_, 0, 1);
    std::string bytes = *ReadFile(path);
    bytes[8 + at] = static_cast<char>(bytes[8 + at] ^ 1);
    ASSERT_EQ(WriteFileAtomically(path, bytes), OkStatus());
  }

  const std::string folder_ = testing::TempDir() + "/bundle_reader_test";
  const std::string prefix_ = folder_ + "/model.ckpt-1";
  const Tensor large_ = Large();
  ThreadPool pool_{"reader", 2};
};

TEST_F(BundleReaderTest, ReadsIntoGivenMemory) {
  const auto reader = *BundleReader::Open(prefix_);
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &pool_}) {
    const Tensor to(DType::kUInt8, large_.shape());
    ASSERT_EQ(reader->ReadInto("large", to, pool), OkStatus());
    EXPECT_TRUE(std::ranges::equal(to.bytes(), large_.bytes()));
    const Tensor before(DType::kFloat32, {2});
    ASSERT_EQ(reader->ReadInto("before", before, pool), OkStatus());
    EXPECT_EQ(before.data<float>()[1], 2);
    EXPECT_EQ(reader->ReadInto("empty", Tensor(DType::kFloat32, {0}), pool), OkStatus());
  }
}

TEST_F(BundleReaderTest, NamesATensorThatDoesNotFit) {
  const auto reader = *BundleReader::Open(prefix_);
  EXPECT_EQ(Message(reader->ReadInto("before", Tensor(DType::kFloat32, {3}))),
            StrCat("checkpoint ", prefix_, ": before is float32[2], expected float32[3]"));
  EXPECT_TRUE(absl::IsInvalidArgument(reader->ReadInto("before", Tensor(DType::kInt32, {2}))));
  EXPECT_TRUE(absl::IsNotFound(reader->ReadInto("after", Tensor(DType::kFloat32, {2}))));
}

TEST_F(BundleReaderTest, FindsDamageInEveryThreadsShare) {
  const size_t last = large_.num_bytes() - 1;
  for (size_t at : {size_t{0}, size_t{4} << 20, (size_t{8} << 20) - 1, last}) {
    Damage(at);
    const auto reader = *BundleReader::Open(prefix_);
    const Tensor to(DType::kUInt8, large_.shape());
    for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &pool_}) {
      EXPECT_EQ(Message(reader->ReadInto("large", to, pool)),
                StrCat("checkpoint ", prefix_, ": the checksum of large is wrong"))
          << at;
    }
    Damage(at);  // repairs it
  }
}

TEST_F(BundleReaderTest, ReadsRowsOfAMatrixThatStaysInTheFile) {
  Tensor matrix(DType::kFloat32, {100, 3});
  for (size_t i = 0; i < 300; ++i) matrix.data<float>()[i] = static_cast<float>(i);
  auto writer = *BundleWriter::Create(prefix_);
  ASSERT_EQ(writer->Add("before", Tensor::Of<float>({2}, {1, 2})), OkStatus());
  ASSERT_EQ(writer->Add("matrix", matrix), OkStatus());
  ASSERT_EQ(writer->Finish(), OkStatus());
  const StatusOr<StoredTensor> stored = (*BundleReader::Open(prefix_))->Store("matrix");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->shape(), (Shape{100, 3}));
  std::filesystem::remove_all(folder_);  // simulates another process that deletes old checkpoints
  std::vector<float> rows(9, -1);
  const auto bytes = std::as_writable_bytes(std::span(rows));
  ASSERT_EQ(stored->ReadRows(std::vector<int64_t>{0, 99, -1}, bytes), OkStatus());
  EXPECT_EQ(rows, (std::vector<float>{0, 1, 2, 297, 298, 299, -1, -1, -1}));
  EXPECT_EQ(Message(stored->ReadRows(std::vector<int64_t>{1, 2, 100}, bytes)),
            "row 100: expected 0 to 99");
}

TEST_F(BundleReaderTest, ReadsPiecesOfATensorThatStaysInTheFile) {
  const StatusOr<StoredTensor> stored = (*BundleReader::Open(prefix_))->Store("large");
  ASSERT_TRUE(stored.ok()) << stored.status();
  const auto size = static_cast<int64_t>(large_.num_bytes());
  std::vector<std::byte> piece(1 << 20);
  for (const int64_t offset : {int64_t{0}, int64_t{(5 << 20) + 1}, size - (1 << 20)}) {
    ASSERT_EQ(stored->Read(offset, piece), OkStatus());
    EXPECT_TRUE(
        std::ranges::equal(piece, large_.bytes().subspan(static_cast<size_t>(offset), 1 << 20)));
  }
  EXPECT_EQ(stored->Read(size, {}), OkStatus());
  EXPECT_EQ(Message(stored->Read(size - 1, piece)),
            StrCat("expected bytes of a tensor of ", size, " bytes, got ", piece.size(),
                   " from byte ", size - 1));
  EXPECT_EQ(stored->Read(-1, {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(stored->Read(INT64_MAX, piece).code(), StatusCode::kInvalidArgument);
}

TEST_F(BundleReaderTest, StoresNoTensorThatIsDamaged) {
  Damage(5 << 20);
  const auto reader = *BundleReader::Open(prefix_);
  EXPECT_EQ(Message(reader->Store("large").status()),
            StrCat("checkpoint ", prefix_, ": the checksum of large is wrong"));
  EXPECT_TRUE(absl::IsNotFound(reader->Store("after").status()));
}

// A file may be truncated after the index has been checked.
TEST_F(BundleReaderTest, NamesAFileThatEndsTooSoon) {
  const auto reader = *BundleReader::Open(prefix_);
  std::filesystem::resize_file(DataFileName(prefix_, 0, 1), 5 << 20);
  const Tensor to(DType::kUInt8, large_.shape());
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &pool_}) {
    const Status status = reader->ReadInto("large", to, pool);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(Message(status).find("ends before byte"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace tfjob::io
