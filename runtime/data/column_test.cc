#include "runtime/data/column.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/data/dataset.h"
#include "runtime/io/npz.h"

namespace tfjob::data {
namespace {

Dataset Of(Tensor values) {
  return {.arrays = {{"x", "x.npy", std::move(values)}}};
}

Column To(DType dtype, Shape shape = {}) {
  return {.name = "features", .array = "x", .dtype = dtype, .shape = std::move(shape)};
}

std::string Error(Tensor values, const Column& column) {
  const StatusOr<Tensor> converted = ConvertColumn(Of(std::move(values)), column);
  return converted.ok() ? "accepted" : std::string(Message(converted.status()));
}

TEST(Column, IntegersAreConvertedExactly) {
  const int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_EQ(ConvertColumn(Of(Tensor::Of<int64_t>({2}, {large, -1})), To(DType::kInt64))
                ->data<int64_t>()[0],
            large);
  EXPECT_EQ(
      ConvertColumn(Of(Tensor::Of<double>({1}, {16777217})), To(DType::kInt32))->data<int32_t>()[0],
      16777217);
  EXPECT_EQ(
      ConvertColumn(Of(Tensor::Of<uint8_t>({1}, {255})), To(DType::kInt64))->data<int64_t>()[0],
      255);
  EXPECT_EQ(
      ConvertColumn(Of(Tensor::Of<int64_t>({1}, {-3})), To(DType::kFloat32))->data<float>()[0], -3);
  EXPECT_TRUE(ConvertColumn(Of(Tensor::Of<float>({1}, {1})), To(DType::kBool))->data<bool>()[0]);
}

TEST(Column, ValuesThatDoNotFitAreNamed) {
  EXPECT_EQ(Error(Tensor::Of<float>({2, 2}, {1, 2, 3, 0.5}), To(DType::kInt32, {2})),
            "x.npy: row 1: expected an integer that fits into int32 for features, got 0.5");
  EXPECT_EQ(Error(Tensor::Of<int64_t>({1}, {int64_t{1} << 31}), To(DType::kInt32)),
            "x.npy: row 0: expected an integer that fits into int32 for features, got 2147483648");
  EXPECT_EQ(Error(Tensor::Of<int32_t>({1}, {-1}), To(DType::kUInt8)),
            "x.npy: row 0: expected an integer that fits into uint8 for features, got -1");
  EXPECT_EQ(Error(Tensor::Of<uint8_t>({1}, {2}), To(DType::kBool)),
            "x.npy: row 0: expected 0 or 1 for features, got 2");
  EXPECT_EQ(Error(Tensor::Of<double>({1}, {1e300}), To(DType::kInt64)),
            "x.npy: row 0: expected an integer that fits into int64 for features, got 1e+300");
}

TEST(Column, RowsOfClassesNeedAClass) {
  Column column = To(DType::kFloat32);
  column.one_hot = true;
  EXPECT_EQ(Error(Tensor::Of<float>({2}, {1, 0}), column),
            "x.npy: features: rows with a one for each class need at least one class");
}

TEST(Column, NumbersThatAreNotFiniteAreRefused) {
  const float nan = std::nanf("");
  EXPECT_EQ(Error(Tensor::Of<float>({3}, {1, 2, nan}), To(DType::kFloat32)),
            "x.npy: row 2: expected a finite number for features, got nan");
  EXPECT_EQ(Error(Tensor::Of<double>({1}, {std::numeric_limits<double>::infinity()}),
                  To(DType::kFloat64)),
            "x.npy: row 0: expected a finite number for features, got inf");
  EXPECT_EQ(Error(Tensor::Of<double>({1}, {1e300}), To(DType::kFloat32)),
            "x.npy: row 0: expected a finite number that fits into float32 for features, got "
            "1e+300");
  EXPECT_EQ(Error(Tensor::Of<float>({1}, {nan}), To(DType::kInt32)),
            "x.npy: row 0: expected an integer that fits into int32 for features, got nan");
  EXPECT_EQ(Error(Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), To(DType::kFloat32, {2})),
            "x.npy: expected examples of 2 elements, for features of shape [2], got examples of "
            "shape [3]");
}

TEST(Column, ClassWeightsComeFromClassNumbersAndFromRows) {
  Column column = To(DType::kFloat32);
  column.class_weights = {{0, 0.5}, {2, 3}};
  const StatusOr<Tensor> numbers = ConvertColumn(Of(Tensor::Of<int32_t>({3}, {2, 1, 0})), column);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->data<float>()[0], 3);
  EXPECT_EQ(numbers->data<float>()[1], 1);
  EXPECT_EQ(numbers->data<float>()[2], 0.5f);
  const StatusOr<Tensor> rows =
      ConvertColumn(Of(Tensor::Of<float>({2, 3}, {0, 0, 1, 1, 0, 0})), column);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->shape(), Shape({2}));
  EXPECT_EQ(rows->data<float>()[0], 3);
  EXPECT_EQ(rows->data<float>()[1], 0.5f);
  column.shape = {2};  // one class per step
  const StatusOr<Tensor> steps =
      ConvertColumn(Of(Tensor::Of<uint8_t>({2, 2}, {0, 1, 2, 0})), column);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(steps->shape(), Shape({2, 2}));
  EXPECT_EQ(steps->data<float>()[2], 3);
}

TEST(Npz, ArraysComeFromAnArchiveAndFromFiles) {
  const std::string archive = testing::TempDir() + "/column.npz";
  const std::string file = testing::TempDir() + "/column.npy";
  const std::vector<std::pair<std::string, Tensor>> arrays = {
      {"x", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})}, {"n", Tensor::Of<float>({}, {1})}};
  ASSERT_EQ(io::WriteNpz(archive, arrays), OkStatus());
  ASSERT_EQ(io::WriteNpy(file, Tensor::Of<int32_t>({2}, {5, 6})), OkStatus());
  const auto load = [&](const std::string& a, const std::string& b) {
    return LoadNpz({.file = archive, .arrays = {{"features", a}, {"labels", b}}});
  };
  const StatusOr<Dataset> dataset = load("x", file);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->Find("features")->example_shape(), Shape({2}));
  EXPECT_EQ(dataset->Find("labels")->values.data<int32_t>()[1], 6);
  EXPECT_EQ(dataset->Find("labels")->file, file);
  EXPECT_EQ(load("x", "y").status().code(), StatusCode::kNotFound);
  const auto inputs = LoadNpz({.file = archive,
                               .arrays = {{"features", "x"},
                                          {"labels", "y", /*optional=*/true},
                                          {"weights", file + ".none.npy", /*optional=*/true}}});
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ(inputs->arrays.size(), 1u);
  EXPECT_NE(Message(load("x", "n").status()).find("got a single number"), std::string_view::npos);
  ASSERT_EQ(io::WriteNpy(file, Tensor::Of<int32_t>({3}, {5, 6, 7})), OkStatus());
  EXPECT_EQ(Message(load("x", file).status()),
            StrCat(archive, ": array x has 2 examples, but ", file, " has 3; expected as many"));
}

TEST(Synthetic, DrawsTheSameNumbersForASeed) {
  SyntheticOptions options{.arrays = {{"x", DType::kFloat32, {3}, -1, 2},
                                      {"ids", DType::kInt32, {2}, 5, 7},
                                      {"flags", DType::kBool, {}, 0, 1}},
                           .examples = 50,
                           .seed = 1};
  const StatusOr<Dataset> dataset = MakeSynthetic(options);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const Tensor& ids = dataset->Find("ids")->values;
  EXPECT_EQ(ids.shape(), Shape({50, 2}));
  const auto [least, most] = std::ranges::minmax(ids.data<int32_t>());
  EXPECT_EQ(least, 5);
  EXPECT_EQ(most, 7);
  for (float x : dataset->Find("x")->values.data<float>()) EXPECT_TRUE(x >= -1 && x < 2) << x;
  options.arrays.erase(options.arrays.begin());
  EXPECT_EQ(MakeSynthetic(options)->Find("ids")->values.data<int32_t>()[9], ids.data<int32_t>()[9])
      << "an array does not depend on the others";
  options.arrays = {{"ids", DType::kUInt8, {2}, 0, 256}};
  EXPECT_EQ(Message(MakeSynthetic(options).status()),
            "synthetic data: expected a range of uint8 for ids, got [0, 256]");
  options.arrays = {{"x", DType::kFloat32, {1 << 30, 1 << 30, 1 << 30}, 0, 1}};
  EXPECT_EQ(MakeSynthetic(options).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::data
