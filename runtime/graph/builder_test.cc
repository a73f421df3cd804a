#include "runtime/graph/builder.h"

#include <gtest/gtest.h>

#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

constexpr DType kF32 = DType::kFloat32;

TEST(Builder, PrintsOneNodeALine) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3});
  Output y;
  {
    NameScope dense(b, "dense");
    const Output w = ReadVariable(b, "dense/kernel", kF32, {4, 3});
    y = Relu(b, MatMul(b, x, w, false, true));
  }
  {
    DeviceScope device(b, "/job:ps/task:1");
    Assign(b, "dense/kernel", Fill(b, kF32, {4, 3}, 0.5));
  }
  b.AddFetch("y", y);
  auto graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->ToString(),
            "x = Placeholder(dtype=float32, shape=[2,3]) : float32[2,3]\n"
            "dense/kernel = ReadVariable(dtype=float32, shape=[4,3], variable=\"dense/kernel\") : "
            "float32[4,3]\n"
            "dense/MatMul = MatMul(x, dense/kernel, transpose_b=true) : float32[2,4]\n"
            "dense/Relu = Relu(dense/MatMul) : float32[2,4]\n"
            "Fill = Fill(dtype=float32, shape=[4,3], value=0.5) : float32[4,3] @/job:ps/task:1\n"
            "dense/kernel/Assign = Assign(Fill, variable=\"dense/kernel\") @/job:ps/task:1\n"
            "fetch y = dense/Relu\n");
}

TEST(Builder, MakesNamesUniqueAndKeepsThoseOfPlaceholders) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {});
  const Output first = Relu(b, x);
  const Output second = Relu(b, x);
  const Output named = b.Add("Relu", {x}, {}, "Relu_1");
  EXPECT_EQ(b.graph().node(first).name, "Relu");
  EXPECT_EQ(b.graph().node(second).name, "Relu_1");
  EXPECT_EQ(b.graph().node(named).name, "Relu_1_1");
  Placeholder(b, "x", kF32, {});
  EXPECT_EQ(Message(b.status()), "node x: the name of a Placeholder must be unused");
}

TEST(Builder, KeepsTheFirstErrorAndDoesNothingAfterIt) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3});
  const Output w = Placeholder(b, "w", kF32, {4, 5});
  Output bad;
  {
    NameScope scope(b, "dense_1");
    bad = MatMul(b, x, w);
  }
  EXPECT_FALSE(bad.valid());
  EXPECT_FALSE(Relu(b, bad).valid());
  b.AddFetch("bad", bad);
  EXPECT_FALSE(Add(b, x, w).valid());
  EXPECT_EQ(Message(std::move(b).Finish().status()),
            "node dense_1/MatMul: MatMul(float32[2,3], float32[4,5]): expected equal inner "
            "dimensions, got 3 and 4");
}

TEST(Builder, RefusesTheSecondFetchOfAName) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {});
  b.AddFetch("loss", x);
  b.AddFetch("loss", x);
  EXPECT_EQ(b.status().code(), StatusCode::kAlreadyExists);
}

TEST(Builder, NumbersRandomOpsOnWhenItGoesOnWithAGraph) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output step = Placeholder(b, "step", DType::kInt64, {});
  const Output first = Dropout(b, x, step, step, 0.5);
  EXPECT_EQ(b.graph().node(first).attributes.Get<int64_t>("op_id", -1), 0);
  Builder more(*std::move(b).Finish());
  const Output second = Dropout(more, x, step, step, 0.5);
  EXPECT_EQ(more.graph().node(second).attributes.Get<int64_t>("op_id", -1), 1);
  EXPECT_EQ(more.graph().node(second).name, "Dropout_1");
}

TEST(StateDependencies, OrderReadsAndWritesOfOneVariable) {
  Builder b;
  const Output read = ReadVariable(b, "v", kF32, {});  // 0
  ReadVariable(b, "w", kF32, {});                      // 1
  AssignAdd(b, "v", read);                             // 2
  ReadVariable(b, "v", kF32, {});                      // 3
  Assign(b, "v", read);                                // 4
  const auto before = StateDependencies(b.graph());
  EXPECT_TRUE(before[0].empty());
  EXPECT_TRUE(before[1].empty());
  EXPECT_EQ(before[2], (std::vector<int>{0}));
  EXPECT_EQ(before[3], (std::vector<int>{2}));
  EXPECT_EQ(before[4], (std::vector<int>{2, 3}));
}

// Exchanges keep their order, even those that do not use each other's values.
TEST(StateDependencies, OrderExchanges) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});  // 0
  const NameScope scope(b, "norm");
  const Output first = AllReduceMean(b, x);   // 1
  Exp(b, first);                              // 2
  const Output second = AllReduceMean(b, x);  // 3
  const auto before = StateDependencies(b.graph());
  EXPECT_TRUE(before[1].empty());
  EXPECT_TRUE(before[2].empty());
  EXPECT_EQ(before[3], (std::vector<int>{1}));
  EXPECT_EQ(b.graph().node(second).name, "norm/AllReduceMean_1");
  EXPECT_EQ(b.graph().node(second).attributes.Get<int64_t>(kExchange, -1), 1);
  EXPECT_EQ(Exchanges(b.graph()), (std::vector<int>{1, 3}));
}

struct InferenceCase {
  const char* op;
  std::vector<TensorType> inputs;
  Attributes attributes;
  const char* expected;  // the types, or a substring of the error
};

std::string Infer(const InferenceCase& test) {
  Attributes attributes = test.attributes;
  auto types = InferTypes(test.op, test.inputs, attributes);
  if (!types.ok()) return std::string(Message(types.status()));
  std::string text;
  for (const TensorType& type : *types) text += (text.empty() ? "" : " ") + type.ToString();
  return text;
}

TensorType F32(Shape shape) {
  return {kF32, std::move(shape)};
}
TensorType I64(Shape shape) {
  return {DType::kInt64, std::move(shape)};
}
TensorType Bool(Shape shape) {
  return {DType::kBool, std::move(shape)};
}
using Ints = std::vector<int64_t>;

TEST(InferTypes, GivesTheTypesOfOutputs) {
  const InferenceCase cases[] = {
      {"MatMul", {F32({2, 3}), F32({3, 5})}, {}, "float32[2,5]"},
      {"MatMul",
       {F32({3, 2}), F32({5, 3})},
       {{"transpose_a", true}, {"transpose_b", true}},
       "float32[2,5]"},
      {"BiasAdd", {F32({2, 4, 3}), F32({3})}, {}, "float32[2,4,3]"},
      {"BiasAddGrad", {F32({2, 4, 3})}, {}, "float32[3]"},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {F32({4, 3}), I64({4})},
       {},
       "float32[4] float32[4,3]"},
      {"SoftmaxCrossEntropyWithLogits", {F32({4, 3}), F32({4, 3})}, {}, "float32[4] float32[4,3]"},
      {"Add", {F32({4, 1}), F32({3})}, {}, "float32[4,3]"},
      {"Less", {I64({4}), I64({})}, {}, "bool[4]"},
      {"Select", {Bool({4, 1}), F32({}), F32({3})}, {}, "float32[4,3]"},
      {"Sum", {F32({2, 3, 4})}, {{"axes", Ints{-1, 0}}}, "float32[3]"},
      {"Sum", {F32({2, 3, 4})}, {{"axes", Ints{1}}, {"keep_dims", true}}, "float32[2,1,4]"},
      {"Mean", {F32({2, 3})}, {}, "float32[]"},
      {"ArgMax", {F32({2, 3})}, {{"axis", int64_t{-1}}}, "int64[2]"},
      {"Reshape", {F32({2, 6})}, {{"shape", Shape({-1, 4})}}, "float32[3,4]"},
      {"Transpose", {F32({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}}, "float32[4,2,3]"},
      {"BroadcastTo", {F32({3, 1})}, {{"shape", Shape({2, 3, 4})}}, "float32[2,3,4]"},
      {"Cast", {I64({2})}, {{"dtype", kF32}}, "float32[2]"},
      {"RandomUniform", {I64({}), I64({})}, {{"dtype", kF32}, {"shape", Shape({2})}}, "float32[2]"},
  };
  for (const InferenceCase& test : cases) EXPECT_EQ(Infer(test), test.expected) << test.op;
}

TEST(InferTypes, SaysWhatWasExpected) {
  const InferenceCase cases[] = {
      {"Convolve", {}, {}, "there is no op Convolve"},
      {"Relu", {}, {}, "Relu(): expected 1 inputs, got 0"},
      {"Relu", {I64({2})}, {}, "Relu(int64[2]): expected a float type"},
      {"MatMul", {F32({2}), F32({2, 2})}, {}, "expected a float type of rank 2"},
      {"MatMul",
       {F32({2, 2}), {DType::kFloat64, {2, 2}}},
       {},
       "expected inputs of one dtype; add a Cast"},
      {"BiasAdd", {F32({2, 3}), F32({2})}, {}, "expected a bias float32[3]"},
      {"Add", {F32({2, 3}), F32({2})}, {}, "got 3 against 2, 0 dimensions before the last"},
      {"Select", {F32({}), F32({}), F32({})}, {}, "expected a bool condition"},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {F32({4, 3}), I64({3})},
       {},
       "expected labels of shape [4]"},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {F32({4, 3}), F32({4})},
       {},
       "expected labels of int32"},
      {"Sum", {F32({2})}, {{"axes", Ints{1}}}, "expected axes from -1 to 0, got 1"},
      {"Sum", {F32({2, 2})}, {{"axes", Ints{0, -2}}}, "expected each axis once"},
      {"Reshape",
       {F32({2, 3})},
       {{"shape", Shape({4})}},
       "expected a shape of 6 elements, got [4]"},
      {"Reshape",
       {F32({2, 3})},
       {{"shape", Shape({-1, 4})}},
       "expected a shape of 6 elements, got [-1,4]"},
      {"Reshape", {F32({2, 3})}, {{"shape", Shape({-1, -1})}}, "at most one -1"},
      {"Transpose", {F32({2, 3})}, {{"perm", Ints{0, 0}}}, "each axis once"},
      {"BroadcastTo",
       {F32({3})},
       {{"shape", Shape({1})}},
       "expected a shape that the input broadcasts to"},
      {"Dropout", {F32({3}), I64({}), I64({})}, {{"rate", 1.0}}, "at least 0 and below 1, got 1"},
      {"ClipByValue",
       {F32({3})},
       {{"clip_value_min", 2.0}, {"clip_value_max", 1.0}},
       "clip_value_min"},
      {"Placeholder", {}, {{"dtype", kF32}, {"shape", Shape({-1})}}, "without negative dimensions"},
      {"ApplyOptimizer",
       {F32({3}), F32({})},
       {{"variable", std::string("w")}},
       "expected the step as int64[]"},
      {"Assign", {F32({3})}, {}, "expected an attribute variable"},
      {"MatMul", {F32({1 << 21, 1}), F32({1, 1 << 20})}, {}, "at most 2^40 elements"},
      {"Placeholder",
       {},
       {{"dtype", kF32}, {"shape", Shape({int64_t{1} << 62, 4})}},
       "at most 2^40 elements"},
  };
  for (const InferenceCase& test : cases) {
    EXPECT_NE(Infer(test).find(test.expected), std::string::npos) << test.op << ": " << Infer(test);
  }
}

}  // namespace
}  // namespace tfjob::graph
