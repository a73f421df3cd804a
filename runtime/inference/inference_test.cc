#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runtime/base/file.h"
#include "runtime/base/stop.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/inference/arrays.h"
#include "runtime/inference/flops.h"
#include "runtime/inference/predictor.h"
#include "runtime/model/build.h"
#include "runtime/model/keras.h"
#include "runtime/tensor/window.h"

namespace tfjob::inference {
namespace {

std::string Path(const std::string& name) {
  return StrCat(testing::TempDir(), "/", name);
}

// A model with two inputs, a and b, and two outputs: d = a·w, and sum = d + b.
constexpr char kModel[] = R"({"class_name": "Functional", "config": {"name": "m", "layers": [
  {"class_name": "InputLayer", "name": "a", "inbound_nodes": [],
   "config": {"batch_shape": [null, 2], "name": "a"}},
  {"class_name": "InputLayer", "name": "b", "inbound_nodes": [],
   "config": {"batch_shape": [null, 1], "name": "b"}},
  {"class_name": "Dense", "name": "d", "config": {"units": 1, "name": "d", "use_bias": false},
   "inbound_nodes": [[["a", 0, 0, {}]]]},
  {"class_name": "Add", "name": "sum", "config": {"name": "sum"},
   "inbound_nodes": [[["d", 0, 0, {}], ["b", 0, 0, {}]]]}],
  "input_layers": [["a", 0, 0], ["b", 0, 0]],
  "output_layers": [["d", 0, 0], ["sum", 0, 0]]}})";

std::unique_ptr<Predictor> Make(const model::Model& model) {
  const std::vector<Tensor> values = {Tensor::Of<float>({2, 1}, {2, 3})};
  auto made = Predictor::Create(model, *FeaturesOf(model, {}), values, exec::CpuDevice());
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// Returns the prediction of a model that consists of an InputLayer with this config, and of layers
// without weights.
StatusOr<Tensor> PredictOne(const std::string& input, const std::string& layers, const Tensor& x,
                            const RunOptions& options = {}, const StopSource& stop = {}) {
  const model::Model model = *model::ReadKerasJson(
      StrCat(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
               {"class_name": "InputLayer", "config": )",
             input, "}", layers, "]}}"),
      "model");
  ASSIGN_OR_RETURN(const auto predictor,
                   Predictor::Create(model, *FeaturesOf(model, {}), std::span<const Tensor>(),
                                     exec::CpuDevice()));
  ASSIGN_OR_RETURN(const io::NamedTensors outputs, predictor->Run({&x, 1}, options, stop));
  return outputs[0].second;
}

constexpr char kRelu[] = R"(, {"class_name": "ReLU", "config": {"name": "r"}})";

std::string Repeat(int64_t times) {
  return StrCat(R"(, {"class_name": "RepeatVector", "config": {"name": "r", "n": )", times, "}}");
}

std::vector<float> Floats(const StatusOr<Tensor>& tensor) {
  if (!tensor.ok()) {
    ADD_FAILURE() << tensor.status();
    return {};
  }
  const auto data = tensor->data<float>();
  return {data.begin(), data.end()};
}

TEST(Predictor, ComputesEveryOutputInBatchesOfAnySize) {
  const model::Model model = *model::ReadKerasJson(kModel, "model");
  const auto predictor = Make(model);
  const std::vector<Tensor> inputs = {Tensor::Of<double>({3, 2}, {1, 0, 0, 1, 1, 1}),
                                      Tensor::Of<int64_t>({3, 1}, {10, 20, 30})};
  for (int64_t batch_size : {1, 2, 3, 100}) {
    const auto outputs = predictor->Run(inputs, {.batch_size = batch_size}, {});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), 2u);
    EXPECT_EQ((*outputs)[0].first, "d");
    EXPECT_EQ((*outputs)[1].first, "sum");
    EXPECT_TRUE(
        std::ranges::equal((*outputs)[0].second.data<float>(), std::vector<float>{2, 3, 5}));
    EXPECT_TRUE(
        std::ranges::equal((*outputs)[1].second.data<float>(), std::vector<float>{12, 23, 35}));
  }
  const std::vector<Tensor> none = {Tensor(DType::kFloat32, Shape({0, 2})),
                                    Tensor(DType::kFloat32, Shape({0, 1}))};
  EXPECT_EQ((*predictor->Run(none, {}, {}))[0].second.shape(), Shape({0, 1}));
}

TEST(Predictor, InputsThatDoNotFitAreNamed) {
  const model::Model model = *model::ReadKerasJson(kModel, "model");
  const auto predictor = Make(model);
  const auto error = [&](Tensor a, Tensor b) {
    const std::vector<Tensor> inputs = {std::move(a), std::move(b)};
    return std::string(Message(predictor->Run(inputs, {.batch_size = 2}, {}).status()));
  };
  const Tensor a(DType::kFloat32, Shape({3, 2})), b(DType::kFloat32, Shape({3, 1}));
  EXPECT_EQ(error(a, Tensor(DType::kFloat32, Shape({2, 1}))),
            "input b has 2 examples, but the first input has 3");
  EXPECT_EQ(error(Tensor(DType::kFloat32, Shape({3, 4})), b),
            "input a: its examples have the shape [4], but the model expects [2]");
  EXPECT_EQ(error(Tensor(DType::kFloat32, Shape()), b), "input a: expected an array of examples");
}

TEST(Predictor, NumbersAreScaledAsInTraining) {
  const std::string input = R"({"batch_shape": [null, 2], "name": "x"})";
  const RunOptions half = {.scale = 0.5};
  EXPECT_EQ(Floats(PredictOne(input, kRelu, Tensor::Of<uint8_t>({1, 2}, {2, 255}), half)),
            (std::vector<float>{1, 127.5}));
  const Tensor floats = Tensor::Of<float>({1, 2}, {3, 5});
  EXPECT_EQ(Floats(PredictOne(input, kRelu, floats, half)), (std::vector<float>{1.5, 2.5}));
  EXPECT_EQ(floats.data<float>()[0], 3) << "the caller's array is not changed";
}

TEST(Predictor, ALastAxisOfOneMayBeMissing) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const std::vector<float> same = {1, 2, 3, 4};
  EXPECT_EQ(Floats(PredictOne(R"({"batch_shape": [null, 2, 1], "name": "x"})", kRelu, x)), same);
  EXPECT_EQ(Floats(PredictOne(R"({"batch_shape": [null, 2], "name": "x"})", kRelu,
                              x.Reshaped({2, 2, 1}))),
            same);
  EXPECT_TRUE(absl::IsInvalidArgument(
      PredictOne(R"({"batch_shape": [null, 1, 2], "name": "x"})", kRelu, x).status()));
}

TEST(Predictor, IntegersRemainWhatTheyAre) {
  const auto predict = [](const std::string& dtype, const Tensor& x) {
    return PredictOne(StrCat(R"({"batch_shape": [null, 1], "name": "x", "dtype": ")", dtype, "\"}"),
                      R"(, {"class_name": "Flatten", "config": {"name": "f"}})", x);
  };
  const auto exact = predict("int32", Tensor::Of<float>({2, 1}, {3, -16777216}));
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_EQ(exact->data<int32_t>()[1], -16777216);
  for (const Tensor& x :
       {Tensor::Of<float>({2, 1}, {3, 0.5}), Tensor::Of<float>({2, 1}, {3, NAN}),
        Tensor::Of<float>({2, 1}, {3, 16777218}), Tensor::Of<double>({2, 1}, {3, 0x1p31}),
        Tensor::Of<int64_t>({2, 1}, {3, int64_t{1} << 31})}) {
    const Status status = predict("int32", x).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(Message(status).find("input x: example 1: expected an integer that int32 and "),
              std::string_view::npos)
        << status;
  }
}

TEST(Predictor, OutputsThatAreTooLargeAreErrors) {
  const Status example =
      PredictOne(R"({"batch_shape": [null, 1024], "name": "x"})", Repeat(int64_t{1} << 29),
                 Tensor(DType::kFloat32, Shape({1, 1024})))
          .status();
  EXPECT_TRUE(absl::IsResourceExhausted(example)) << example;
  const Tensor many(DType::kFloat32, Shape({1 << 21, 1}));
  const Status all = PredictOne(R"({"batch_shape": [null, 1], "name": "x"})", Repeat(1 << 20), many,
                                {.batch_size = 1})
                         .status();
  EXPECT_TRUE(absl::IsResourceExhausted(all)) << all;
  EXPECT_NE(Message(all).find("the outputs of 2097152 examples"), std::string_view::npos) << all;
}

TEST(Predictor, StopsBetweenBatches) {
  StopSource stop;
  stop.Request(15);
  const Status status = PredictOne(R"({"batch_shape": [null, 1], "name": "x"})", kRelu,
                                   Tensor(DType::kFloat32, Shape({1, 1})), {}, stop)
                            .status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST(Predictor, ArraysBelongToInputsByName) {
  const model::Model model = *model::ReadKerasJson(kModel, "model");
  const Tensor one(DType::kFloat32, Shape({1, 2})), two(DType::kFloat32, Shape({1, 1}));
  const auto ordered = OrderInputs(model, {{"b", two}, {"a", one}});
  ASSERT_TRUE(ordered.ok()) << ordered.status();
  EXPECT_EQ((*ordered)[0].shape(), one.shape());
  const auto error = [&](const io::NamedTensors& arrays) {
    return std::string(Message(OrderInputs(model, arrays).status()));
  };
  EXPECT_EQ(error({{"a", one}}), "input b is missing");
  EXPECT_EQ(error({{"a", one}, {"a", one}}), "input a is given twice");
  EXPECT_EQ(error({{"", one}}),
            "an array without a name belongs to no input of the model; name one of a, b");
}

TEST(Flops, ProductsCountTwice) {
  const model::Model model = *model::ReadKerasJson(kModel, "model");
  const auto built = model::Build(
      model, {.mode = model::Mode::kPredict, .batch_size = 1, .features = *FeaturesOf(model, {})});
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(FloatingPointOperations(built->graph), 2 * 2 + 1);
}

TEST(Flops, EveryKindOfProductIsCounted) {
  using graph::Builder, graph::Output;
  const auto count = [](std::initializer_list<Shape> shapes,
                        const std::function<Output(Builder&, const std::vector<Output>&)>& add) {
    Builder b;
    std::vector<Output> inputs;
    for (const Shape& shape : shapes)
      inputs.push_back(Placeholder(b, StrCat("p", inputs.size()), DType::kFloat32, shape));
    add(b, inputs);
    const auto graph = std::move(b).Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    return FloatingPointOperations(*graph);
  };
  const Window window = {.height = {.size = 2}, .width = {.size = 2}};
  EXPECT_EQ(
      count({{7, 2, 3}, {3, 5}}, [](Builder& b, auto& in) { return MatMul(b, in[0], in[1]); }),
      2 * 7 * 2 * 5 * 3);
  EXPECT_EQ(count({{0, 3}, {3, 5}}, [](Builder& b, auto& in) { return MatMul(b, in[0], in[1]); }),
            0);
  EXPECT_EQ(count({{3, 2}, {4, 3, 5}},
                  [](Builder& b, auto& in) { return BatchMatMul(b, in[0], in[1], true); }),
            2 * 4 * 2 * 5 * 3);
  EXPECT_EQ(count({{1, 3, 3, 4}, {2, 2, 4, 5}},
                  [&](Builder& b, auto& in) { return Conv2D(b, in[0], in[1], window); }),
            2 * (2 * 2 * 5) * (2 * 2 * 4));
  EXPECT_EQ(count({{2, 2, 4, 5}, {1, 2, 2, 5}},
                  [&](Builder& b, auto& in) {
                    return Conv2DBackpropInput(b, in[0], in[1], {1, 3, 3, 4}, window);
                  }),
            2 * (2 * 2 * 5) * (2 * 2 * 4));
  EXPECT_EQ(count({{6, 2, 3}, {3, 5}},
                  [](Builder& b, auto& in) {
                    graph::ScanBuilder scan(b, 6);
                    const Output x = scan.Sequence(in[0]), w = scan.Invariant(in[1]);
                    scan.Stack(MatMul(scan.body(), x, w));
                    return scan.Finish().outputs[0];
                  }),
            6 * 2 * (2 * 5 * 3));
}

TEST(Arrays, EveryFormatIsReadBack) {
  const io::NamedTensors arrays = {{"y", Tensor::Of<float>({2, 2}, {0.1F, -2, 3e10F, 4})}};
  for (const char* format : {".npy", ".npz", ".safetensors", ".csv"}) {
    const std::string path = Path(StrCat("y", format));
    ASSERT_TRUE(WriteArrays(path, arrays).ok()) << WriteArrays(path, arrays);
    const auto read = ReadArrays(path);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->size(), 1u);
    EXPECT_TRUE(std::ranges::equal((*read)[0].second.bytes(), arrays[0].second.bytes())) << format;
    EXPECT_EQ((*read)[0].second.shape(), Shape({2, 2}));
  }
}

TEST(Arrays, ATableMayHaveAHeader) {
  const auto read = [](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(Path("t.csv"), text).ok());
    return ReadArrays(Path("t.csv"));
  };
  EXPECT_EQ((*read("a,b\r\n1, +2\r\n\r\n3,4"))[0].second.shape(), Shape({2, 2}));
  const auto error = [&](const std::string& text) {
    return std::string(Message(read(text).status()));
  };
  EXPECT_NE(error("1,2\n3,x\n").find("t.csv: line 2: expected only numbers"), std::string::npos);
  EXPECT_NE(error("1,2\n3,+-4\n").find("t.csv: line 2: expected only numbers"), std::string::npos);
  EXPECT_NE(error("1,2\n3\n").find("t.csv: line 2: expected 2 numbers, got 1"), std::string::npos);
  EXPECT_NE(error("a,b\n").find("there is no row of numbers"), std::string::npos);
}

TEST(Arrays, NamesOfFilesAreChecked) {
  EXPECT_TRUE(absl::IsInvalidArgument(ReadArrays(Path("x.txt")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckArraysPath("x.npy", 2)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckArraysPath("x.txt", 1)));
  EXPECT_TRUE(CheckArraysPath("x.npz", 2).ok());
}

}  // namespace
}  // namespace tfjob::inference
