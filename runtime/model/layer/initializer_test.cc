#include "runtime/model/layer/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/model/layer/initial_pieces.h"

namespace tfjob::model {
namespace {

Initializer Read(const std::string& json) {
  const Json document = *ParseJson(json, "test");
  StatusOr<Initializer> initializer = ReadInitializer(JsonField(document, "k"));
  EXPECT_TRUE(initializer.ok()) << initializer.status();
  return *initializer;
}

std::string Error(const std::string& json) {
  const Json document = *ParseJson(json, "test");
  return std::string(Message(ReadInitializer(JsonField(document, "k")).status()));
}

struct Moments {
  double mean = 0, deviation = 0, low = 1e9, high = -1e9;
};
Moments Measure(const std::string& json, const Shape& shape) {
  const Tensor value = InitialValue(Read(json), DType::kFloat64, shape, 7, "v");
  Moments m;
  for (double x : value.data<double>()) {
    m.mean += x;
    m.deviation += x * x;
    m.low = std::min(m.low, x);
    m.high = std::max(m.high, x);
  }
  m.mean /= static_cast<double>(value.num_elements());
  m.deviation =
      std::sqrt(m.deviation / static_cast<double>(value.num_elements()) - m.mean * m.mean);
  return m;
}

TEST(Initializer, ConstantsAreConstant) {
  const Shape shape({2, 3});
  for (const auto& [json, expected] : {std::pair("\"zeros\"", 0.0),
                                       {"\"Ones\"", 1.0},
                                       {"{\"Constant\": {\"value\": 2.5}}", 2.5}}) {
    const Tensor value = InitialValue(Read(json), DType::kFloat32, shape, 1, "v");
    for (float x : value.data<float>()) EXPECT_EQ(x, expected);
  }
}

// See keras.io/api/layers/initializers for the definitions. The shape 300 × 500 has a fan in of
// 300, a fan out of 500, and a mean fan of 400.
TEST(Initializer, DistributionsHaveKerasBoundsAndDeviations) {
  const Shape shape({300, 500});
  const struct {
    const char* json;
    double mean, deviation, bound;  // bound: 0 if there is none
  } kCases[] = {
      {"\"random_uniform\"", 0, 0.1 / std::sqrt(12.0), 0.05},
      {R"({"RandomNormal": {"mean": 1, "stddev": 2}})", 1, 2, 0},
      // Truncated at two standard deviations; the deviation is not corrected.
      {R"({"TruncatedNormal": {"stddev": 0.1}})", 0, 0.1 * 0.8796256610342398, 0.2},
      {"\"glorot_uniform\"", 0, std::sqrt(1 / 400.0), std::sqrt(3 / 400.0)},
      {"\"glorot_normal\"", 0, std::sqrt(1 / 400.0), 2 * std::sqrt(1 / 400.0) / 0.8796256610342398},
      {"\"he_uniform\"", 0, std::sqrt(2 / 300.0), std::sqrt(6 / 300.0)},
      {"\"he_normal\"", 0, std::sqrt(2 / 300.0), 2 * std::sqrt(2 / 300.0) / 0.8796256610342398},
      {"\"lecun_normal\"", 0, std::sqrt(1 / 300.0), 2 * std::sqrt(1 / 300.0) / 0.8796256610342398},
      {R"({"VarianceScaling": {"scale": 3, "mode": "fan_out", "distribution": "untruncated_normal"}})",
       0, std::sqrt(3 / 500.0), 0},
  };
  for (const auto& c : kCases) {
    const Moments m = Measure(c.json, shape);
    EXPECT_NEAR(m.mean, c.mean, 0.01 * c.deviation + 1e-9) << c.json;
    EXPECT_NEAR(m.deviation, c.deviation, 0.01 * c.deviation) << c.json;
    if (c.bound == 0) continue;
    EXPECT_LE(m.high, c.bound) << c.json;
    EXPECT_GE(m.low, -c.bound) << c.json;
    EXPECT_GT(m.high, 0.98 * c.bound) << c.json;
  }
}

// Keras treats the last axis as columns, and all other axes combined as rows.
TEST(Initializer, OrthogonalGivesOrthonormalRowsOrColumns) {
  for (const Shape& shape :
       {Shape({7, 7}), Shape({40, 9}), Shape({9, 40}), Shape({3, 4, 5}), Shape({1, 1})}) {
    const Tensor value =
        InitialValue(Read(R"({"Orthogonal": {"gain": 1.5}})"), DType::kFloat64, shape, 7, "v");
    const int64_t columns = shape.dim(-1), rows = shape.num_elements() / columns;
    const int64_t few = std::min(rows, columns);
    const auto at = [&](int64_t vector, int64_t i) {
      const int64_t index = rows < columns ? vector * columns + i : i * columns + vector;
      return value.data<double>()[static_cast<size_t>(index)];
    };
    for (int64_t a = 0; a < few; ++a) {
      for (int64_t b = 0; b < few; ++b) {
        double dot = 0;
        for (int64_t i = 0; i < std::max(rows, columns); ++i) dot += at(a, i) * at(b, i);
        EXPECT_NEAR(dot, a == b ? 2.25 : 0, 1e-12) << shape.ToString();
      }
    }
  }
}

TEST(Initializer, IdentityIsTheScaledUnitMatrix) {
  const Tensor value =
      InitialValue(Read(R"({"Identity": {"gain": 2}})"), DType::kFloat32, {2, 3}, 7, "v");
  EXPECT_EQ(std::vector<float>(value.data<float>().begin(), value.data<float>().end()),
            (std::vector<float>{2, 0, 0, 0, 2, 0}));
}

// Reads the pieces in several orders, and with sizes that are not divisors of the value's size.
TEST(Initializer, PiecesMakeTheWholeValue) {
  const Shape shape({211, 700});
  for (const char* json : {"\"zeros\"", R"({"Constant": {"value": 2.5}})", "\"random_uniform\"",
                           "\"random_normal\"", R"({"TruncatedNormal": {"seed": 3}})",
                           "\"glorot_uniform\"", "\"he_normal\"", R"({"Identity": {"gain": 2}})"}) {
    Initializer initializer = Read(json);
    initializer.ones = {699, 705};
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      if (dtype == DType::kFloat64 && initializer.kind != Initializer::Kind::kRandomUniform)
        continue;
      const Tensor whole = InitialValue(initializer, dtype, shape, 7, "v");
      const size_t size = SizeOf(dtype), total = whole.num_bytes();
      for (const bool backward : {false, true}) {
        const InitialPieces pieces(initializer, dtype, shape, 7, "v");
        std::vector<std::byte> made(total);
        const size_t most = size * (backward ? 30'011 : size_t{1} << 15);
        std::vector<size_t> offsets;
        for (size_t offset = 0; offset < total; offset += most) offsets.push_back(offset);
        if (backward) std::ranges::reverse(offsets);
        for (const size_t offset : offsets) {
          pieces.Read(static_cast<int64_t>(offset),
                      std::span(made).subspan(offset, std::min(most, total - offset)));
        }
        EXPECT_TRUE(std::ranges::equal(made, whole.bytes())) << json << " " << Name(dtype);
      }
    }
  }
  EXPECT_FALSE(InitialPieces::CanMake(Read("\"orthogonal\"")));
}

TEST(Initializer, MatricesNeedTheirAxes) {
  EXPECT_TRUE(CheckShape(Read("\"orthogonal\""), {2, 3, 4}).ok());
  EXPECT_EQ(Message(CheckShape(Read("\"orthogonal\""), {3})),
            "initializer Orthogonal expects a shape of two axes or more, got [3]");
  EXPECT_EQ(Message(CheckShape(Read("\"identity\""), {2, 3, 4})),
            "initializer Identity expects a shape of two axes, got [2,3,4]");
}

TEST(Initializer, FansOfConvolutionsCountTheReceptiveField) {
  const Moments m = Measure("\"he_uniform\"", {3, 3, 16, 64});
  EXPECT_LE(m.high, std::sqrt(6 / 144.0));
  EXPECT_GT(m.high, 0.98 * std::sqrt(6 / 144.0));
}

TEST(Initializer, ValuesFollowSeedAndNameOnly) {
  const Initializer glorot = Initializer::GlorotUniform();
  const auto first = [&](const Initializer& initializer, uint64_t seed, const char* name) {
    return InitialValue(initializer, DType::kFloat32, {4, 4}, seed, name).data<float>()[0];
  };
  EXPECT_EQ(first(glorot, 1, "a"), first(glorot, 1, "a"));
  EXPECT_NE(first(glorot, 1, "a"), first(glorot, 2, "a"));
  EXPECT_NE(first(glorot, 1, "a"), first(glorot, 1, "b"));
  Initializer seeded = glorot;
  seeded.seed = 3;
  EXPECT_NE(first(seeded, 1, "a"), first(glorot, 1, "a"));
}

TEST(Initializer, ReadsBackWhatItWrites) {
  for (const char* json :
       {"\"zeros\"", "\"ones\"", "\"glorot_normal\"", "\"he_uniform\"",
        R"({"Constant": {"value": 3}})",
        R"({"class_name": "TruncatedNormal", "config": {"mean": 0.5, "stddev": 0.1, "seed": 4}})",
        R"({"RandomUniform": {"minval": -1, "maxval": 1}})",
        R"({"VarianceScaling": {"scale": 7, "mode": "fan_out"}})",
        R"({"OrthogonalInitializer": {"gain": 3, "seed": 4}})", R"({"Identity": {"gain": 3}})"}) {
    const Initializer initializer = Read(json);
    EXPECT_EQ(Read(PrintJson(WriteInitializer(initializer))), initializer) << json;
  }
  EXPECT_EQ(WriteInitializer(Initializer::GlorotUniform())["class_name"], "GlorotUniform");
}

TEST(Initializer, ErrorsNameTheClassOrArgument) {
  EXPECT_EQ(Error("\"glorot_unifrom\""),
            "k: initializer glorot_unifrom is not supported; did you mean \"glorot_uniform\"?");
  EXPECT_EQ(Error(R"({"Sinusoidal": {}})").substr(0, 58),
            "k: initializer Sinusoidal is not supported; known: zeros, ");
  EXPECT_EQ(Error(R"({"TruncatedNormal": {"sttdev": 1}})"),
            "initializer TruncatedNormal: k.TruncatedNormal.sttdev: unknown argument; did you mean "
            "\"stddev\"?");
  EXPECT_EQ(Error(R"({"Constant": {"value": "x"}})"),
            "initializer Constant: k.Constant.value: expected a number, got \"x\"");
  EXPECT_EQ(Error(R"({"VarianceScaling": {"mode": "fan"}})"),
            "initializer VarianceScaling: k.VarianceScaling.mode: expected one of fan_in, fan_out, "
            "fan_avg, got \"fan\"");
  EXPECT_EQ(Error("3"),
            "k: expected an initializer: a class, or {Class: {argument: value}}, got 3");
}

}  // namespace
}  // namespace tfjob::model
