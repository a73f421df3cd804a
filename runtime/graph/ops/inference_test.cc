// Tests the type inference of every op, with one table of cases per family. Also tests the output
// types of the builder functions.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/ops/inference_cases.h"

namespace tfjob::graph {
namespace {

TEST(Inference, OfElementwiseOpsWithOneInput) {
  const std::vector<const char*> floats = {"Relu", "Sigmoid", "Tanh", "Exp",  "Erf",
                                           "Log",  "Sin",     "Cos",  "Sqrt", "Rsqrt"};
  CheckAll(floats, {F64({2, 3})}, "float64[2,3]");
  CheckAll(floats, {I32({2})}, kFloats);
  CheckAll(floats, {Bool()}, kFloats);
  CheckAll({"Neg", "Abs", "Square"}, {I32({2, 3})}, "int32[2,3]");
  CheckAll({"Neg", "Abs", "Square"}, {Bytes({2})}, kNumbers);
  CheckAll({"Identity"}, {Bool({4})}, "bool[4]");
}

TEST(Inference, OfElementwiseOpsWithTwoInputs) {
  const std::vector<const char*> numbers = {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum"};
  const std::vector<const char*> orders = {"Greater", "GreaterEqual", "Less"};
  CheckAll(numbers, {I64({2, 1, 4}), I64({3, 1})}, "int64[2,3,4]");
  CheckAll(numbers, {F32({0, 3}), F32()}, "float32[0,3]");
  CheckAll(numbers, {Bool(), Bool()}, kNumbers);
  CheckAll(numbers, {F32(), F64()}, kOneType);
  CheckAll({"Pow"}, {F32({3}), F32({2, 1})}, "float32[2,3]");
  CheckAll({"Pow"}, {I32(), I32()}, kFloats);
  CheckAll(orders, {Bytes({2}), Bytes()}, "bool[2]");
  CheckAll(orders, {Bool(), Bool()}, "refused: expected numbers");
  CheckAll({"Equal"}, {Bool({2, 1}), Bool({3})}, "bool[2,3]");
  CheckAll({"Equal"}, {I32(), I64()}, kOneType);
  CheckAll({"Add", "Pow", "Equal", "Less"}, {F32({2, 4}), F32({3, 4})},
           "refused: expected shapes that broadcast (each dimension equal or 1, from the last one "
           "on), got 2 against 3, 1 dimensions before the last");
  const std::vector<const char*> gradients = {"ReluGrad", "SigmoidGrad", "TanhGrad"};
  CheckAll(gradients, {F32({2, 3}), F32({2, 3})}, "float32[2,3]");
  CheckAll(gradients, {F32({2, 3}), F32({3})},
           "refused: expected two inputs of one dtype and shape");
  CheckAll(gradients, {I64({2}), I64({2})}, kFloats);
}

TEST(Inference, OfElementwiseOpsWithAttributes) {
  const Attributes rate{{"rate", 0.0}};
  const std::string clip = "refused: expected attributes clip_value_min ≤ clip_value_max";
  const std::string bad_rate =
      "refused: expected an attribute rate of at least 0 and below 1, got ";
  const Attributes fused{{"program", Text("add")}, {"shape", Shape({2, 3})}};
  Check({
      {"Select", {Bool(), F32({2, 1}), F32({3})}, {}, "float32[2,3]"},
      {"Select", {F32(), F32(), F32()}, {}, "refused: expected a bool condition as input 0"},
      {"Select", {Bool(), F32(), F64()}, {}, kOneType},
      {"Cast", {Bool({2})}, {{"dtype", DType::kUInt8}}, "uint8[2]"},
      {"Cast", {F32()}, {{"dtype", int64_t{1}}}, "refused: expected an attribute dtype"},
      {"ClipByValue", {F32({2})}, {{"clip_value_min", 1.}, {"clip_value_max", 1.}}, "float32[2]"},
      {"ClipByValue", {F32()}, {{"clip_value_min", 2.}, {"clip_value_max", 1.}}, clip},
      {"ClipByValue", {F32()}, {{"clip_value_min", 0.}}, clip},
      {"ClipByValue", {I32()}, {{"clip_value_min", 0.}, {"clip_value_max", 1.}}, kFloats},
      {"Dropout", {F64({5}), I64(), I64()}, rate, "float64[5]"},
      {"DropoutGrad", {F32({5}), I64(), I64()}, rate, "float32[5]"},
      {"Dropout", {F32(), I64(), I32()}, rate, kScalars},
      {"Dropout", {F32(), I64({1}), I64()}, rate, kScalars},
      {"Dropout", {I32(), I64(), I64()}, rate, kFloats},
      {"Dropout", {F32(), I64(), I64()}, {{"rate", 1.0}}, bad_rate + "1"},
      {"Dropout", {F32(), I64(), I64()}, {}, bad_rate + "-1"},
      {"FusedElementwise", {F32({3}), F32({2, 1})}, fused, "float32[2,3]"},
      {"FusedElementwise", {F32({3}), F32(), F64()}, fused, kOneType},
      {"FusedElementwise", {F32()}, {}, "refused: expected attributes program and shape"},
      {"FusedElementwise",
       {F32()},
       {{"program", Text("Neg i0")}, {"shape", Shape({-1})}},
       "refused: expected a shape without negative dimensions, got [-1]"},
      {"FusedElementwise", {}, fused, "refused: expected 1 to 64 inputs, got 0"},
  });
}

TEST(Inference, OfProducts) {
  const Attributes ta{{"transpose_a", true}};
  const Attributes tb{{"transpose_b", true}};
  const Attributes bias{{"bias", true}};
  const std::string third =
      "refused: expected a third input if and only if the attribute bias is set";
  for (const char* op : {"MatMul", "FusedMatMul"}) {
    Check({
        {op, {F64({2, 3}), F64({3, 5})}, {}, "float64[2,5]"},
        {op, {F32({3, 2}), F32({3, 5})}, ta, "float32[2,5]"},
        {op, {F32({2, 3}), F32({5, 3})}, tb, "float32[2,5]"},
        {op,
         {F32({2, 3}), F32({3, 5})},
         tb,
         "refused: expected equal inner dimensions, got 3 and 5"},
        {op, {F32({2, 3}), F64({3, 5})}, {}, kOneType},
        {op, {F32({2, 3}), F32({3})}, {}, kFloats + " of rank 2"},
        {op, {I32({2, 3}), I32({3, 5})}, {}, kFloats + " of rank 2"},
    });
  }
  Check({
      {"MatMulAdd", {F32({4, 2, 3}), F32({3, 5}), F32({4, 2, 5})}, {}, "float32[4,2,5]"},
      {"MatMulAdd",
       {F32({2, 3}), F32({3, 5}), F32({2, 4})},
       {},
       "refused: expected an added float32[2,5], got float32[2,4]"},
      {"MatMulGelu",
       {F32({4, 2, 3}), F32({3, 5}), F32({5})},
       bias,
       "float32[4,2,5] float32[4,2,5]"},
      {"MatMulGelu", {F32({2, 3}), F32({3, 5})}, bias, third},
      {"MatMulGeluGrad", {F32({2, 3}), F32({3, 5}), F32({2, 5})}, {}, "float32[2,5]"},
      {"MatMulGeluGrad",
       {F32({2, 3}), F32({3, 5}), F32({5, 2})},
       {},
       "refused: expected a value before GELU of the type float32[2,5], got float32[5,2]"},
      {"MatMulAccumulate", {F32({2, 3}), F32({3, 5})}, {{"variable", Text("w")}}, ""},
      {"MatMulAccumulate",
       {F32({2, 3}), F32({3, 5})},
       {},
       "refused: expected an attribute variable, the name of a variable"},
      {"FusedMatMul", {F32({2, 3}), F32({3, 5}), F32({5})}, bias, "float32[2,5]"},
      {"FusedMatMul", {F32({2, 3}), F32({3, 5})}, bias, third},
      {"FusedMatMul", {F32({2, 3}), F32({3, 5}), F32({5})}, {}, third},
      {"FusedMatMul",
       {F32({2, 3}), F32({3, 5}), F32({3})},
       bias,
       "refused: expected a bias float32[5]"},
  });
}

TEST(Inference, OfBatchesOfProducts) {
  const Attributes ta{{"transpose_a", true}};
  const Attributes tb{{"transpose_b", true}};
  const Attributes ty{{"adj_y", true}};
  const std::string axes =
      "refused: expected more than two axes only for a[…,k] b[k,n], or for aᵀ b of a[…,m] and "
      "b[…,n]";
  Check({
      {"MatMul", {F32({7, 2, 3}), F32({3, 5})}, {}, "float32[7,2,5]"},
      {"MatMul", {F32({7, 2, 3}), F32({5, 3})}, tb, "float32[7,2,5]"},
      {"MatMul", {F32({7, 2, 3}), F32({7, 2, 5})}, ta, "float32[3,5]"},
      {"MatMul", {F32({7, 2, 3}), F32({2, 7, 5})}, ta, axes},
      {"MatMul", {F32({7, 2, 3}), F32({7, 3, 5})}, {}, axes},
      {"MatMul", {F32({2, 3}), F32({7, 3, 5})}, {}, axes},
      {"BatchMatMulV2", {F32({7, 1, 2, 3}), F32({4, 3, 5})}, {}, "float32[7,4,2,5]"},
      {"BatchMatMulV2", {F32({2, 3}), F32({4, 5, 3})}, ty, "float32[4,2,5]"},
      {"BatchMatMulV2", {F32({4, 3, 2}), F32({4, 3, 5})}, {{"adj_x", true}}, "float32[4,2,5]"},
      {"BatchMatMulV2",
       {F32({7, 2, 4, 3}), F32({4, 3, 5})},
       {{"swap_x", true}, {"swap_z", true}},
       "float32[7,2,4,5]"},
      {"BatchMatMulV2",
       {F32({4, 2, 3}), F32({4, 5, 3})},
       {},
       "refused: expected equal inner dimensions, got 3 and 5"},
      {"BatchMatMulV2", {F32({2, 3}), F32({3})}, {}, kFloats + " of rank 2 or more"},
      {"BatchMatMulV2",
       {F32({2, 3}), F32({3, 3})},
       {{"swap_y", true}},
       kFloats + " of rank 3 or more"},
      {"BatchMatMulV2", {F32({2, 3}), F64({3, 3})}, {}, kOneType},
      {"SoftmaxGrad", {F32({2, 3}), F32({2, 3})}, {}, "float32[2,3]"},
      {"SoftmaxGrad",
       {F32({2, 3}), F32({3})},
       {},
       "refused: expected two inputs of one dtype and shape"},
  });
}

TEST(Inference, OfAttention) {
  const auto half = [](Shape shape) { return TensorType{DType::kBFloat16, std::move(shape)}; };
  const TensorType q = half({2, 5, 3, 8}), k = half({2, 7, 3, 8}), v = half({2, 7, 3, 4});
  const TensorType y = half({2, 5, 3, 4}), statistics = F32({2, 2, 3, 5});
  const std::string kResult = "bfloat16[2,5,3,4] float32[2,2,3,5]";
  Check({
      {"Attention", {q, k, v}, {}, kResult},
      {"Attention", {q, k, v, Bool({5, 7}), I64(), I64()}, {}, kResult},
      {"Attention", {q, k, v, I64(), I64()}, {}, kResult},
      {"Attention",
       {F32({2, 5, 3, 8}), k, v},
       {},
       "refused: expected tensors [batch,positions,heads,size] of a half type"},
      {"Attention",
       {q, k, half({2, 6, 3, 4})},
       {},
       "refused: expected bfloat16[2,7,3,4], got bfloat16[2,6,3,4]"},
      {"Attention",
       {q, k, v, I32({5, 7})},
       {},
       "refused: expected a mask of type bool, got int32[5,7]"},
      {"Attention",
       {q, k, v, Bool({1, 2, 3, 5, 7})},
       {},
       "refused: expected a mask that broadcasts to [2,3,5,7], got [1,2,3,5,7]"},
      {"Attention", {q, k, v, I32(), I64()}, {}, "refused: expected int64[], got int32[]"},
      {"AttentionGrad",
       {q, k, v, y, statistics, y, Bool({1, 7})},
       {},
       "bfloat16[2,5,3,8] bfloat16[2,7,3,8] bfloat16[2,7,3,4]"},
      {"AttentionGrad",
       {q, k, v, y, F32({2, 3, 5}), y},
       {},
       "refused: expected float32[2,2,3,5], got float32[2,3,5]"},
      {"AttentionGrad",
       {q, k, v, q, statistics, y},
       {},
       "refused: expected bfloat16[2,5,3,4], got bfloat16[2,5,3,8]"},
  });
}

TEST(Inference, OfLayerNormalization) {
  const TensorType x{DType::kFloat16, {2, 3, 4}}, row = F32({4}), statistics = F32({2, 6});
  const Attributes brain{{"dtype", DType::kBFloat16}};
  Check({
      {"LayerNormalization", {x, row, row}, brain, "bfloat16[2,3,4] float32[2,6]"},
      {"LayerNormalization",
       {x, row, row},
       {},
       "refused: expected an attribute dtype: float32 or a half type"},
      {"LayerNormalization",
       {x, row, F32({3})},
       brain,
       "refused: expected float32[4], got float32[3]"},
      {"LayerNormalization",
       {F64({2, 4}), row, row},
       brain,
       "refused: expected float32 or a half type, of rank 2 or more"},
      {"LayerNormalizationGrad",
       {x, row, statistics, F32({2, 3, 4})},
       brain,
       "bfloat16[2,3,4] float32[4] float32[4]"},
      {"LayerNormalizationGrad",
       {x, row, F32({2, 5}), x},
       brain,
       "refused: expected statistics float32[2,6] and a gradient of the shape of x"},
  });
}

TEST(Inference, OfRowsAndLosses) {
  const char* const kSparse = "SparseSoftmaxCrossEntropyWithLogits";
  const char* const kDense = "SoftmaxCrossEntropyWithLogits";
  const std::string integers = "refused: expected labels of int32, int64 or uint8";
  const std::string rows = "refused: expected labels of shape [4], one per row of the logits";
  const std::string same = "refused: expected labels of the logits' dtype and shape";
  CheckAll({"Softmax", "LogSoftmax"}, {F64({2, 3, 4})}, "float64[2,3,4]");
  CheckAll({"Softmax", "LogSoftmax", "BiasAddGrad"}, {F32()}, kFloats + " of rank 1 or more");
  CheckAll({"Softmax", "LogSoftmax", "BiasAddGrad"}, {I64({2})}, kFloats + " of rank 1 or more");
  Check({
      {"BiasAdd", {F32({5}), F32({5})}, {}, "float32[5]"},
      {"BiasAdd", {F32({2, 5}), F32({1})}, {}, "refused: expected a bias float32[5]"},
      {"BiasAdd", {F32({2, 5}), F64({5})}, {}, "refused: expected a bias float32[5]"},
      {"BiasAddGrad", {F64({2, 3, 4})}, {}, "float64[4]"},
      {kSparse, {F64({4, 3}), I32({4})}, {}, "float64[4] float64[4,3]"},
      {kSparse, {F32({4, 3}), Bytes({4})}, {}, "float32[4] float32[4,3]"},
      {kSparse, {F32({4, 3}), Bool({4})}, {}, integers},
      {kSparse, {F32({4, 3}), F32({4})}, {}, integers},
      {kSparse, {F32({4, 3}), I64({4, 1})}, {}, rows},
      {kSparse, {F32({4}), I64({4})}, {}, kFloats + " of rank 2"},
      {kDense, {F32({4, 3}), F32({4, 3})}, {}, "float32[4] float32[4,3]"},
      {kDense, {F32({4, 3}), F32({4})}, {}, same},
      {kDense, {F32({4, 3}), F64({4, 3})}, {}, same},
  });
}

TEST(Inference, OfReductions) {
  const std::vector<const char*> numbers = {"Sum", "Max", "Min"};
  CheckAll(numbers, {I32({2, 3})}, "int32[]");
  CheckAll(numbers, {Bool({2})}, kNumbers);
  CheckAll({"Mean"}, {I32({2})}, kFloats);
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
    Check({
        {op, {F32({2, 3, 4})}, {{"axes", Ints{-1, 0}}}, "float32[3]"},
        {op, {F32({2, 3, 4})}, {{"axes", Ints{2, 1}}, {"keep_dims", true}}, "float32[2,1,1]"},
        {op, {F32({2, 3})}, {{"axes", Ints{-3}}}, "refused: expected axes from -2 to 1, got -3"},
        {op, {F32({2, 3})}, {{"axes", Ints{1, -1}}}, "refused: expected each axis once, got [1,1]"},
    });
  }
  Check({
      {"ArgMax", {F32({2, 3})}, {{"axis", int64_t{0}}}, "int64[3]"},
      {"ArgMax", {F32({2, 3})}, {}, "int64[2]"},
      {"ArgMax",
       {F32({2, 3})},
       {{"axis", int64_t{2}}},
       "refused: expected an axis from -2 to 1, got 2"},
      {"ArgMax", {I32({2})}, {}, kFloats},
  });
  Attributes axes{{"axes", Ints{-1, 0}}};
  Infer({"Sum", {F32({2, 3, 4})}, {}, ""}, axes);
  EXPECT_EQ(axes.ToString(), "axes=[0,2]");
  Attributes axis;
  Infer({"ArgMax", {F32({2, 3})}, {}, ""}, axis);
  EXPECT_EQ(axis.ToString(), "axis=1");
}

TEST(Inference, OfShapeChanges) {
  const std::string one_open = "refused: expected a shape with at most one -1, got ";
  const std::string six = "refused: expected a shape of 6 elements, got ";
  const std::string once = "refused: expected perm to list each axis once, got ";
  Check({
      {"Reshape", {I32({2, 3})}, {{"shape", Shape({3, -1, 1})}}, "int32[3,2,1]"},
      {"Reshape", {F32({0, 3})}, {{"shape", Shape({3, -1})}}, "float32[3,0]"},
      {"Reshape", {F32()}, {{"shape", Shape({1, 1})}}, "float32[1,1]"},
      {"Reshape", {F32({2, 3})}, {{"shape", Shape({4, -1})}}, six + "[4,-1]"},
      {"Reshape", {F32({2, 3})}, {{"shape", Shape({0, -1})}}, six + "[0,-1]"},
      {"Reshape",
       {F32({2, 3})},
       {{"shape", Shape({1LL << 62, 4})}},
       six + "[4611686018427387904,4]"},
      {"Reshape", {F32({2, 3})}, {{"shape", Shape({-1, -1})}}, one_open + "[-1,-1]"},
      {"Reshape", {F32({2, 3})}, {{"shape", Shape({-2, -3})}}, one_open + "[-2,-3]"},
      {"Reshape", {F32({2, 3})}, {}, "refused: expected an attribute shape"},
      {"Transpose", {Bool({2, 3, 4})}, {{"perm", Ints{1, 2, 0}}}, "bool[3,4,2]"},
      {"Transpose", {F32()}, {{"perm", Ints{}}}, "float32[]"},
      {"Transpose", {F32({2, 3})}, {{"perm", Ints{1, 1}}}, once + "[1,1]"},
      {"Transpose", {F32({2, 3})}, {{"perm", Ints{0, 2}}}, once + "[0,2]"},
      {"Transpose", {F32({2, 3})}, {{"perm", Ints{-1, 0}}}, once + "[-1,0]"},
      {"Transpose",
       {F32({2, 3})},
       {{"perm", Ints{0}}},
       "refused: expected an attribute perm of 2 axes"},
      {"BroadcastTo", {I64({3, 1})}, {{"shape", Shape({2, 3, 4})}}, "int64[2,3,4]"},
      {"BroadcastTo",
       {F32({3, 2})},
       {{"shape", Shape({2})}},
       "refused: expected a shape that the input broadcasts to, got [2]"},
      {"BroadcastTo", {F32()}, {}, "refused: expected an attribute shape"},
      {"BroadcastTo",
       {F32({1})},
       {{"shape", Shape({2, -3})}},
       "refused: expected a shape without negative dimensions, got [2,-3]"},
  });
}

TEST(Inference, OfSourcesAndVariables) {
  const Attributes type{{"dtype", DType::kBool}, {"shape", Shape({2, 0})}};
  const Attributes floats{{"dtype", DType::kFloat64}, {"shape", Shape({2})}};
  const Attributes variable{{"variable", Text("w")}};
  const std::string unnamed = "refused: expected an attribute variable, the name of a variable";
  for (const char* op : {"Placeholder", "Fill", "ReadVariable"}) {
    Check({
        {op, {}, type, "bool[2,0]"},
        {op, {}, {{"dtype", kF32}}, "refused: expected attributes dtype and shape"},
        {op, {}, {{"shape", Shape()}}, "refused: expected attributes dtype and shape"},
        {op,
         {},
         {{"dtype", kF32}, {"shape", Shape({2, -1})}},
         "refused: expected a shape without negative dimensions, got [2,-1]"},
        {op,
         {},
         {{"dtype", kF32}, {"shape", Shape({1 << 20, 1 << 20, 2})}},
         "refused: expected an output of at most 2^40 elements, got float32[1048576,1048576,2]"},
    });
  }
  for (const char* op : {"RandomUniform", "RandomNormal", "TruncatedNormal"}) {
    Check({
        {op, {I64(), I64()}, floats, "float64[2]"},
        {op, {I64(), I32()}, floats, kScalars},
        {op, {I64({1}), I64()}, floats, kScalars},
        {op, {I64(), I64()}, type, "refused: expected a float type as dtype"},
        {op, {I64(), I64()}, {}, "refused: expected attributes dtype and shape"},
    });
  }
  Check({
      {"Const", {}, {{"value", Tensor::Of<uint8_t>({3}, {1, 2, 3})}}, "uint8[3]"},
      {"Const", {}, {{"value", 1.0}}, "refused: expected an attribute value, a tensor"},
      {"Assign", {Bool({2})}, variable, ""},
      {"Assign", {F32()}, {{"variable", Text()}}, unnamed},
      {"AssignAdd", {F32()}, {}, unnamed},
      {"ApplyOptimizer", {F32({2}), I64()}, variable, ""},
      {"ApplyOptimizer", {F32({2}), I64()}, {}, unnamed},
      {"ApplyOptimizer",
       {I32({2}), I64()},
       variable,
       "refused: expected a gradient of a float type"},
      {"ApplyOptimizer", {TensorType{DType::kFloat16, {2}}, I64()}, variable, ""},
      {"ApplyOptimizer", {F32({2}), I64({1})}, variable, "refused: expected the step as int64[]"},
  });
}

TEST(Inference, OfExchanges) {
  const Attributes first{{"exchange", int64_t{0}}};
  const std::string vector =
      "refused: expected a vector of float32 or float64 with at least one element";
  Check({
      {"AllReduceMean", {F32({3})}, first, "float32[3]"},
      {"AllReduceMean", {F64({1})}, first, "float64[1]"},
      {"AllReduceMean", {F32()}, first, vector},
      {"AllReduceMean", {F32({3, 1})}, first, vector},
      {"AllReduceMean", {F32({0})}, first, vector},
      {"AllReduceMean", {I64({3})}, first, vector},
      {"AllReduceMean",
       {F32({3})},
       {},
       "refused: expected the attribute exchange, the number of earlier exchanges in the graph"},
  });
}

TEST(Inference, RefusesAWrongNumberOfInputsOfEveryOp) {
  std::set<std::string_view> names;
  for (const Op& op : AllOps()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_EQ(FindOp(op.name), &op);
    Attributes attributes;
    const std::vector<TensorType> inputs(static_cast<size_t>(op.max_inputs) + 1, F32());
    const Status status = InferTypes(op.name, inputs, attributes).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << op.name;
    EXPECT_TRUE(Message(status).ends_with(StrCat(" inputs, got ", op.max_inputs + 1))) << status;
  }
  Attributes attributes;
  EXPECT_EQ(InferTypes("relu", {F32()}, attributes).status(), Unimplemented("there is no op relu"));
  EXPECT_EQ(Message(InferTypes("MatMul", {F32({2, 3}), Bool()}, attributes).status()),
            "MatMul(float32[2,3], bool[]): expected a float type of rank 2");
}

TEST(BuilderFunctions, ReturnTheTypesTheyDocument) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3});
  const Output n = Placeholder(b, "n", DType::kInt64, {});
  const Output labels = Placeholder(b, "labels", DType::kInt32, {2});
  const CrossEntropy sparse = SparseSoftmaxCrossEntropyWithLogits(b, x, labels);
  const CrossEntropy dense = SoftmaxCrossEntropyWithLogits(b, x, x);
  const std::pair<Output, TensorType> cases[] = {
      {MatMul(b, x, x, true), F32({3, 3})},
      {MatMul(b, x, x, false, true), F32({2, 2})},
      {sparse.loss, F32({2})},
      {sparse.backprop, F32({2, 3})},
      {dense.loss, F32({2})},
      {dense.backprop, F32({2, 3})},
      {Sum(b, x, {0}), F32({3})},
      {Mean(b, x, {}, true), F32({1, 1})},
      {Max(b, x, {-1}), F32({2})},
      {Min(b, x, {0, 1}), F32()},
      {ArgMax(b, x, -2), I64({3})},
      {Transpose(b, x, {1, 0}), F32({3, 2})},
      {Reshape(b, x, {-1}), F32({6})},
      {BroadcastTo(b, x, {4, 2, 3}), F32({4, 2, 3})},
      {Select(b, Greater(b, x, x), x, x), F32({2, 3})},
      {Cast(b, x, DType::kUInt8), Bytes({2, 3})},
      {Scalar(b, DType::kBool, 2), Bool()},
      {Fill(b, DType::kFloat64, {3}, 1), F64({3})},
      {TruncatedNormal(b, n, n, DType::kFloat64, {5}, 0, 1), F64({5})},
  };
  for (const auto& [output, type] : cases) {
    EXPECT_EQ(b.type(output).ToString(), type.ToString()) << b.graph().NameOf(output);
  }
  EXPECT_EQ(Cast(b, x, kF32), x);
  EXPECT_EQ(b.status(), OkStatus());
  const Output scalar = Scalar(b, DType::kInt32, 2.75);
  EXPECT_EQ(b.graph().node(scalar).attributes.ToString(), "value=int32[]{2}");
}

}  // namespace
}  // namespace tfjob::graph
