// Checks how each pass changes the structure of graphs. runtime/exec/passes_test.cc, where kernels
// are available, checks that passes preserve values.
#include "runtime/graph/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/test_graphs.h"
#include "runtime/graph/scan.h"
#include "runtime/graph/subgraph.h"
#include "runtime/tensor/window.h"

namespace tfjob::graph {
namespace {

constexpr DType kF32 = DType::kFloat32;

TEST(RemoveDeadCode, KeepsFetchesWritesAndPlaceholders) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  Placeholder(b, "unused", kF32, {2});
  Exp(b, x);
  Assign(b, "v", Neg(b, x));
  b.AddFetch("y", Square(b, x));
  const Graph graph = RemoveDeadCode(Finished(b));
  EXPECT_EQ(OpsOf(graph), (Ops{"Neg", "Assign", "Square"}));
  EXPECT_EQ(graph.nodes().size(), 5u);
  EXPECT_EQ(graph.NameOf(graph.FindFetch("y")->output), "Square");
}

TEST(RemoveDeadCode, KeepsExchanges) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  AllReduceMean(b, Neg(b, x));
  b.AddFetch("y", Square(b, x));
  EXPECT_EQ(OpsOf(RemoveDeadCode(Finished(b))), (Ops{"Neg", "AllReduceMean", "Square"}));
}

TEST(DropExchanges, KeepsTheirInputs) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output mean = AllReduceMean(b, Neg(b, x));
  b.AddFetch("mean", mean);
  b.AddFetch("y", Square(b, mean));
  const Graph graph = DropExchanges(Finished(b));
  EXPECT_EQ(OpsOf(graph), (Ops{"Neg", "Square"}));
  EXPECT_EQ(graph.NameOf(graph.FindFetch("mean")->output), "Neg");
}

// The graph contains three normalisations with activations. The second and the third normalisation
// also add a shortcut, and two gradients flow to the shortcut of the third one.
TEST(FuseBatchNorm, TakesActivationsAndShortcutsAndTheirGradients) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {8, 3});
  const Output channels = Placeholder(b, "channels", kF32, {3});
  const auto normal = [&](Output value) {
    return FusedBatchNorm(b, value, channels, channels, 0.1).y;
  };
  const Output hidden = Relu(b, normal(x));
  const Output z = Relu(b, Add(b, hidden, normal(Exp(b, hidden))));
  const Output y = Relu(b, Add(b, normal(Square(b, z)), z));
  b.AddFetch("gradient", Gradients(b, Sum(b, y, {}), std::vector{x})[0]);
  const Graph graph = RemoveDeadCode(FuseBatchNorm(Finished(b)));
  std::vector<size_t> norms, gradients;  // numbers of inputs of these nodes
  for (const Node& node : graph.nodes()) {
    EXPECT_TRUE(node.op != "Relu" && node.op != "ReluGrad") << node.name;
    if (node.op == "FusedBatchNormEx") norms.push_back(node.inputs.size());
    if (node.op == "FusedBatchNormGradEx") gradients.push_back(node.inputs.size());
  }
  EXPECT_EQ(norms, (std::vector<size_t>{3, 4, 4}));
  EXPECT_EQ(gradients, (std::vector<size_t>{7, 8, 6}));
}

TEST(FuseBatchNorm, KeepsAnActivationIfTheNormIsNeededOrTheShortcutComesLater) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {8, 3});
  const Output channels = Placeholder(b, "channels", kF32, {3});
  const Output fetched = FusedBatchNorm(b, x, channels, channels, 0.1).y;
  b.AddFetch("norm", fetched);
  b.AddFetch("y", Relu(b, fetched));
  const Output early = FusedBatchNorm(b, x, channels, channels, 0.1).y;
  b.AddFetch("z", Relu(b, Add(b, early, Exp(b, x))));
  const Graph graph = FuseBatchNorm(Finished(b));
  EXPECT_EQ(OpsOf(graph), (Ops{"FusedBatchNorm", "Relu", "FusedBatchNorm", "Exp", "Add", "Relu"}));
}

TEST(FuseTranspose, DropsExchangesOfTwoAxesAroundABatchOfProducts) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3, 4, 5});
  const Output y = Placeholder(b, "y", kF32, {2, 3, 4, 5});
  const Output heads = Transpose(b, x, {0, 2, 1, 3});
  const Output keys = Transpose(b, Transpose(b, y, {0, 2, 1, 3}), {0, 1, 3, 2});
  b.AddFetch("z", Transpose(b, BatchMatMul(b, heads, keys), {0, 2, 1, 3}));
  const Graph graph = RemoveDeadCode(FuseTranspose(Finished(b)));
  EXPECT_EQ(OpsOf(graph), Ops{"BatchMatMulV2"});
  EXPECT_EQ(FindNode(graph, "BatchMatMulV2")->attributes.ToString(),
            "adj_y=true, swap_x=true, swap_y=true, swap_z=true");
  EXPECT_EQ(graph.type(graph.FindFetch("z")->output).ToString(), "float32[2,3,4,3]");
}

TEST(FuseTranspose, KeepsWhatIsUsedElsewhereAndOtherPermutations) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 2, 2, 2});
  const Output product = BatchMatMul(b, Transpose(b, x, {1, 0, 2, 3}), x);
  b.AddFetch("z", Transpose(b, product, {0, 2, 1, 3}));
  b.AddFetch("product", product);
  EXPECT_EQ(OpsOf(FuseTranspose(Finished(b))), (Ops{"Transpose", "BatchMatMulV2", "Transpose"}));
}

struct PadCase {
  std::string_view name;
  std::vector<std::vector<int64_t>> before, after;  // one entry per Pad
  Ops expected;
  Shape result = {4, 6};
};

TEST(JoinPads, JoinsBlocksThatCoverTheResultExactly) {
  const Ops joined = {"Concat"};
  const auto sum_of = [](size_t pads) {
    Ops ops(pads, "Pad");
    ops.insert(ops.end(), pads - 1, "Add");
    return ops;
  };
  const PadCase cases[] = {
      {"in order", {{0, 0}, {0, 2}, {0, 3}}, {{0, 4}, {0, 3}, {0, 0}}, joined},
      {"out of order", {{0, 3}, {0, 0}, {0, 2}}, {{0, 0}, {0, 4}, {0, 3}}, joined},
      {"the first axis", {{1, 0}, {0, 0}}, {{0, 0}, {3, 0}}, joined},
      {"one axis", {{5}, {0}}, {{0}, {1}}, joined, {6}},
      {"a gap", {{0, 0}, {0, 3}}, {{0, 4}, {0, 0}}, sum_of(2)},
      {"an overlap", {{0, 0}, {0, 2}}, {{0, 3}, {0, 0}}, sum_of(2)},
      {"a missing end", {{0, 0}, {0, 2}}, {{0, 4}, {0, 1}}, sum_of(2)},
      {"a missing beginning", {{0, 1}, {0, 2}}, {{0, 4}, {0, 0}}, sum_of(2)},
      {"the same block twice", {{0, 0}, {0, 0}}, {{0, 3}, {0, 3}}, sum_of(2)},
      {"two axes", {{0, 0}, {2, 0}}, {{0, 2}, {0, 0}}, sum_of(2)},
      {"a corner", {{0, 0}, {2, 3}}, {{2, 3}, {0, 0}}, sum_of(2)},
      {"no padding", {{0, 0}, {0, 0}}, {{0, 0}, {0, 0}}, sum_of(2)},
  };
  for (const PadCase& c : cases) {
    Builder b;
    std::vector<Output> pads;
    for (size_t i = 0; i < c.before.size(); ++i) {
      std::vector<int64_t> dims = c.result.dims();
      for (size_t axis = 0; axis < dims.size(); ++axis)
        dims[axis] -= c.before[i][axis] + c.after[i][axis];
      pads.push_back(
          Pad(b, Placeholder(b, StrCat("x", i), kF32, Shape(dims)), c.before[i], c.after[i]));
    }
    Output sum = pads[0];
    for (size_t i = 1; i < pads.size(); ++i) sum = Add(b, pads[i], sum);
    b.AddFetch("y", sum);
    const Graph graph = RemoveDeadCode(JoinPads(Finished(b)));
    EXPECT_EQ(OpsOf(graph), c.expected) << c.name;
    if (c.expected != joined) continue;
    int64_t end = 0;
    const Node* concat = FindNode(graph, "Concat");
    const auto axis = static_cast<size_t>(concat->attributes.Get<int64_t>("axis", -1));
    for (const Output input : concat->inputs) {
      const size_t pad = static_cast<size_t>(graph.NameOf(input)[1] - '0');
      EXPECT_EQ(c.before[pad][axis], end) << c.name;
      end += graph.type(input).shape.dims()[axis];
    }
  }
}

TEST(JoinPads, LeavesSumsWithOtherTermsAndSumsThatAreUsedElsewhere) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output left = Pad(b, x, {0}, {4}), middle = Pad(b, x, {2}, {2}),
               right = Pad(b, x, {4}, {0});
  b.AddFetch("other", Add(b, Add(b, left, Placeholder(b, "y", kF32, {6})), right));
  const Output used = Add(b, left, middle);
  b.AddFetch("y", Add(b, used, right));
  b.AddFetch("used", used);
  EXPECT_EQ(OpsOf(JoinPads(Finished(b))), (Ops{"Pad", "Pad", "Pad", "Add", "Add", "Add", "Add"}));
}

// Returns a loop that multiplies the state by the transposed weights and, if `also_plain` is true,
// also by the weights as they are.
Graph LoopOverTransposed(int64_t steps, bool also_plain) {
  Builder b;
  ScanBuilder scan(b, steps);
  const Output state = scan.State(Placeholder(b, "x", kF32, {2, 3}));
  const Output w = scan.Invariant(Placeholder(b, "w", kF32, {3, 3}));
  Output next = MatMul(scan.body(), state, w, false, true);
  if (also_plain) next = MatMul(scan.body(), next, w);
  scan.SetNext(0, next);
  b.AddFetch("y", scan.Finish().states[0]);
  return Finished(b);
}

TEST(HoistTranspose, TransposesInvariantsBeforeLongLoops) {
  const Graph graph = HoistTranspose(LoopOverTransposed(64, false));
  EXPECT_EQ(OpsOf(graph), (Ops{"Transpose", "Scan"}));
  const Graph* body = Subgraph::Find(FindNode(graph, "Scan")->attributes, "body");
  EXPECT_EQ(FindNode(*body, "MatMul")->attributes.ToString(), "");
  EXPECT_EQ(OpsOf(HoistTranspose(LoopOverTransposed(2, false))), (Ops{"Scan"}));
  EXPECT_EQ(OpsOf(HoistTranspose(LoopOverTransposed(64, true))), (Ops{"Scan"}));
}

TEST(MergeCommonSubexpressions, MergesEqualNodesOnly) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 2});
  const Output same = Add(b, Exp(b, x), Exp(b, x));
  const Output other = Add(b, Sum(b, x, {0}), Sum(b, x, {1}));
  b.AddFetch("y", Mul(b, same, other));
  EXPECT_EQ(OpsOf(MergeCommonSubexpressions(Finished(b))),
            (Ops{"Exp", "Add", "Sum", "Sum", "Add", "Mul"}));
}

TEST(MergeCommonSubexpressions, TellsConstantsApartBeyondWhatIsPrinted) {
  Builder b;
  const Output one = Const(b, Tensor::Of<float>({9}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const Output two = Const(b, Tensor::Of<float>({9}, {1, 2, 3, 4, 5, 6, 7, 8, 10}));
  b.AddFetch("y", Add(b, one, two));
  EXPECT_EQ(MergeCommonSubexpressions(Finished(b)).nodes().size(), 3u);
}

TEST(MergeCommonSubexpressions, DoesNotMergeReadsAcrossAWrite) {
  Builder b;
  const Output first = ReadVariable(b, "v", kF32, {});
  const Output again = ReadVariable(b, "v", kF32, {});
  AssignAdd(b, "v", Add(b, first, again));
  b.AddFetch("after", ReadVariable(b, "v", kF32, {}));
  const Graph graph = MergeCommonSubexpressions(Finished(b));
  EXPECT_EQ(std::ranges::count(graph.nodes(), "ReadVariable", &Node::op), 2);
}

StatusOr<std::vector<Tensor>> AddOnly(const Node& node, const std::vector<Tensor>& inputs) {
  if (node.op != "Add") return Unimplemented("only Add");
  return std::vector{Tensor::Scalar(inputs[0].data<float>()[0] + inputs[1].data<float>()[0])};
}

TEST(FoldConstants, ComputesWhatDependsOnConstantsOnly) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {});
  const Output three = Add(b, Scalar(b, kF32, 1), Scalar(b, kF32, 2));
  b.AddFetch("y", Add(b, x, Add(b, three, three)));
  auto graph = FoldConstants(Finished(b), AddOnly);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Graph live = RemoveDeadCode(*graph);
  EXPECT_EQ(OpsOf(live), (Ops{"Add"}));
  EXPECT_EQ(FindNode(live, "Const")->attributes.Find<Tensor>("value")->data<float>()[0], 6);
}

TEST(FoldConstants, LeavesRandomOpsAndNamesTheNodeThatFails) {
  Builder b;
  const Output zero = Const(b, Tensor::Scalar<int64_t>(0));
  b.AddFetch("r", RandomUniform(b, zero, zero, kF32, {2}, 0, 1));
  EXPECT_TRUE(FoldConstants(Finished(b), AddOnly).ok());

  Builder bad;
  bad.AddFetch("y", Exp(bad, Scalar(bad, kF32, 1)));
  EXPECT_EQ(Message(FoldConstants(Finished(bad), AddOnly).status()), "folding node Exp: only Add");
}

TEST(Simplify, DropsWhatChangesNothing) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3});
  Output y = Mul(b, x, Scalar(b, kF32, 1));
  y = Add(b, Fill(b, kF32, {2, 3}, 0), y);
  y = Sub(b, y, Fill(b, kF32, {3}, 0));
  y = Identity(b, Reshape(b, BroadcastTo(b, y, {2, 3}), {2, 3}));
  b.AddFetch("y", y);
  EXPECT_EQ(OpsOf(RemoveDeadCode(Simplify(Finished(b)))), Ops());
}

TEST(Simplify, KeepsANeutralOperandThatBroadcasts) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3});
  b.AddFetch("y", Mul(b, x, Fill(b, kF32, {2, 3}, 1)));
  b.AddFetch("z", Sub(b, Scalar(b, kF32, 0), x));
  EXPECT_EQ(OpsOf(Simplify(Finished(b))), (Ops{"Mul", "Sub"}));
}

TEST(Simplify, MakesScalarsOfUniformConstants) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3});
  b.AddFetch("y", Mul(b, x, Const(b, Tensor::Of<float>({2, 1}, {0.5, 0.5}))));
  const Graph graph = RemoveDeadCode(Simplify(Finished(b)));
  EXPECT_EQ(graph.type(FindNode(graph, "Mul")->inputs[1]).ToString(), "float32[]");
}

TEST(Simplify, KeepsUniformConstantsOfTypesWithoutSuchScalars) {
  Builder b;
  const Output x = Placeholder(b, "x", DType::kInt64, {2, 3});
  b.AddFetch("y", Mul(b, x, Fill(b, DType::kInt64, {2, 3}, 7)));
  const Graph graph = RemoveDeadCode(Simplify(Finished(b)));
  EXPECT_EQ(graph.type(FindNode(graph, "Mul")->inputs[1]).ToString(), "int64[2,3]");
}

TEST(FuseSoftmaxCrossEntropy, FindsKerasFormsWithProbabilities) {
  for (const bool clip : {false, true}) {
    for (const bool sparse : {false, true}) {
      Builder b;
      const Output x = Placeholder(b, "x", kF32, {4, 3});
      Output p = Softmax(b, x);
      if (clip) p = ClipByValue(b, p, 1e-7, 1 - 1e-7);
      Output loss;
      if (sparse) {
        loss = SparseSoftmaxCrossEntropyWithLogits(b, Log(b, p),
                                                   Placeholder(b, "labels", DType::kInt64, {4}))
                   .loss;
      } else {
        loss = Neg(b, Sum(b, Mul(b, Placeholder(b, "labels", kF32, {4, 3}), Log(b, p)), {-1}));
      }
      b.AddFetch("loss", loss);
      const Graph graph = RemoveDeadCode(FuseSoftmaxCrossEntropy(Finished(b)));
      const Ops expected{sparse ? "SparseSoftmaxCrossEntropyWithLogits"
                                : "SoftmaxCrossEntropyWithLogits"};
      EXPECT_EQ(OpsOf(graph), expected);
      EXPECT_EQ(graph.NameOf(graph.nodes().back().inputs[0]), "x");
    }
  }
}

TEST(FuseSoftmaxCrossEntropy, LeavesOtherSumsAlone) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output labels = Placeholder(b, "labels", kF32, {4, 3});
  b.AddFetch("other_axis", Neg(b, Sum(b, Mul(b, labels, Log(b, Softmax(b, x))), {0})));
  const Output clipped = ClipByValue(b, Softmax(b, x), 1e-10, 1);
  b.AddFetch("clipped", Neg(b, Sum(b, Mul(b, labels, Log(b, clipped)), {1})));
  b.AddFetch("no_softmax", Neg(b, Sum(b, Mul(b, labels, Log(b, x)), {1})));
  const Graph before = Finished(b);
  EXPECT_EQ(OpsOf(FuseSoftmaxCrossEntropy(before)), OpsOf(before));
}

TEST(FuseBiasAndActivation, TakesBiasAndActivationAlong) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output w = Placeholder(b, "w", kF32, {5, 3});
  const Output bias = Placeholder(b, "bias", kF32, {5});
  b.AddFetch("y", Tanh(b, BiasAdd(b, MatMul(b, x, w, false, true), bias)));
  const Graph graph = FuseBiasAndActivation(Finished(b));
  EXPECT_EQ(OpsOf(graph), (Ops{"FusedMatMul"}));
  EXPECT_EQ(FindNode(graph, "FusedMatMul")->attributes.ToString(),
            "activation=\"Tanh\", bias=true, transpose_b=true");
  EXPECT_EQ(FindNode(graph, "FusedMatMul")->inputs.size(), 3u);
}

TEST(FuseBiasAndActivation, LeavesPartsWithOtherUses) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output w = Placeholder(b, "w", kF32, {3, 5});
  const Output logits = BiasAdd(b, MatMul(b, x, w), Placeholder(b, "bias", kF32, {5}));
  b.AddFetch("y", Relu(b, logits));
  b.AddFetch("logits", logits);
  EXPECT_EQ(OpsOf(FuseBiasAndActivation(Finished(b))), (Ops{"FusedMatMul", "Relu"}));

  Builder both;
  const Output product =
      MatMul(both, Placeholder(both, "x", kF32, {2, 2}), Placeholder(both, "w", kF32, {2, 2}));
  both.AddFetch("product", product);
  both.AddFetch("y", Relu(both, product));
  EXPECT_EQ(OpsOf(FuseBiasAndActivation(Finished(both))), (Ops{"MatMul", "Relu"}));
}

TEST(FuseBiasAndActivation, TakesThoseOfConvolutionsAlong) {
  const Window window{.height = {2}, .width = {2}};
  const auto ops = [&](Output (*activation)(Builder&, Output), bool with_bias) {
    Builder b;
    Output y = Conv2D(b, Placeholder(b, "x", kF32, {1, 4, 4, 3}),
                      Placeholder(b, "w", kF32, {2, 2, 3, 5}), window);
    if (with_bias) y = BiasAdd(b, y, Placeholder(b, "bias", kF32, {5}));
    b.AddFetch("y", activation(b, y));
    const Graph graph = FuseBiasAndActivation(Finished(b));
    const Node* fused = FindNode(graph, "FusedConv2D");
    return std::pair(OpsOf(graph), fused == nullptr ? "" : fused->attributes.ToString());
  };
  const std::string sizes = "height=[2,1,1,0,0], width=[2,1,1,0,0]";
  EXPECT_EQ(ops(Relu, true),
            std::pair(Ops{"FusedConv2D"}, "activation=\"Relu\", bias=true, " + sizes));
  EXPECT_EQ(ops(Relu, false), std::pair(Ops{"FusedConv2D"}, "activation=\"Relu\", " + sizes));
  EXPECT_EQ(ops(Tanh, true), std::pair(Ops{"FusedConv2D", "Tanh"}, "bias=true, " + sizes));
  EXPECT_EQ(ops(Tanh, false), std::pair(Ops{"Conv2D", "Tanh"}, std::string()));
}

TEST(FuseElementwise, MakesOneProgramOfATree) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output row = Placeholder(b, "row", kF32, {3});
  const Output difference = Sub(b, x, row);
  b.AddFetch("y",
             ClipByValue(b, Mul(b, Mul(b, difference, difference), Scalar(b, kF32, 0.5)), 0, 2));
  const Graph graph = RemoveDeadCode(FuseElementwise(Finished(b)));
  EXPECT_EQ(OpsOf(graph), (Ops{"FusedElementwise"}));
  const Node* fused = FindNode(graph, "FusedElementwise");
  EXPECT_EQ(fused->attributes.Get("program", std::string()),
            "Sub i0 i1; Mul t0 t0; Mul t1 0.5; ClipByValue t2 0 2");
  EXPECT_EQ(graph.NameOf(fused->inputs[1]), "row");
}

TEST(FuseElementwise, StopsAtOtherShapesOtherUsersAndFetches) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output column = Placeholder(b, "column", kF32, {4, 1});
  const Output shifted = Add(b, Exp(b, x), Exp(b, column));  // the kernel cannot read a column
  const Output kept = Neg(b, Square(b, shifted));
  b.AddFetch("kept", kept);
  b.AddFetch("y", Add(b, Sqrt(b, kept), Sum(b, kept, {0})));
  const Graph graph = FuseElementwise(Finished(b));
  EXPECT_EQ(OpsOf(graph),
            (Ops{"Exp", "Exp", "Add", "FusedElementwise", "Sum", "FusedElementwise"}));
}

TEST(Optimize, LeavesNamesUnique) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3});
  const Output y = Mul(b, Add(b, x, Const(b, Tensor::Of<float>({2, 1}, {2, 2}))),
                       Const(b, Tensor::Of<float>({3}, {3, 3, 3})));
  b.AddFetch("y", Mean(b, y, {}));
  auto graph = Optimize(Finished(b), AddOnly);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::set<std::string> names;
  for (const Node& node : graph->nodes()) EXPECT_TRUE(names.insert(node.name).second) << node.name;
}

}  // namespace
}  // namespace tfjob::graph
