#include "runtime/io/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "runtime/base/file.h"
#include "runtime/tensor/half.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::io {
namespace {

using std::string_literals::operator""s;

std::string Path(const std::string& name) {
  return StrCat(testing::TempDir(), "/", name);
}

std::string FileOf(std::string header, const std::string& values) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + values;
}

StatusOr<std::unique_ptr<SafetensorsReader>> Open(const std::string& bytes) {
  const std::string path = Path("some.safetensors");
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  return SafetensorsReader::Open(path);
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const NamedTensors tensors = {{"dense/kernel", Tensor::Of<float>({2, 3}, {1, -2, 3, 4, 5, NAN})},
                                {"dense/bias", Tensor::Of<double>({1}, {0.1})},
                                {"step", Tensor::Scalar<int64_t>(1LL << 40)},
                                {"counts", Tensor::Of<int32_t>({2}, {-1, 7})},
                                {"pixels", Tensor::Of<uint8_t>({3}, {0, 128, 255})},
                                {"flags", Tensor::Of<bool>({2}, {true, false})},
                                {"none \"é\"", Tensor(DType::kFloat32, Shape({0, 4}))}};
  const std::string path = Path("all.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, tensors, {{"format", "pt"}}).ok());
  const auto reader = SafetensorsReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->metadata().at("format"), "pt");
  EXPECT_EQ((*reader)->entries().size(), tensors.size());
  for (const auto& [name, expected] : tensors) {
    const StatusOr<Tensor> got = (*reader)->Read(name);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->dtype(), expected.dtype()) << name;
    EXPECT_EQ(got->shape(), expected.shape()) << name;
    EXPECT_TRUE(std::ranges::equal(got->bytes(), expected.bytes())) << name;
  }
}

TEST(Safetensors, SixteenBitFloatsAreWidenedExactly) {
  const std::string values =
      "\x00\x3c\x00\xc0\x01\x00\xff\x7b\x00\x7c\x00\x80"s  // F16
      "\x80\x3f\x00\xc0\x80\x7f"s;                         // BF16
  const auto reader = Open(FileOf(R"({"half":{"dtype":"F16","shape":[6],"data_offsets":[0,12]},
      "brain":{"dtype":"BF16","shape":[3],"data_offsets":[12,18]}})",
                                  values));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const StatusOr<Tensor> half = (*reader)->Read("half"), brain = (*reader)->Read("brain");
  ASSERT_TRUE(half.ok() && brain.ok());
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> expected = {1, -2, 0x1p-24F, 65504, infinity, 0};
  EXPECT_TRUE(std::ranges::equal(half->data<float>(), expected));
  EXPECT_TRUE(std::signbit(half->data<float>()[5]));
  EXPECT_TRUE(std::ranges::equal(brain->data<float>(), std::vector<float>{1, -2, infinity}));
}

TEST(Safetensors, PiecesAreThoseOfTheTensor) {
  const std::string values = "\x00\x3c\x00\xc0\x80\x3f\x00\xc0\x80\x7f\x05\x00\x01"s;
  const auto reader = Open(FileOf(R"({"half":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},
      "brain":{"dtype":"BF16","shape":[3],"data_offsets":[4,10]},
      "flags":{"dtype":"BOOL","shape":[3],"data_offsets":[10,13]}})",
                                  values));
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const auto& [name, entry] : (*reader)->entries()) {
    const StatusOr<Tensor> whole = (*reader)->Read(name);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const size_t item = SizeOf(*entry.dtype);
    for (size_t begin = 0; begin <= whole->num_bytes(); begin += item) {
      std::vector<std::byte> piece(whole->num_bytes() - begin);
      ASSERT_EQ((*reader)->ReadPiece(name, static_cast<int64_t>(begin), piece), OkStatus());
      EXPECT_TRUE(std::ranges::equal(piece, whole->bytes().subspan(begin))) << name << begin;
      piece.resize(piece.size() + item);
      const Status beyond = (*reader)->ReadPiece(name, static_cast<int64_t>(begin), piece);
      EXPECT_TRUE(absl::IsInvalidArgument(beyond)) << beyond;
    }
  }
}

TEST(Safetensors, HalfTypesAreWrittenAsTheyAre) {
  const NamedTensors tensors = {{"brain", Tensor::Of<BFloat16>({2}, {BFloat16(1), BFloat16(-2)})},
                                {"half", Tensor::Of<Float16>({1}, {Float16(0.5)})}};
  ASSERT_TRUE(WriteSafetensors(Path("halves.safetensors"), tensors).ok());
  const auto reader = SafetensorsReader::Open(Path("halves.safetensors"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->entries().at("brain").stored, "BF16");
  EXPECT_EQ((*reader)->entries().at("half").stored, "F16");
  EXPECT_TRUE(
      std::ranges::equal((*(*reader)->Read("brain")).data<float>(), std::vector<float>{1, -2}));
  EXPECT_EQ((*(*reader)->Read("half")).data<float>()[0], 0.5F);
}

TEST(Safetensors, DamagedFilesAreRefused) {
  const std::string bytes(8, 'x');
  const auto entry = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return StrCat(R"({"a":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)",
                  offsets, "}}");
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "is truncated or damaged"},
      {"\xff\xff\xff\xff\xff\xff\xff\x7f{}"s, "not a safetensors file, or cut off"},
      {FileOf("{}", "x"), "the tensors end at offset 10, but the file has 11 bytes"},
      {FileOf("{", ""), "not valid JSON"},
      {FileOf("[]", ""), "expected an object"},
      {FileOf(entry("F32", "[2]", "[0,9]"), bytes), "the file has only 8 bytes"},
      {FileOf(entry("F32", "[2]", "[8,0]"), bytes), "are at offsets 8 to 0"},
      {FileOf(entry("F32", "[2]", "[-8,0]"), bytes), "are at offsets -8 to 0"},
      {FileOf(entry("F32", "[3]", "[0,8]"), bytes), "F32[3] does not fit the 8 bytes"},
      {FileOf(entry("F32", "[-2]", "[0,8]"), bytes), "does not fit"},
      {FileOf(entry("F32", "[4611686018427387904,4]", "[0,8]"), bytes), "does not fit"},
      {FileOf(entry("F32", "[4611686018427387906]", "[0,8]"), bytes), "does not fit"},
      {FileOf(entry("F32", "2", "[0,8]"), bytes), "a.shape: expected a list"},
      {FileOf(entry("F33", "[2]", "[0,8]"), bytes), "a type such as F32"},
      {FileOf(entry("F32", "[1]", "[4,8]"), bytes), "overlap or leave a gap"},
      {FileOf(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
                  "b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
              bytes),
       "overlap or leave a gap"},
      {FileOf(R"({"__metadata__":{"a":1}})", ""), "__metadata__.a: expected a string"},
      {FileOf(R"({"a":1,"a":2})", ""), "duplicate key"},
  };
  for (const auto& [file, expected] : cases) {
    SCOPED_TRACE(expected);
    const Status status = Open(file).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(Message(status).find(expected), std::string_view::npos) << status;
    EXPECT_NE(Message(status).find("some.safetensors"), std::string_view::npos) << status;
  }
}

TEST(Safetensors, UnknownNamesAndTypesAreErrors) {
  const auto reader = Open(FileOf(
      R"({"dense/kernel":{"dtype":"I8","shape":[8],"data_offsets":[0,8]}})", std::string(8, 'x')));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(absl::IsUnimplemented((*reader)->Read("dense/kernel").status()));
  const Status missing = (*reader)->Read("dense/kernal").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_NE(Message(missing).find("did you mean \"dense/kernel\""), std::string_view::npos);
}

TEST(Safetensors, AFullDiskLeavesTheOldFile) {
  const std::string folder = Path("full_disk");
  ASSERT_TRUE(MakeDirectories(folder).ok());
  const std::string path = folder + "/x.safetensors";
  const NamedTensors old = {{"a", Tensor::Scalar<float>(1)}},
                     next = {{"a", Tensor::Scalar<float>(2)}};
  ASSERT_TRUE(WriteSafetensors(path, old).ok());
  faults::FaultyFiles files;
  files.Fill(true);
  EXPECT_FALSE(WriteSafetensors(path, next, {}, files).ok());
  EXPECT_EQ((*(*SafetensorsReader::Open(path))->Read("a")).data<float>()[0], 1);
  EXPECT_EQ(ListDirectory(folder)->size(), 1u);
  EXPECT_FALSE(WriteSafetensors(path, {old[0], next[0]}).ok());
}

TEST(Safetensors, TheFormatIsRecognised) {
  EXPECT_TRUE(LooksLikeSafetensors(FileOf("{}", "")));
  EXPECT_FALSE(LooksLikeSafetensors("PK\3\4 and more"));
  EXPECT_FALSE(LooksLikeSafetensors("\x89HDF\r\n\x1a\n and more"));
}

}  // namespace
}  // namespace tfjob::io
