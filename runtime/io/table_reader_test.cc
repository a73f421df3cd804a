// Tests forged indexes, which have correct checksums but wrong sizes and offsets.
#include "runtime/io/table_reader.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string Fixed32(uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Handle(uint64_t offset, uint64_t size) {
  return Varint(offset) + Varint(size);
}

std::string Entry(uint64_t shared, const std::string& key, const std::string& value) {
  return Varint(shared) + Varint(key.size()) + Varint(value.size()) + key + value;
}

// Returns a block with its trailer: its compression byte and a correct checksum.
std::string BlockOf(const std::string& entries, uint32_t restarts = 1, char compression = 0) {
  std::string block = entries + Fixed32(0) + Fixed32(restarts) + compression;
  return block + Fixed32(MaskCrc(Crc32c(std::string_view(block))));
}

std::string Footer(const std::string& index_handle) {
  std::string footer = Handle(0, 0) + index_handle;
  footer.resize(40);
  return footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

// Returns a table of one data block.
std::string TableOf(const std::string& entries) {
  const std::string data = BlockOf(entries);
  const std::string index = BlockOf(Entry(0, "z", Handle(0, data.size() - 5)));
  return data + index + Footer(Handle(data.size(), index.size() - 5));
}

TEST(TableReader, ReadsWhatItsFormatSays) {
  const auto table = ReadTable(TableOf(Entry(0, "dense/bias", "1") + Entry(6, "kernel", "22")));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 2u);
  EXPECT_EQ((*table)[0], std::make_pair(std::string("dense/bias"), std::string("1")));
  EXPECT_EQ((*table)[1], std::make_pair(std::string("dense/kernel"), std::string("22")));
}

TEST(TableReader, RefusesBlocksOutsideTheFile) {
  const std::string data = BlockOf(Entry(0, "a", "1"));
  const uint64_t size = data.size() - 5;
  const std::pair<uint64_t, uint64_t> forged[] = {
      {0, size + 1000},      {1000, size},           {uint64_t{0} - 8, size},  {0, uint64_t{0} - 5},
      {8, uint64_t{0} - 13}, {0, uint64_t{1} << 40}, {uint64_t{1} << 63, size}};
  for (const auto& [offset, bytes] : forged) {
    const std::string handle = Handle(offset, bytes);
    EXPECT_TRUE(absl::IsDataLoss(ReadTable(data + Footer(handle)).status())) << offset;
    // Put the same handle into the index of a table whose footer is correct.
    const std::string index = BlockOf(Entry(0, "z", handle));
    EXPECT_TRUE(absl::IsDataLoss(
        ReadTable(data + index + Footer(Handle(data.size(), index.size() - 5))).status()))
        << offset << " " << bytes;
  }
}

TEST(TableReader, RefusesEntriesThatDoNotFitTheirBlock) {
  const std::string bad[] = {
      Varint(5) + Varint(1) + Varint(1) + "ab",                // shares more bytes than exist
      Varint(0) + Varint(9) + Varint(1) + "ab",                // a key longer than the block
      Varint(0) + Varint(1) + Varint(uint64_t{0} - 1) + "ab",  // a value of 2^64 - 1 bytes
      Varint(0) + Varint(uint64_t{0} - 1) + Varint(2) + "ab",  // their sum overflows
      std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),  // no varint
      std::string("\x80", 1)};
  for (const std::string& entries : bad)
    EXPECT_TRUE(absl::IsDataLoss(ReadTable(TableOf(entries)).status()));
  const std::string block = BlockOf(Entry(0, "a", "1"), 1'000'000);
  EXPECT_TRUE(absl::IsDataLoss(ReadTable(block + Footer(Handle(0, block.size() - 5))).status()));
}

// Each entry repeats a key of 60 KB in only 4 bytes, so 400 KB would expand to 6 GB.
TEST(TableReader, LimitsWhatASmallFileExpandsTo) {
  const std::string key(60'000, 'k');
  std::string entries = Entry(0, key, "");
  for (int i = 0; i < 100'000; ++i) entries += Entry(key.size(), "", "");
  const Status status = ReadTable(TableOf(entries)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("more memory"), std::string::npos) << status;
}

// Each entry uses 3 bytes of the file. In memory, the string objects use much more.
TEST(TableReader, CountsTheMemoryOfTheStringsThemselves) {
  const std::string key(40, 'k');
  std::string entries = Entry(0, key, "");
  for (int i = 0; i < 1'000'000; ++i) entries += Entry(key.size(), "", "");
  const Status status = ReadTable(TableOf(entries)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("more memory"), std::string::npos) << status;
}

// Returns a table whose index lists these blocks.
std::string TableWithIndex(const std::string& blocks, const std::vector<std::string>& handles) {
  std::string entries;
  for (const std::string& handle : handles) entries += Entry(0, "z", handle);
  const std::string index = BlockOf(entries);
  return blocks + index + Footer(Handle(blocks.size(), index.size() - 5));
}

TEST(TableReader, ReadsEachBlockOnce) {
  const std::string first = BlockOf(Entry(0, "a", "1")), second = BlockOf(Entry(0, "b", "2"));
  const std::string one = Handle(0, first.size() - 5),
                    two = Handle(first.size(), second.size() - 5);
  const auto both = ReadTable(TableWithIndex(first + second, {one, two}));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->size(), 2u);
  for (const std::vector<std::string>& handles : {std::vector{one, one}, std::vector{two, one}}) {
    EXPECT_EQ(Message(ReadTable(TableWithIndex(first + second, handles)).status()),
              "its blocks overlap, or are not in order");
  }
}

TEST(TableReader, RefusesOtherFilesDamageAndCompression) {
  EXPECT_TRUE(absl::IsDataLoss(ReadTable("").status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadTable(std::string(48, 'x')).status()));
  std::string damaged = TableOf(Entry(0, "a", "1"));
  damaged[3] ^= 1;
  EXPECT_EQ(Message(ReadTable(damaged).status()), "the checksum of the block at byte 0 is wrong");
  const std::string block = BlockOf("", 1, 1);
  EXPECT_EQ(ReadTable(block + Footer(Handle(0, block.size() - 5))).status().code(),
            StatusCode::kUnimplemented);
}

class ForgedBundleTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    ASSERT_TRUE(WriteFileAtomically(DataFileName(prefix_, 0, 1), "12345678").ok());
  }
  // Writes the index of a checkpoint with this number of data files.
  void WriteIndex(int files, const std::vector<std::pair<std::string, BundleEntryProto>>& entries) {
    BundleHeaderProto header;
    header.set_num_shards(files);
    std::string text = Entry(0, "", header.SerializeAsString());
    for (const auto& [name, entry] : entries) text += Entry(0, name, entry.SerializeAsString());
    EXPECT_TRUE(WriteFileAtomically(IndexFileName(prefix_), TableOf(text)).ok());
  }
  // Opens a checkpoint of 8 bytes whose index has this entry.
  Status Open(const BundleEntryProto& entry) {
    WriteIndex(1, {{"w", entry}});
    auto reader = BundleReader::Open(prefix_);
    return reader.ok() ? (*reader)->Read("w").status() : reader.status();
  }
  // Returns an entry for bytes in the data file `shard`, at `offset`.
  static BundleEntryProto BytesAt(int shard, int64_t offset, std::string_view bytes) {
    BundleEntryProto entry;
    entry.set_dtype(static_cast<int>(DType::kUInt8));
    entry.mutable_shape()->add_dim()->set_size(static_cast<int64_t>(bytes.size()));
    entry.set_shard_id(shard);
    entry.set_offset(offset);
    entry.set_size(static_cast<int64_t>(bytes.size()));
    entry.set_crc32c(MaskCrc(Crc32c(bytes)));
    return entry;
  }
  std::string TextOf(const std::string& name) const {
    const auto reader = BundleReader::Open(prefix_);
    if (!reader.ok()) return reader.status().ToString();
    const StatusOr<Tensor> tensor = (*reader)->Read(name);
    if (!tensor.ok()) return tensor.status().ToString();
    return {reinterpret_cast<const char*>(tensor->bytes().data()), tensor->bytes().size()};
  }

  const std::string folder_ = testing::TempDir() + "/forged_bundle_test";
  const std::string prefix_ = folder_ + "/model.ckpt-1";
};

// TensorFlow writes such a checkpoint if several devices save their variables.
TEST_F(ForgedBundleTest, EachTensorIsReadFromItsDataFile) {
  const std::string first = DataFileName(prefix_, 0, 2), second = DataFileName(prefix_, 1, 2);
  ASSERT_TRUE(WriteFileAtomically(first, "abcdefgh").ok());
  ASSERT_TRUE(WriteFileAtomically(second, "ABCD").ok());
  WriteIndex(2,
             {{"a", BytesAt(0, 5, "fgh")}, {"b", BytesAt(1, 0, "ABC")}, {"c", BytesAt(1, 3, "D")}});
  EXPECT_EQ(TextOf("a"), "fgh");
  EXPECT_EQ(TextOf("b"), "ABC");
  EXPECT_EQ(TextOf("c"), "D");

  // Each entry is checked against the size of the data file that contains it, which must exist.
  WriteIndex(2, {{"b", BytesAt(1, 2, "CDE")}});
  EXPECT_EQ(TextOf("b"), DataLoss(second,
                                  " has 4 bytes, but the index says that b has 3 bytes at "
                                  "byte 2")
                             .ToString());
  WriteIndex(2, {{"b", BytesAt(2, 0, "ABC")}});
  EXPECT_EQ(TextOf("b"), DataLoss(prefix_, ": b is in a nonexistent shard 2").ToString());
  WriteIndex(2, {{"b", BytesAt(1, 0, "ABC")}});
  std::filesystem::remove(second);
  EXPECT_EQ(TextOf("b"), DataLoss("checkpoint ", prefix_, " lacks ", second).ToString());
}

// The tensor is read piece by piece, and the checksum covers all pieces.
TEST_F(ForgedBundleTest, TheChecksumCoversALargeTensor) {
  std::string text(700'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  const std::string file = DataFileName(prefix_, 0, 1);
  ASSERT_TRUE(WriteFileAtomically(file, text).ok());
  WriteIndex(1, {{"w", BytesAt(0, 0, text)}});
  EXPECT_EQ(TextOf("w"), text);
  for (const size_t at : {size_t{0}, size_t{300'000}, text.size() - 1}) {
    std::string damaged = text;
    damaged[at] = '!';
    ASSERT_TRUE(WriteFileAtomically(file, damaged).ok());
    EXPECT_EQ(TextOf("w"),
              DataLoss("checkpoint ", prefix_, ": the checksum of w is wrong").ToString())
        << at;
  }
}

TEST_F(ForgedBundleTest, OffsetsAndSizesAreCheckedAgainstTheFileWithoutOverflow) {
  BundleEntryProto good;
  good.set_dtype(static_cast<int>(DType::kUInt8));
  good.mutable_shape()->add_dim()->set_size(8);
  good.set_size(8);
  good.set_crc32c(MaskCrc(Crc32c(std::string_view("12345678"))));
  ASSERT_EQ(Open(good), OkStatus());
  const std::pair<int64_t, int64_t> forged[] = {
      {INT64_MAX, int64_t{1} << 40}, {1, INT64_MAX}, {INT64_MAX, INT64_MAX}, {1, 8}, {9, 0},
      {0, int64_t{1} << 40}};
  for (const auto& [offset, size] : forged) {
    BundleEntryProto entry = good;
    entry.set_offset(offset);
    entry.set_size(size);
    entry.mutable_shape()->mutable_dim(0)->set_size(std::min(size, int64_t{1} << 40));
    EXPECT_TRUE(absl::IsDataLoss(Open(entry))) << offset << " " << size;
  }
}

TEST_F(ForgedBundleTest, ShapesAreCheckedAgainstTheSize) {
  BundleEntryProto entry;
  entry.set_dtype(static_cast<int>(DType::kFloat32));
  entry.set_size(8);
  for (int i = 0; i < 3; ++i) entry.mutable_shape()->add_dim()->set_size(int64_t{1} << 40);
  EXPECT_TRUE(absl::IsDataLoss(Open(entry)));
  for (int i = 0; i < 300; ++i) entry.mutable_shape()->add_dim()->set_size(1);
  EXPECT_TRUE(absl::IsDataLoss(Open(entry)));
}

}  // namespace
}  // namespace tfjob::io
