#include "runtime/io/npy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/base/file.h"
#include "runtime/io/npz.h"
#include "runtime/io/zip_writer.h"
#include "runtime/tensor/half.h"

namespace tfjob::io {
namespace {

using std::string_literals::operator""s;

std::string Path(const std::string& name) {
  return StrCat(testing::TempDir(), "/", name);
}

// Returns the file that NumPy writes for an array: version 1 of the format.
std::string NpyFile(const std::string& descr, const std::string& shape, const std::string& bytes,
                    const std::string& fortran = "False") {
  std::string text =
      StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran, ", 'shape': ", shape, ", }\n");
  std::string file = "\x93NUMPY\1\0"s;
  file += static_cast<char>(text.size());
  file += '\0';
  return file + text + bytes;
}

StatusOr<Tensor> Parse(const std::string& file) {
  size_t at = 0;
  return ReadNpyFrom("array", file.size(), file.size(), [&](std::span<std::byte> bytes) {
    if (bytes.size() > file.size() - at) return DataLoss("the reader reads past the end");
    std::memcpy(bytes.data(), file.data() + at, bytes.size());
    at += bytes.size();
    return OkStatus();
  });
}

template <typename T>
void ExpectArray(const StatusOr<Tensor>& got, const Shape& shape, const std::vector<T>& values) {
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->dtype(), DTypeOf<T>::value);
  EXPECT_EQ(got->shape(), shape);
  const auto data = got->data<T>();
  EXPECT_EQ(std::vector<T>(data.begin(), data.end()), values);
}

std::string ErrorOf(const std::string& file) {
  return std::string(Message(Parse(file).status()));
}

TEST(Npy, EveryTypeBecomesATensorType) {
  ExpectArray<float>(Parse(NpyFile("<f4", "(2,)", "\0\0\x80\x3f\0\0\0\xc0"s)), {2}, {1, -2});
  ExpectArray<float>(Parse(NpyFile(">f4", "(1,)", "\x3f\x80\0\0"s)), {1}, {1});
  ExpectArray<double>(Parse(NpyFile("<f8", "()", "\0\0\0\0\0\0\xf0\x3f"s)), {}, {1});
  ExpectArray<float>(Parse(NpyFile("<f2", "(4,)", "\0\x3c\1\0\xff\xfb\0\x7c"s)), {4},
                     {1, std::ldexp(1.0f, -24), -65504, INFINITY});
  ExpectArray<uint8_t>(Parse(NpyFile("|u1", "(2,)", "\0\xff"s)), {2}, {0, 255});
  ExpectArray<bool>(Parse(NpyFile("|b1", "(2,)", "\0\1"s)), {2}, {false, true});
  ExpectArray<int32_t>(Parse(NpyFile("|i1", "(2,)", "\xff\1"s)), {2}, {-1, 1});
  ExpectArray<int32_t>(Parse(NpyFile("<u2", "(1,)", "\xff\xff"s)), {1}, {65535});
  ExpectArray<int32_t>(Parse(NpyFile("<i4", "(1,)", "\1\0\0\x80"s)), {1}, {INT32_MIN + 1});
  ExpectArray<int64_t>(Parse(NpyFile("<u4", "(1,)", "\xff\xff\xff\xff"s)), {1}, {4294967295});
  ExpectArray<int64_t>(Parse(NpyFile(">i8", "(1,)", "\0\0\0\0\0\0\1\2"s)), {1}, {258});
  ExpectArray<int64_t>(Parse(NpyFile("<u8", "(1,)", "\3\0\0\0\0\0\0\0"s)), {1}, {3});
}

TEST(Npy, FortranOrderBecomesCOrder) {
  ExpectArray<uint8_t>(Parse(NpyFile("|u1", "(2, 3)", "\1\2\3\4\5\6", "True")), {2, 3},
                       {1, 3, 5, 2, 4, 6});
}

TEST(Npy, DamagedFilesAreErrorsBeforeMemoryIsAllocated) {
  EXPECT_NE(ErrorOf(NpyFile("<f4", "(3,)", "12345678")).find("the shape [3]"), std::string::npos);
  EXPECT_NE(ErrorOf(NpyFile("<f4", "(4611686018427387904, 4)", "")).find("does not fit"),
            std::string::npos);
  EXPECT_NE(ErrorOf(NpyFile("<f4", "(-1,)", "")).find("expected the header"), std::string::npos);
  EXPECT_EQ(Parse(NpyFile("<f4", "(9223372036854775807, 0)", "", "True")).status(), OkStatus());
  EXPECT_NE(ErrorOf(NpyFile("|b1", "(1,)", "\2")).find("other than 0 and 1"), std::string::npos);
  EXPECT_NE(ErrorOf(NpyFile("<u8", "(1,)", std::string(8, '\xff'))).find("uint64"),
            std::string::npos);
  EXPECT_NE(ErrorOf("PK\3\4").find("not a NumPy array"), std::string::npos);
  const std::string whole = NpyFile("<f4", "(2,)", "12345678");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Parse(whole.substr(0, size)).ok()) << size;
}

TEST(Npy, OtherTypesAreNamed) {
  EXPECT_EQ(ErrorOf(NpyFile("|O", "(1,)", "x")),
            "array: arrays of type '|O' are not supported; expected numbers: convert the array "
            "with astype");
  EXPECT_EQ(Parse(NpyFile("<c8", "(1,)", "12345678")).status().code(), StatusCode::kUnimplemented);
}

TEST(Npy, WrittenFilesAreRead) {
  const Tensor tensor = Tensor::Of<int64_t>({2, 1}, {1, -5});
  ASSERT_EQ(WriteNpy(Path("a.npy"), tensor), OkStatus());
  ExpectArray<int64_t>(ReadNpy(Path("a.npy")), {2, 1}, {1, -5});
  EXPECT_EQ(NpyHeader(DType::kFloat32, {3})->size() % 64, 0u);
  EXPECT_EQ(ReadNpy(testing::TempDir()).status().code(), StatusCode::kInvalidArgument);
}

TEST(Npy, Float16IsWrittenAndBFloat16IsRefused) {
  const auto half = Tensor::Of<Float16>({2}, {Float16(1.5F), Float16(-0.1F)});
  ASSERT_EQ(WriteNpy(Path("half.npy"), half), OkStatus());
  ExpectArray<float>(ReadNpy(Path("half.npy")), {2}, {1.5F, static_cast<float>(Float16(-0.1F))});
  const Tensor brain(DType::kBFloat16, {2});
  const Status refused = WriteNpy(Path("brain.npy"), brain);
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(refused),
            StrCat(Path("brain.npy"), ": NumPy has no type for bfloat16; convert ",
                   "the array to float32"));
  EXPECT_FALSE(std::filesystem::exists(Path("brain.npy")));
  const std::pair<std::string, Tensor> arrays[] = {{"a", brain}};
  EXPECT_EQ(WriteNpz(Path("brain.npz"), arrays).code(), StatusCode::kUnimplemented);
}

// Returns a ZIP archive with one deflated member, as numpy.savez_compressed writes it.
std::string DeflatedZip(const std::string& name, const std::string& content, uint32_t claimed) {
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
                             number(crc, 4) + number(packed.size(), 4) + number(claimed, 4) +
                             number(name.size(), 2) + number(0, 2);
  const std::string member = "PK\3\4" + common + name + packed;
  const std::string entry =
      "PK\1\2" + number(20, 2) + common + number(0, 2 + 2 + 2 + 4) + number(0, 4) + name;
  return member + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
         number(entry.size(), 4) + number(member.size(), 4) + number(7, 2) + "comment";
}

StatusOr<Tensor> ReadFrom(const std::string& archive, const std::string& array) {
  std::ofstream(Path("x.npz"), std::ios::binary) << archive;
  ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(Path("x.npz")));
  return reader.Read(array);
}

TEST(Npz, CompressedArraysAreRead) {
  std::string zeros(300000, '\0');
  const std::string file = NpyFile("|u1", "(300000,)", zeros);
  const std::string archive = DeflatedZip("x.npy", file, static_cast<uint32_t>(file.size()));
  const StatusOr<Tensor> got = ReadFrom(archive, "x");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->shape(), Shape({300000}));

  // Damage the archive in three ways: a wrong checksum, a wrong size, and a size that is too large
  // for any deflate data of this length.
  std::string damaged = archive;
  damaged[archive.find("PK\1\2") + 16] ^= 1;
  EXPECT_NE(Message(ReadFrom(damaged, "x").status()).find("wrong checksum"), std::string::npos);
  for (const uint32_t claimed : {static_cast<uint32_t>(file.size() - 1),
                                 static_cast<uint32_t>(file.size() + 1), uint32_t{0xfffffff0}}) {
    EXPECT_EQ(ReadFrom(DeflatedZip("x.npy", file, claimed), "x").status().code(),
              StatusCode::kDataLoss)
        << claimed;
  }
  EXPECT_NE(
      Message(ReadFrom(DeflatedZip("x.npy", file, 0xfffffff0), "x").status()).find("impossible"),
      std::string::npos);
}

// If a match in the compressed data crosses the end of a span, zlib still has output after the last
// compressed byte has been read.
TEST(Npz, CompressedArraysOfEveryLengthAreReadInSpansOfAnySize) {
  for (size_t size = 0; size < 600; ++size) {
    const std::string content(size, '\0');
    std::ofstream(Path("spans.npz"), std::ios::binary)
        << DeflatedZip("x", content, static_cast<uint32_t>(size));
    const auto zip = ZipReader::Open(Path("spans.npz"));
    ASSERT_TRUE(zip.ok()) << zip.status();
    const auto stream = (*zip)->Stream("x");
    std::byte byte{1};
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ((*stream)->Read({&byte, 1}), OkStatus()) << i << " of " << size;
      ASSERT_EQ(byte, std::byte{0});
    }
    EXPECT_TRUE(absl::IsDataLoss((*stream)->Read({&byte, 1})));
  }
  constexpr size_t kSpan = 1 << 20;
  for (size_t more = 1; more < 258; more += 32) {
    const std::string shape = StrCat("(", kSpan + more, ",)");
    const std::string file = NpyFile("|u1", shape, std::string(kSpan + more, '\0'));
    const Status status =
        ReadFrom(DeflatedZip("x.npy", file, static_cast<uint32_t>(file.size())), "x").status();
    EXPECT_EQ(status, OkStatus()) << more;
  }
}

TEST(Npz, AnArrayThatWouldExpandTooMuchIsRefused) {
  constexpr size_t kElements = 80'000'000;  // int8: as int32, they would take 320 MB
  const std::string header = NpyFile("|i1", StrCat("(", kElements, ",)"), "");
  std::minstd_rand random;
  std::string noise(100'000, '\0');  // compresses to more than a thousandth of the claimed size
  for (char& byte : noise) byte = static_cast<char>(random() >> 16);
  const auto claimed = static_cast<uint32_t>(header.size() + kElements);
  const Status status = ReadFrom(DeflatedZip("x.npy", header + noise, claimed), "x").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(Message(status).find("x.npz: array x would expand from "), std::string_view::npos)
      << status;
  EXPECT_NE(Message(status).find(" to 320000000 bytes"), std::string_view::npos) << status;
}

TEST(Npz, CutFilesAreErrors) {
  const std::string file = NpyFile("|u1", "(3,)", "abc");
  const std::string archive = DeflatedZip("x.npy", file, static_cast<uint32_t>(file.size()));
  for (size_t size = 0; size < archive.size(); ++size)
    EXPECT_FALSE(ReadFrom(archive.substr(0, size), "x").ok()) << size;
  for (size_t i = 0; i < archive.size(); ++i) {
    std::string damaged = archive;
    damaged[i] = static_cast<char>(~damaged[i]);
    ReadFrom(damaged, "x").IgnoreError();  // must not crash
  }
}

TEST(Npz, WrittenArchivesAreRead) {
  const std::vector<std::pair<std::string, Tensor>> arrays = {{"b", Tensor::Of<float>({2}, {1, 2})},
                                                              {"a", Tensor::Of<uint8_t>({}, {7})}};
  ASSERT_EQ(WriteNpz(Path("w.npz"), arrays), OkStatus());
  const StatusOr<NpzReader> reader = NpzReader::Open(Path("w.npz"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->names(), std::vector<std::string>({"a", "b"}));
  ExpectArray<float>(reader->Read("b"), {2}, {1, 2});
  ExpectArray<uint8_t>(reader->Read("a"), {}, {7});
  EXPECT_EQ(reader->Read("c").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(NpzReader::Open(Path("missing.npz")).ok());
}

TEST(Npz, AnUnfinishedArchiveLeavesNoFile) {
  const std::string folder = Path("unfinished");
  ASSERT_EQ(MakeDirectories(folder), OkStatus());
  {
    const StatusOr<std::unique_ptr<ZipWriter>> zip = ZipWriter::Create(folder + "/x.npz");
    ASSERT_TRUE(zip.ok());
    const std::array<std::string_view, 1> parts = {"content"};
    ASSERT_EQ((*zip)->Add("a", parts), OkStatus());
  }
  EXPECT_EQ(*ListDirectory(folder), std::vector<std::string>());
}

}  // namespace
}  // namespace tfjob::io
