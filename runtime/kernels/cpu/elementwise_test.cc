#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/thread_pool.h"
#include "runtime/kernels/cpu/check.h"
#include "runtime/kernels/cpu/math.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;
using V = const std::vector<double>&;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const std::vector<Shape> kShapes = {Shape(),           Shape({1}),       Shape({37}),
                                    Shape({0, 5}),     Shape({5, 0}),    Shape({7, 19}),
                                    Shape({2, 3, 33}), Shape({300, 257})};

void CheckUnary(const std::string& op, double low, double high, double (*f)(double),
                std::vector<D> dtypes = {D::kFloat32, D::kFloat64}) {
  for (D dtype : dtypes) {
    for (const Shape& shape : kShapes) {
      const Tensor x = Values(dtype, shape, 1, low, high);
      Check({op, {}, {x}, {Elementwise(dtype, {x}, [f](V v) { return f(v[0]); })}});
    }
  }
}

TEST(UnaryTest, MatchesTheDefinitions) {
  CheckUnary("Relu", -3, 3, [](double x) { return x > 0 ? x : 0; });
  CheckUnary("Sigmoid", -20, 20, [](double x) { return 1 / (1 + std::exp(-x)); });
  CheckUnary("Tanh", -6, 6, [](double x) { return std::tanh(x); });
  CheckUnary("Exp", -80, 80, [](double x) { return std::exp(x); });
  CheckUnary("Erf", -5, 5, [](double x) { return std::erf(x); });
  CheckUnary("Sin", -20, 20, [](double x) { return std::sin(x); });
  CheckUnary("Cos", -20, 20, [](double x) { return std::cos(x); });
  CheckUnary("Log", 1e-6, 1000, [](double x) { return std::log(x); });
  CheckUnary("Sqrt", 0, 100, [](double x) { return std::sqrt(x); });
  CheckUnary("Rsqrt", 0.01, 100, [](double x) { return 1 / std::sqrt(x); });
  const std::vector<D> numbers = {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64};
  CheckUnary("Neg", -9, 9, [](double x) { return -x; }, numbers);
  CheckUnary("Abs", -9, 9, [](double x) { return std::abs(x); }, numbers);
  CheckUnary("Square", -9, 9, [](double x) { return x * x; }, numbers);
}

TEST(UnaryTest, LetsNaNAndInfinityThrough) {
  const auto special =
      Tensor::Of<float>({5}, {static_cast<float>(kNaN), INFINITY, -INFINITY, 0, -1});
  auto expect = [&](const char* op, std::initializer_list<double> values) {
    Tensor expected(D::kFloat32, Shape({5}));
    int64_t i = 0;
    for (double value : values) SetValue(expected, i++, value);
    Check({op, {}, {special}, {expected}});
  };
  expect("Relu", {kNaN, kInfinity, 0, 0, 0});
  expect("Exp", {kNaN, kInfinity, 0, 1, std::exp(-1)});
  expect("Erf", {kNaN, 1, -1, 0, std::erf(-1)});
  expect("Log", {kNaN, kInfinity, kNaN, -kInfinity, kNaN});
  expect("Sigmoid", {kNaN, 1, 0, 0.5, 1 / (1 + std::exp(1))});
  expect("Tanh", {kNaN, 1, -1, 0, std::tanh(-1)});
}

// Runs CheckNumerics. Returns the error message, or "" if there is no error.
std::string CheckNumericsError(const Tensor& x, bool in_place) {
  const Operand operand = Operand::Dense(x.dtype(), x.shape());
  auto kernel = CpuKernels().Prepare(
      {"CheckNumerics", {{"message", std::string("x")}}, {operand}, {operand}});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  const Tensor value = x.Clone();
  Tensor other(x.dtype(), x.shape());
  const void* const inputs[] = {value.bytes().data()};
  void* const outputs[] = {in_place ? const_cast<std::byte*>(value.bytes().data())
                                    : other.bytes().data()};
  ThreadPool pool("test", 2);
  Stream stream(&pool);
  (*kernel)->Run(inputs, outputs, nullptr, stream);
  const Status status = stream.TakeStatus();
  EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
  return std::string(Message(status));
}

TEST(CheckNumerics, RefusesNaNAndInfinityAnywhere) {
  Tensor x = Values(DType::kFloat32, {3, 40000}, 1);
  SetValue(x, 7, -std::numeric_limits<float>::max());
  for (const bool in_place : {false, true}) {
    EXPECT_EQ(CheckNumericsError(x, in_place), "");
    for (const int64_t at : {0, 65000, 119999}) {
      for (const double value : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
        Tensor wrong = x.Clone();
        SetValue(wrong, at, value);
        EXPECT_EQ(CheckNumericsError(wrong, in_place), "x contains NaN or infinity");
      }
    }
  }
}

// The relative error must be as small as math.h states, over the whole range of each function.
TEST(UnaryTest, FunctionsAreAccurateRelatively) {
  auto worst = [](float low, float high, float (*f)(float), double (*exact)(double)) {
    double error = 0;
    for (int i = 0; i <= 200000; ++i) {
      const float x = low + (high - low) * static_cast<float>(i) / 200000;
      const double e = exact(x);
      if (std::abs(e) > 1e-37) error = std::max(error, std::abs((f(x) - e) / e));
    }
    return error;
  };
  EXPECT_LT(worst(-87, 88.7f, [](float x) { return Exp(x); }, std::exp), 3e-7);
  EXPECT_LT(worst(1e-30f, 1e-3f, [](float x) { return Log(x); }, std::log), 3e-7);
  EXPECT_LT(worst(1.01f, 1e4f, [](float x) { return Log(x); }, std::log), 3e-7);
  EXPECT_LT(worst(-10, 10, [](float x) { return Tanh(x); }, std::tanh), 3e-7);
  EXPECT_LT(worst(
                -80, 80, [](float x) { return Sigmoid(x); },
                [](double x) { return 1 / (1 + std::exp(-x)); }),
            3e-7);
  EXPECT_LT(worst(-0.99f, 0.99f, [](float x) { return Erf(x); }, std::erf), 3e-7);
  EXPECT_LT(worst(1, 10, [](float x) { return Erf(x); }, std::erf), 4e-7);
  EXPECT_FLOAT_EQ(Exp(-100.0f), std::exp(-100.0f));  // subnormal
  EXPECT_FLOAT_EQ(Log(1e-42f), std::log(1e-42f));
}

TEST(UnaryTest, ClipsToBothLimits) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    const Tensor x = Values(dtype, Shape({5, 41}), 2);
    Check({"ClipByValue",
           {{"clip_value_min", -1.0}, {"clip_value_max", 0.5}},
           {x},
           {Elementwise(dtype, {x}, [](V v) { return std::min(std::max(v[0], -1.0), 0.5); })}});
  }
  const Operand x = Operand::Dense(D::kFloat32, Shape({2}));
  EXPECT_FALSE(
      PrepareError("ClipByValue", {{"clip_value_min", 1.0}, {"clip_value_max", 0.0}}, {x}, {x})
          .ok());
}

TEST(UnaryTest, GradientsUseTheOutput) {
  for (D dtype : {D::kFloat32, D::kFloat64}) {
    for (const Shape& shape : kShapes) {
      const Tensor dy = Values(dtype, shape, 1), y = Values(dtype, shape, 2, -1, 1);
      auto expected = [&](auto f) { return Elementwise(dtype, {y, dy}, f); };
      Check({"ReluGrad", {}, {dy, y}, {expected([](V v) { return v[0] > 0 ? v[1] : 0; })}});
      Check({"SigmoidGrad", {}, {y, dy}, {expected([](V v) { return v[1] * v[0] * (1 - v[0]); })}});
      Check({"TanhGrad", {}, {y, dy}, {expected([](V v) { return v[1] * (1 - v[0] * v[0]); })}});
    }
  }
}

// Broadcasts `tensor` to `shape`, and returns the element at dense index `index`.
double BroadcastAt(const Tensor& tensor, const Shape& shape, int64_t index) {
  int64_t at = 0, stride = 1;
  for (int d = shape.rank() - 1, own = tensor.shape().rank() - 1; own >= 0; --d, --own) {
    const int64_t i = index % shape.dim(d);
    index /= shape.dim(d);
    at += tensor.shape().dim(own) == 1 ? 0 : i * stride;
    stride *= tensor.shape().dim(own);
  }
  return ValueAt(tensor, at);
}

struct Broadcast {
  Shape a, b, out;
};
const std::vector<Broadcast> kBroadcasts = {
    {Shape({7, 19}), Shape({7, 19}), Shape({7, 19})},
    {Shape({7, 19}), Shape({19}), Shape({7, 19})},
    {Shape({19}), Shape({7, 19}), Shape({7, 19})},
    {Shape({7, 1}), Shape({1, 19}), Shape({7, 19})},
    {Shape({7, 19}), Shape(), Shape({7, 19})},
    {Shape({1}), Shape({7, 19}), Shape({7, 19})},
    {Shape({2, 1, 4, 1}), Shape({3, 1, 5}), Shape({2, 3, 4, 5})},
    {Shape({2, 3, 1}), Shape({2, 3, 1}), Shape({2, 3, 1})},
    {Shape(), Shape(), Shape()},
    {Shape({0, 3}), Shape({3}), Shape({0, 3})},
    {Shape({300, 257}), Shape({300, 1}), Shape({300, 257})}};

void CheckBroadcast(const std::string& op, D dtype, D out, double (*f)(double, double),
                    double low = -4, double high = 4) {
  for (const Broadcast& shapes : kBroadcasts) {
    const Tensor a = Values(dtype, shapes.a, 1, low, high),
                 b = Values(dtype, shapes.b, 2, low, high);
    Tensor expected(out, shapes.out);
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      SetValue(expected, i, f(BroadcastAt(a, shapes.out, i), BroadcastAt(b, shapes.out, i)));
    }
    Check({op, {}, {a, b}, {expected}, 2e-6});
  }
}

TEST(BroadcastTest, ArithmeticOfFloatsAndIntegers) {
  for (D dtype : {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64}) {
    CheckBroadcast("Add", dtype, dtype, [](double a, double b) { return a + b; });
    CheckBroadcast("Sub", dtype, dtype, [](double a, double b) { return a - b; });
    CheckBroadcast("Mul", dtype, dtype, [](double a, double b) { return a * b; });
    CheckBroadcast("Maximum", dtype, dtype, [](double a, double b) { return std::max(a, b); });
    CheckBroadcast("Minimum", dtype, dtype, [](double a, double b) { return std::min(a, b); });
    CheckBroadcast("Div", dtype, dtype, [](double a, double b) { return a / b; }, 1, 9);
  }
  CheckBroadcast(
      "Pow", D::kFloat64, D::kFloat64, [](double a, double b) { return std::pow(a, b); }, 0.5, 3);
}

TEST(BroadcastTest, IntegerDivisionNeverTraps) {
  const int32_t least = std::numeric_limits<int32_t>::min();
  Check({"Div",
         {},
         {Tensor::Of<int32_t>({4}, {7, -7, least, 5}), Tensor::Of<int32_t>({4}, {2, 2, -1, 0})},
         {Tensor::Of<int32_t>({4}, {3, -3, least, 0})}});
}

TEST(BroadcastTest, ComparisonsGiveBool) {
  for (D dtype : {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64, D::kUInt8}) {
    CheckBroadcast(
        "Equal", dtype, D::kBool, [](double a, double b) { return a == b ? 1.0 : 0.0; }, 0, 4);
    CheckBroadcast(
        "Less", dtype, D::kBool, [](double a, double b) { return a < b ? 1.0 : 0.0; }, 0, 4);
    CheckBroadcast(
        "Greater", dtype, D::kBool, [](double a, double b) { return a > b ? 1.0 : 0.0; }, 0, 4);
    CheckBroadcast(
        "GreaterEqual", dtype, D::kBool, [](double a, double b) { return a >= b ? 1.0 : 0.0; }, 0,
        4);
  }
}

TEST(BroadcastTest, SelectsByCondition) {
  Check({"Select",
         {},
         {Tensor::Of<bool>({2, 1}, {true, false}), Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
          Tensor::Scalar(-1.0f)},
         {Tensor::Of<float>({2, 3}, {1, 2, 3, -1, -1, -1})}});
  Check({"Select",
         {},
         {Tensor::Of<bool>({2, 1}, {true, false}), Tensor::Of<uint8_t>({3}, {1, 2, 3}),
          Tensor::Of<uint8_t>({2, 3}, {4, 5, 6, 7, 8, 9})},
         {Tensor::Of<uint8_t>({2, 3}, {1, 2, 3, 7, 8, 9})}});
}

TEST(BroadcastTest, BroadcastsToAShape) {
  Check({"BroadcastTo",
         {},
         {Tensor::Of<int64_t>({2, 1}, {7, 9})},
         {Tensor::Of<int64_t>({2, 2, 3}, {7, 7, 7, 9, 9, 9, 7, 7, 7, 9, 9, 9})}});
}

TEST(BroadcastTest, RefusesShapesThatDoNotFit) {
  const Operand a = Operand::Dense(D::kFloat32, Shape({7, 19}));
  const Operand b = Operand::Dense(D::kFloat32, Shape({18}));
  const Status status = PrepareError("Add", {}, {a, b}, {a});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(Message(status).find("float32[18] does not broadcast to [7,19]"), std::string::npos)
      << status.ToString();
}

TEST(TableTest, NamesOpDtypeAndDeviceOfWhatIsMissing) {
  const Operand x = Operand::Dense(D::kInt32, Shape({2}));
  const Status no_op = PrepareError("Conv9D", {}, {x}, {x});
  EXPECT_EQ(no_op.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(no_op),
            "device CPU has no kernel for op Conv9D in Conv9D(int32[2]) -> int32[2]");
  const Status no_dtype = PrepareError("Exp", {}, {x}, {x});
  EXPECT_EQ(no_dtype.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(no_dtype), "device CPU: Exp(int32[2]) -> int32[2]: no kernel for dtype int32");
}

TEST(TableTest, RefusesRowsThatOverlap) {
  const Operand x{D::kFloat32, Shape({2, 8}), 7};
  EXPECT_EQ(PrepareError("Relu", {}, {x}, {x}).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::kernels::cpu
