// Tests checkpoints with partitioned variables, some of which are damaged. The indexes have correct
// checksums.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/forged_index.h"

namespace tfjob::io {
namespace {

using Entries = std::map<std::string, BundleEntryProto>;

class PartitionedTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  static std::string KeyOf(const std::string& name, const TensorSlice& slice) {
    return SliceKey(name, slice.start, slice.length);
  }

  // Adds a tensor in slices, of which every second one is in the second data file.
  void Add(const std::string& name, const Tensor& tensor, const std::vector<TensorSlice>& slices) {
    BundleEntryProto& whole = entries_[name];
    whole.set_dtype(static_cast<int>(tensor.dtype()));
    for (const int64_t dim : tensor.shape().dims()) whole.mutable_shape()->add_dim()->set_size(dim);
    for (size_t i = 0; i < slices.size(); ++i) {
      TensorSliceProto* written = whole.add_slices();
      BundleEntryProto& entry = entries_[KeyOf(name, slices[i])];
      entry.set_dtype(whole.dtype());
      for (size_t d = 0; d < slices[i].start.size(); ++d) {
        auto* extent = written->add_extent();
        extent->set_start(slices[i].start[d]);
        extent->set_length(slices[i].length[d]);
        entry.mutable_shape()->add_dim()->set_size(slices[i].length[d]);
      }
      const SlicePositions positions(tensor.shape(), slices[i]);
      const size_t item = SizeOf(tensor.dtype());
      std::string bytes;
      for (int64_t p = 0; p < positions.size(); ++p) {
        const auto at = static_cast<size_t>(positions.InTensor(p)) * item;
        bytes.append(reinterpret_cast<const char*>(&tensor.bytes()[at]), item);
      }
      entry.set_shard_id(static_cast<int>(i % 2));
      entry.set_offset(static_cast<int64_t>(data_[i % 2].size()));
      entry.set_size(static_cast<int64_t>(bytes.size()));
      entry.set_crc32c(MaskCrc(Crc32c(bytes)));
      data_[i % 2] += bytes;
    }
  }
  void Write() {
    for (int i = 0; i < 2; ++i)
      ASSERT_EQ(WriteFileAtomically(DataFileName(prefix_, i, 2), data_[i]), OkStatus());
    ASSERT_EQ(WriteFileAtomically(IndexFileName(prefix_), IndexOf(2, entries_)), OkStatus());
  }
  // Returns the error of opening the checkpoint or of reading `w`.
  std::string Error() {
    Write();
    const auto reader = BundleReader::Open(prefix_);
    if (!reader.ok()) return reader.status().ToString();
    const Status status = (*reader)->Read("w").status();
    EXPECT_EQ(status, (*reader)->Store("w").status());
    return status.ToString();
  }
  // Damages a float32[4,2] in two slices, and returns the error.
  std::string ErrorAfter(const std::function<void(Entries&)>& damage) {
    entries_.clear();
    for (std::string& data : data_) data.clear();
    Add("w", Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), {first_, second_});
    damage(entries_);
    return Error();
  }
  std::string InIndex(std::string_view message) const {
    return DataLoss(IndexFileName(prefix_), ": ", message).ToString();
  }

  const std::string folder_ = testing::TempDir() + "/partitioned_test";
  const std::string prefix_ = folder_ + "/model.ckpt-1";
  const TensorSlice first_ = {{0, 0}, {3, 2}}, second_ = {{3, 0}, {1, 2}};
  const std::string second_key_ = KeyOf("w", second_);
  Entries entries_;
  std::string data_[2];
};

Tensor Counted(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  std::iota(tensor.data<float>().begin(), tensor.data<float>().end(), 1.0f);
  return tensor;
}

TEST_F(PartitionedTest, EveryWayOfReadingAssemblesTheSlices) {
  const std::map<std::string, std::pair<Shape, std::vector<TensorSlice>>> cases = {
      {"rows", {{7, 3}, {{{0, 0}, {4, 3}}, {{4, 0}, {2, 3}}, {{6, 0}, {1, 3}}}}},
      {"columns", {{7, 3}, {{{0, 0}, {7, 1}}, {{0, 1}, {7, 2}}}}},
      {"grid", {{7, 3}, {{{4, 1}, {3, 2}}, {{0, 0}, {4, 1}}, {{4, 0}, {3, 1}}, {{0, 1}, {4, 2}}}}},
      {"cube", {{2, 3, 4}, {{{0, 0, 0}, {2, 1, 4}}, {{0, 1, 0}, {2, 2, 4}}}}},
      {"scalar", {{}, {{{}, {}}}}},
      {"empty", {{0, 3}, {{{0, 0}, {0, 3}}}}},
      // More bytes than are read at once, in blocks whose size does not divide that number.
      {"large", {{700, 1001}, {{{0, 0}, {700, 501}}, {{0, 501}, {700, 500}}}}}};
  for (const auto& [name, tensor] : cases) Add(name, Counted(tensor.first), tensor.second);
  Write();
  const StatusOr<std::unique_ptr<BundleReader>> reader = BundleReader::Open(prefix_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ThreadPool pool("reader", 2);
  for (const auto& [name, tensor] : cases) {
    SCOPED_TRACE(name);
    const Tensor wanted = Counted(tensor.first);
    const StatusOr<Tensor> read = (*reader)->Read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(std::ranges::equal(read->bytes(), wanted.bytes()));
    Tensor into(DType::kFloat32, tensor.first);
    ASSERT_EQ((*reader)->ReadInto(name, into, &pool), OkStatus());
    EXPECT_TRUE(std::ranges::equal(into.bytes(), wanted.bytes()));
    const StatusOr<StoredTensor> stored = (*reader)->Store(name);
    ASSERT_TRUE(stored.ok()) << stored.status();
    for (const size_t begin : {size_t{0}, size_t{1}, size_t{7}, size_t{17}}) {
      if (begin > wanted.num_bytes()) continue;
      std::vector<std::byte> piece(wanted.num_bytes() - begin);
      ASSERT_EQ(stored->Read(static_cast<int64_t>(begin), piece), OkStatus());
      EXPECT_TRUE(std::ranges::equal(piece, wanted.bytes().subspan(begin))) << begin;
    }
  }
}

// Returns how often this process has called read or a similar function of the system.
int64_t ReadCalls() {
  std::ifstream io("/proc/self/io");
  std::string name;
  for (int64_t value = 0; io >> name >> value;)
    if (name == "syscr:") return value;
  return -1;
}

TEST_F(PartitionedTest, SmallBlocksOfASliceAreReadTogether) {
  constexpr int64_t kRows = 20'000;
  const Tensor wanted = Counted({kRows, 4});
  Add("w", wanted, {{{0, 0}, {kRows, 1}}, {{0, 1}, {kRows, 3}}});
  Write();
  const StatusOr<StoredTensor> stored = (*BundleReader::Open(prefix_))->Store("w");
  ASSERT_TRUE(stored.ok()) << stored.status();
  const int64_t before = ReadCalls();
  ASSERT_GE(before, 0);
  // The range begins and ends within an element of the second slice.
  std::vector<std::byte> bytes(wanted.num_bytes() - 11);
  ASSERT_EQ(stored->Read(6, bytes), OkStatus());
  EXPECT_LT(ReadCalls() - before, kRows / 100);
  EXPECT_TRUE(std::ranges::equal(bytes, wanted.bytes().subspan(6, bytes.size())));
}

TEST_F(PartitionedTest, RowsAreReadFromTheSlicesThatContainThem) {
  Add("w", Counted({5, 2}), {{{3, 0}, {2, 2}}, {{0, 0}, {3, 1}}, {{0, 1}, {3, 1}}});
  Write();
  const StatusOr<StoredTensor> stored = (*BundleReader::Open(prefix_))->Store("w");
  ASSERT_TRUE(stored.ok()) << stored.status();
  std::vector<float> rows(6);
  const std::vector<int64_t> indices = {4, 0, 2};
  ASSERT_EQ(stored->ReadRows(indices, std::as_writable_bytes(std::span(rows))), OkStatus());
  EXPECT_EQ(rows, (std::vector<float>{9, 10, 1, 2, 5, 6}));
}

// A writer may leave the length of an extent open if it contains the whole dimension.
TEST_F(PartitionedTest, AnOpenExtentContainsTheWholeDimension) {
  Add("w", Counted({4, 2}), {first_, second_});
  const std::vector<int64_t> starts = {3, 0}, lengths = {1, -1};
  entries_["w"].mutable_slices(1)->mutable_extent(1)->Clear();
  entries_[SliceKey("w", starts, lengths)] = entries_[second_key_];
  entries_.erase(second_key_);
  Write();
  const StatusOr<Tensor> read = (*BundleReader::Open(prefix_))->Read("w");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(std::ranges::equal(read->bytes(), Counted({4, 2}).bytes()));
}

TEST_F(PartitionedTest, DamageInTheIndexIsNamed) {
  EXPECT_EQ(ErrorAfter([](Entries&) {}), OkStatus().ToString());
  EXPECT_EQ(ErrorAfter([&](Entries& entries) { entries.erase(second_key_); }),
            InIndex("the index has no entry of w, slice [3:4, 0:2]"));
  EXPECT_EQ(ErrorAfter([](Entries& entries) {
              entries["w"].mutable_slices(1)->mutable_extent(0)->set_start(2);
            }),
            InIndex("w: slice [2:3, 0:2] overlaps slice [0:3, 0:2]"));
  EXPECT_EQ(ErrorAfter([](Entries& entries) {
              entries["w"].mutable_slices(1)->mutable_extent(0)->set_start(4);
            }),
            InIndex("w: slice [4:5, 0:2] is not within the shape [4,2]"));
  EXPECT_EQ(ErrorAfter([](Entries& entries) { entries["w"].mutable_slices()->RemoveLast(); }),
            InIndex("w: its 1 slices contain only 6 of the 8 elements of the shape [4,2]"));
  EXPECT_EQ(ErrorAfter([](Entries& entries) {
              entries["w"].mutable_slices(1)->mutable_extent()->RemoveLast();
            }),
            InIndex("w: a slice has 1 dimensions, but the shape is [4,2]"));
  EXPECT_EQ(ErrorAfter([&](Entries& entries) { entries[second_key_].set_dtype(9); }),
            InIndex("w, slice [3:4, 0:2], has TensorFlow's element type 9, but w has 1"));
  EXPECT_EQ(ErrorAfter([&](Entries& entries) {
              entries[second_key_].mutable_shape()->mutable_dim(1)->set_size(3);
            }),
            InIndex("w, slice [3:4, 0:2], is stored with the shape [1,3]"));
  EXPECT_EQ(ErrorAfter([](Entries& entries) {
              for (auto& dim : *entries["w"].mutable_shape()->mutable_dim())
                dim.set_size(int64_t{1} << 40);
            }),
            InIndex("w: its shape [1099511627776,1099511627776] is too large"));
  EXPECT_EQ(ErrorAfter([](Entries& entries) {
              for (int i = 0; i < 5000; ++i) *entries["w"].add_slices() = entries["w"].slices(0);
            }),
            Unimplemented(IndexFileName(prefix_),
                          ": w consists of 5002 slices; at most 4096 are supported")
                .ToString());
}

// The slices overlap, which only comparisons would find.
TEST_F(PartitionedTest, SlicesWithTooManyComparisonsAreRefused) {
  const auto add = [&](const std::string& name, int slices) {
    BundleEntryProto& whole = entries_[name];
    whole.set_dtype(1);
    for (int d = 0; d < 32; ++d) whole.mutable_shape()->add_dim()->set_size(1);
    for (int i = 0; i < slices; ++i) {
      TensorSliceProto* slice = whole.add_slices();
      for (int d = 0; d < 32; ++d) slice->add_extent();
    }
  };
  add("v", 4096);
  EXPECT_NE(Error().find(" overlaps slice "), std::string::npos) << "within the limit";
  add("w", 65);
  EXPECT_EQ(Error(),
            Unimplemented(IndexFileName(prefix_),
                          ": w consists of 65 slices of 32 dimensions; the slices of the "
                          "variables up to this one need more than 268435456 comparisons of "
                          "dimensions; divide the variables into fewer slices")
                .ToString());
}

TEST_F(PartitionedTest, LocationsOutsideTheDataFilesAreNamed) {
  const std::string file = DataFileName(prefix_, 1, 2);
  EXPECT_EQ(ErrorAfter([&](Entries& entries) { entries[second_key_].set_offset(1); }),
            DataLoss(file,
                     " has 8 bytes, but the index says that w, slice [3:4, 0:2], has 8 "
                     "bytes at byte 1")
                .ToString());
  EXPECT_EQ(ErrorAfter([&](Entries& entries) { entries[second_key_].set_shard_id(2); }),
            DataLoss(prefix_, ": w, slice [3:4, 0:2], is in a nonexistent shard 2").ToString());
  EXPECT_EQ(
      ErrorAfter([&](Entries& entries) { entries[second_key_].set_size(4); }),
      DataLoss("checkpoint ", prefix_, ": w, slice [3:4, 0:2], has 4 bytes for the shape [1,2]")
          .ToString());
  // Both slices in the bytes of the first one.
  EXPECT_EQ(ErrorAfter([&](Entries& entries) {
              entries[second_key_].set_shard_id(0);
              entries[second_key_].set_crc32c(MaskCrc(Crc32c(data_[0].substr(0, 8))));
            }),
            DataLoss(DataFileName(prefix_, 0, 2), " has 24 bytes, but the index says that the ",
                     "slices of w have more bytes in total")
                .ToString());
  std::filesystem::remove(file);
  EXPECT_EQ(BundleReader::Open(prefix_).status().code(), StatusCode::kDataLoss);
}

// The tensor has no elements, but the product of its first dimensions does not fit into 63 bits.
TEST_F(PartitionedTest, AnEmptyShapeWithLargeDimensionsIsRefused) {
  const int64_t large = int64_t{1} << 40;
  BundleEntryProto& whole = entries_["w"];
  whole.set_dtype(1);
  for (const int64_t dim : {large, large, int64_t{0}})
    whole.mutable_shape()->add_dim()->set_size(dim);
  const std::string shape = StrCat("[", large, ",", large, ",0]");
  EXPECT_EQ(Error(),
            DataLoss("checkpoint ", prefix_, ": w has 0 bytes for the shape ", shape).ToString());
  entries_[SliceKey("w", std::vector<int64_t>(3, 0), std::vector<int64_t>(3, -1))] = whole;
  for (int d = 0; d < 3; ++d) {
    if (d == 0) whole.add_slices();
    whole.mutable_slices(0)->add_extent();
  }
  EXPECT_EQ(
      Error(),
      DataLoss("checkpoint ", prefix_, ": the shape ", shape, " of w is too large").ToString());
}

TEST_F(PartitionedTest, AWrongChecksumNamesTheSlice) {
  const std::string wrong =
      DataLoss("checkpoint ", prefix_, ": the checksum of w, slice [3:4, 0:2], is wrong")
          .ToString();
  EXPECT_EQ(ErrorAfter([&](Entries&) { data_[1][7] ^= 1; }), wrong);
  // A slice that is not contiguous in the tensor.
  entries_.clear();
  for (std::string& data : data_) data.clear();
  Add("w", Counted({4, 2}), {{{0, 0}, {4, 1}}, {{0, 1}, {4, 1}}});
  data_[0][0] ^= 1;
  EXPECT_EQ(Error(),
            DataLoss("checkpoint ", prefix_, ": the checksum of w, slice [0:4, 0:1], is wrong")
                .ToString());
}

TEST_F(PartitionedTest, StringsAreNotAssembled) {
  EXPECT_EQ(ErrorAfter([&](Entries& entries) {
              for (auto& [key, entry] : entries) entry.set_dtype(7);
            }),
            Unimplemented("checkpoint ", prefix_,
                          ": w has TensorFlow's element type 7, which is not supported")
                .ToString());
  EXPECT_EQ((*BundleReader::Open(prefix_))->ReadString("w").status().code(),
            StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tfjob::io
