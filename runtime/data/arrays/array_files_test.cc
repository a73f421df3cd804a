// Tests files of arrays: in every format, values read from memory and from disk are equal, and
// errors name the file.
#include "runtime/data/arrays/array_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/cache_file.h"
#include "runtime/data/operators/fields.h"
#include "runtime/data/test_batches.h"
#include "runtime/data/text/test_files.h"
#include "runtime/io/npz.h"

namespace tfjob::data {
namespace {

using ::testing::HasSubstr;
using text::testing::TextFolder;

const StorageOptions kOnDisk{.most_in_memory = 0};

// Checks that both sources have the same batches, for several workers and orders.
void ExpectSame(const std::shared_ptr<const Source>& memory,
                const std::shared_ptr<const Source>& disk) {
  EXPECT_TRUE(memory->in_memory());
  EXPECT_FALSE(disk->in_memory());
  ASSERT_EQ(memory->fields().size(), disk->fields().size());
  for (size_t i = 0; i < memory->fields().size(); ++i) {
    EXPECT_EQ(memory->fields()[i].name, disk->fields()[i].name);
    EXPECT_EQ(memory->fields()[i].dtype, disk->fields()[i].dtype);
    EXPECT_EQ(memory->fields()[i].shape, disk->fields()[i].shape);
  }
  for (const bool shuffle : {false, true}) {
    for (const int64_t worker : {0, 1, 2}) {
      const PipelineOptions part{
          .batch_size = 7, .shuffle = shuffle, .worker = worker, .workers = 3};
      EXPECT_EQ(*Batches(memory, part), *Batches(disk, part)) << shuffle << worker;
    }
  }
}

// ---- IDX

std::string Word(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string IdxFile(std::vector<uint32_t> dims, size_t values) {
  std::string text = {'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) text += Word(dim);
  for (size_t i = 0; i < values; ++i) text += static_cast<char>(i * 7);
  return text;
}

std::string Gzip(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return path;
}

TEST(IdxFiles, AreTheSameInMemoryAndOnDisk) {
  const TextFolder folder;
  const std::string images = IdxFile({50, 3, 2}, 300), labels = IdxFile({50}, 50);
  const IdxOptions plain{folder.Write("images", images), folder.Write("labels", labels)};
  const IdxOptions packed{Gzip(folder.Write("images.gz", ""), images),
                          Gzip(folder.Write("labels.gz", ""), labels)};
  for (const IdxOptions& options : {plain, packed, IdxOptions{plain.images, packed.labels}}) {
    const auto memory = OpenIdx(options, {.most_in_memory = 350});
    const auto disk = OpenIdx(options, {.most_in_memory = 349});
    ASSERT_TRUE(memory.ok() && disk.ok()) << memory.status() << disk.status();
    ExpectSame(*memory, *disk);
  }
  EXPECT_THAT((*OpenIdx({plain.images, packed.labels}, kOnDisk))->Describe(),
              HasSubstr("; 300 bytes, read when a batch needs them; 50 bytes unpacked into a"));
}

TEST(IdxFiles, OfAnotherSizeThanTheirHeaderAreErrors) {
  const TextFolder folder;
  const std::string labels = folder.Write("labels", IdxFile({50}, 50));
  const auto error = [&](const std::string& images) {
    return std::string(
        Message(OpenIdx({folder.Write("images", images), labels}, kOnDisk).status()));
  };
  EXPECT_THAT(error(IdxFile({50, 3, 2}, 299)), HasSubstr("images: "));
  EXPECT_THAT(error(IdxFile({50, 3, 2}, 301)),
              HasSubstr("images: expected the end of the file after data of shape [50,3,2]"));
  EXPECT_THAT(error(IdxFile({49, 3, 2}, 294)), HasSubstr("has 50; expected as many labels"));
  const std::string packed = Gzip(folder.Write("gz", ""), IdxFile({50, 3, 2}, 299));
  EXPECT_THAT(std::string(Message(OpenIdx({packed, labels}, kOnDisk).status())),
              HasSubstr("gz: expected 300 bytes of data of shape [50,3,2], the file ends after"));
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 2);
  EXPECT_THAT(std::string(Message(OpenIdx({packed, labels}, kOnDisk).status())),
              HasSubstr("gz: the compressed data is damaged"));
}

// ---- NumPy

template <typename T>
std::string BytesOf(const std::vector<T>& values, bool swap = false) {
  std::string bytes;
  for (const T& value : values) {
    std::string item(reinterpret_cast<const char*>(&value), sizeof(T));
    if (swap) std::ranges::reverse(item);
    bytes += item;
  }
  return bytes;
}

std::string NpyFile(const std::string& descr, bool fortran, const std::string& shape,
                    const std::string& values) {
  std::string header =
      StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran ? "True" : "False",
             ", 'shape': ", shape, ", }\n");
  std::string text = "\x93NUMPY\x01";
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  return text + header + values;
}

template <typename T>
std::vector<T> Numbers(size_t count, double factor = 1) {
  std::vector<T> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<T>(factor * double(i % 100)));
  return numbers;
}

// Opens NPY files with this content as the fields x, y, ….
StatusOr<std::shared_ptr<const Source>> OpenFiles(const TextFolder& folder,
                                                  const std::vector<std::string>& files,
                                                  const StorageOptions& storage) {
  NpzOptions options;
  std::string name = "x";
  for (const std::string& file : files) {
    options.arrays.push_back({name, folder.Write(name + ".npy", file)});
    ++name[0];
  }
  return OpenNpz(options, storage);
}

TEST(NpyFiles, OfEveryLayoutAreTheSameInMemoryAndOnDisk) {
  const TextFolder folder;
  std::vector<std::string> files;
  for (const bool fortran : {false, true}) {
    for (const char* const order : {"<", ">"}) {
      const bool swap = *order == '>';
      const auto add = [&](const std::string& type, const std::string& values) {
        files.push_back(NpyFile(order + type, fortran, "(40, 3, 2)", values));
      };
      add("f4", BytesOf(Numbers<float>(240, 0.5), swap));
      add("f8", BytesOf(Numbers<double>(240, -0.1), swap));
      add("i1", BytesOf(Numbers<int8_t>(240, -1), swap));
      add("i2", BytesOf(Numbers<int16_t>(240, -9), swap));
      add("i4", BytesOf(Numbers<int32_t>(240, -9), swap));
      add("i8", BytesOf(Numbers<int64_t>(240, -9), swap));
      add("u1", BytesOf(Numbers<uint8_t>(240), swap));
      add("u2", BytesOf(Numbers<uint16_t>(240, 9), swap));
      add("u4", BytesOf(Numbers<uint32_t>(240, 9), swap));
      add("u8", BytesOf(Numbers<uint64_t>(240, 9), swap));
      add("f2", BytesOf(Numbers<uint16_t>(240, 100), swap));
    }
  }
  files.push_back(NpyFile("|b1", false, "(40,)", BytesOf(std::vector<uint8_t>(40, 1))));
  for (const std::string& file : files) {
    const auto memory = OpenFiles(folder, {file, files[0]}, {});
    const auto disk = OpenFiles(folder, {file, files[0]}, kOnDisk);
    ASSERT_TRUE(memory.ok() && disk.ok()) << memory.status() << disk.status();
    ExpectSame(*memory, *disk);
    ASSERT_FALSE(testing::Test::HasFailure()) << file.substr(10, 60);
  }
}

TEST(NpyFiles, InFortranOrderAreStoredInBlocks) {
  const TextFolder folder;
  // Each example has 2 MiB, so a block contains 16 of the 20 examples.
  const std::string file =
      NpyFile("<i4", true, "(20, 4, 131072)", BytesOf(Numbers<int32_t>(20 * 4 * 131072, 3)));
  const auto memory = OpenFiles(folder, {file}, {});
  const auto disk = OpenFiles(folder, {file}, kOnDisk);
  ASSERT_TRUE(memory.ok() && disk.ok()) << memory.status() << disk.status();
  EXPECT_EQ(*Batches(*memory), *Batches(*disk));
}

TEST(NpyFiles, WithInvalidValuesAreErrorsThatNameTheRow) {
  const TextFolder folder;
  std::vector<uint8_t> bools(30, 1);
  bools[17] = 2;
  std::vector<uint64_t> large(30, 5);
  large[29] = ~uint64_t{0};
  std::vector<float> nan(30, 5);
  nan[3] = NAN;
  for (const auto& [file, error] :
       {std::pair(NpyFile("|b1", false, "(10, 3)", BytesOf(bools)), "x.npy: row 5: a bool has"),
        std::pair(NpyFile("<u8", false, "(10, 3)", BytesOf(large)), "x.npy: row 9: a uint64 is"),
        std::pair(NpyFile("<f4", false, "(10, 3)", BytesOf(nan)),
                  "x.npy: row 1: expected a finite number")}) {
    const auto disk = OpenFiles(folder, {file}, kOnDisk);
    ASSERT_TRUE(disk.ok()) << disk.status();
    EXPECT_THAT(std::string(Message(Batches(*disk).status())), HasSubstr(error));
  }
}

TEST(NpyFiles, ThatChangeAreErrors) {
  const TextFolder folder;
  const std::string file = NpyFile("<f4", false, "(40, 3)", BytesOf(Numbers<float>(120)));
  const auto disk = OpenFiles(folder, {file}, kOnDisk);
  ASSERT_TRUE(Batches(*disk).ok());
  folder.Write("x.npy", file + "more");
  EXPECT_THAT(std::string(Message(Batches(*disk).status())),
              HasSubstr("x.npy: the file has changed since this task opened it"));
}

TEST(NpyFiles, AreRefusedLikeInMemory) {
  const TextFolder folder;
  const std::string good = NpyFile("<f4", false, "(40, 3)", BytesOf(Numbers<float>(120)));
  for (const std::vector<std::string>& files :
       {std::vector{good, NpyFile("<f4", false, "(39,)", BytesOf(Numbers<float>(39)))},
        std::vector{NpyFile("<f4", false, "()", BytesOf(Numbers<float>(1)))},
        std::vector{NpyFile("<f4", false, "(0, 3)", "")},
        std::vector{good.substr(0, good.size() - 4)}, std::vector<std::string>{"abc"}}) {
    const auto memory = OpenFiles(folder, files, {});
    const auto disk = OpenFiles(folder, files, kOnDisk);
    EXPECT_FALSE(disk.ok());
    EXPECT_EQ(Message(memory.status()), Message(disk.status()));
  }
}

// Writes an archive with the arrays a (float32 [40,3]) and b (int64 [40]).
std::string Archive(const TextFolder& folder) {
  Tensor a(DType::kFloat32, {40, 3}), b(DType::kInt64, {40});
  for (size_t i = 0; i < 120; ++i) a.data<float>()[i] = static_cast<float>(i);
  for (size_t i = 0; i < 40; ++i) b.data<int64_t>()[i] = static_cast<int64_t>(i);
  const std::string path = folder.Write("t.npz", "");
  const std::vector<std::pair<std::string, Tensor>> arrays = {{"a", a}, {"b", b}};
  EXPECT_EQ(io::WriteNpz(path, arrays), OkStatus());
  return path;
}

TEST(NpzFiles, AreTheSameInMemoryAndOnDisk) {
  const TextFolder folder;
  const NpzOptions options{.file = Archive(folder),
                           .arrays = {{"x", "a"}, {"y", "b"}, {"again", "a"}, {"w", "c", true}}};
  const auto memory = OpenNpz(options), disk = OpenNpz(options, kOnDisk);
  ASSERT_TRUE(memory.ok() && disk.ok()) << memory.status() << disk.status();
  ExpectSame(*memory, *disk);
  const auto cached = Cache(*disk);
  ASSERT_TRUE(cached.ok()) << cached.status();
  EXPECT_EQ(*Batches(*cached), *Batches(*memory));
  const auto file = CacheInFile(*disk, folder.Write("x", "") + ".cache");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*Batches(*file), *Batches(*memory));
}

// Returns an archive with one deflated member, as numpy.savez_compressed writes it.
std::string DeflatedArchive(const std::string& name, const std::string& content) {
  std::string packed(compressBound(content.size()), '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const auto number = [](uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
    return text;
  };
  const uLong crc =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  const std::string common = number(20, 2) + number(0, 2) + number(8, 2) + number(0, 4) +
                             number(crc, 4) + number(packed.size(), 4) + number(content.size(), 4) +
                             number(name.size(), 2) + number(0, 2);
  const std::string member = "PK\3\4" + common + name + packed;
  const std::string entry =
      "PK\1\2" + number(20, 2) + common + number(0, 2 + 2 + 2 + 4) + number(0, 4) + name;
  return member + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
         number(entry.size(), 4) + number(member.size(), 4) + number(0, 2);
}

TEST(NpzFiles, ThatAreCompressedAreUnpacked) {
  const TextFolder folder;
  for (const bool fortran : {false, true}) {
    const std::string array =
        NpyFile(">i8", fortran, "(40, 3)", BytesOf(Numbers<int64_t>(120, 3), /*swap=*/true));
    const NpzOptions options{.file = folder.Write("t.npz", DeflatedArchive("a.npy", array)),
                             .arrays = {{"x", "a"}, {"y", "a"}}};
    const auto memory = OpenNpz(options), disk = OpenNpz(options, kOnDisk);
    ASSERT_TRUE(memory.ok() && disk.ok()) << memory.status() << disk.status();
    ExpectSame(*memory, *disk);
    EXPECT_THAT((*disk)->Describe(), HasSubstr("; 1920 bytes unpacked into a temporary file"));
  }
}

TEST(NpzFiles, ThatAreDamagedAreErrors) {
  const TextFolder folder;
  const NpzOptions options{.file = Archive(folder), .arrays = {{"x", "a"}}};
  std::string text = *ReadFile(options.file);
  const size_t value = text.find(BytesOf<float>({7, 8}));
  ASSERT_NE(value, std::string::npos);
  text[value] ^= 1;
  folder.Write("t.npz", text);
  EXPECT_THAT(std::string(Message(OpenNpz(options, kOnDisk).status())),
              HasSubstr("t.npz: member a.npy has a wrong checksum"));
  EXPECT_EQ(Message(OpenNpz(options, kOnDisk).status()), Message(OpenNpz(options).status()));
  EXPECT_THAT(
      std::string(Message(OpenNpz({.file = options.file, .arrays = {{"x", "d"}}}).status())),
      HasSubstr("t.npz has no array \"d\""));
}

}  // namespace
}  // namespace tfjob::data
