// Tests which Scans are divided by rows, and how. scan_test.cc tests the results.
#include "runtime/exec/scan_rows.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/graph/ops.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;
using graph::ScanBuilder;

constexpr DType kF32 = DType::kFloat32;
constexpr int64_t kSteps = 4, kRows = 6, kColumns = 3;

// The values that a step of the loop can use.
struct Values {
  Output state, x, kept, w, bias, scale;
};
using Step = std::function<Output(Builder& body, const Values& values)>;

graph::Graph Loop(const Step& step) {
  Builder b;
  ScanBuilder scan(b, kSteps);
  const auto input = [&](const char* name, Shape shape) {
    return Placeholder(b, name, kF32, std::move(shape));
  };
  const Values values = {.state = scan.State(input("state", {kRows, kColumns})),
                         .x = scan.Sequence(input("x", {kSteps, kRows, kColumns})),
                         .kept = scan.Invariant(input("kept", {kRows, kColumns})),
                         .w = scan.Invariant(input("w", {kColumns, kColumns})),
                         .bias = scan.Invariant(input("bias", {kColumns})),
                         .scale = scan.Sequence(input("scale", {kSteps, 1, 1}))};
  scan.SetNext(0, step(scan.body(), values));
  scan.Stack(scan.body().ok() ? values.state : Output());
  scan.Finish();
  EXPECT_TRUE(b.ok()) << b.status();
  return *std::move(b).Finish();
}

graph::ScanForm FormOf(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op == "Scan") return *graph::ScanFormOf(node.attributes);
  }
  return {};
}

struct Case {
  std::string name;
  Step step;
  std::string invariants;  // for kept, w and bias: r (by row) or w (whole); "": not divided
};

std::vector<Case> Cases() {
  return {
      {"a product with weights",
       [](Builder& b, const Values& v) { return Add(b, v.x, MatMul(b, v.state, v.w)); }, "www"},
      {"a product with transposed weights",
       [](Builder& b, const Values& v) { return MatMul(b, v.state, v.w, false, true); }, "www"},
      {"bias, activation and a mask",
       [](Builder& b, const Values& v) {
         return Mul(b, Tanh(b, BiasAdd(b, v.state, v.bias)), v.kept);
       },
       "rww"},
      {"a scalar and a row for all",
       [](Builder& b, const Values& v) {
         return Mul(b, Add(b, v.state, Scalar(b, kF32, 2)), v.scale);
       },
       "www"},
      {"a selection",
       [](Builder& b, const Values& v) {
         return Select(b, Greater(b, v.x, Scalar(b, kF32, 0)), v.x, v.state);
       },
       "www"},
      {"a selection of zeros",
       [](Builder& b, const Values& v) {
         const Output zeros = Fill(b, kF32, {kRows, kColumns}, 0);
         return Select(b, Greater(b, v.x, Scalar(b, kF32, 0)), zeros, v.state);
       },
       "www"},
      {"a value of invariants only",
       [](Builder& b, const Values& v) { return MatMul(b, v.state, Tanh(b, v.w)); }, "www"},
      {"a sum over the rows",
       [](Builder& b, const Values& v) { return Add(b, v.state, Sum(b, v.x, {0})); }, ""},
      {"a product over the rows",
       [](Builder& b, const Values& v) {
         return MatMul(b, v.state, MatMul(b, v.x, v.state, true, false));
       },
       ""},
      {"rows in another order",
       [](Builder& b, const Values& v) {
         return Concat(
             b, {Slice(b, v.state, {1, 0}, {5, kColumns}), Slice(b, v.x, {0, 0}, {1, kColumns})},
             0);
       },
       ""},
      {"an invariant read by row and as a whole",
       [](Builder& b, const Values& v) {
         const Output total = Sum(b, v.kept, {0});
         return Add(b, Mul(b, v.state, v.kept), total);
       },
       ""},
      {"rows of a value of invariants",
       [](Builder& b, const Values& v) { return Mul(b, v.state, Tanh(b, v.kept)); }, ""},
      {"a state that no row changes", [](Builder& b, const Values& v) { return Tanh(b, v.kept); },
       ""},
  };
}

TEST(ScanRows, FindsWhatHasRows) {
  for (const Case& c : Cases()) {
    const graph::Graph graph = Loop(c.step);
    const auto rows = FindScanRows(FormOf(graph));
    ASSERT_EQ(rows.has_value(), !c.invariants.empty()) << c.name;
    if (!rows) continue;
    EXPECT_EQ(rows->rows, kRows) << c.name;
    EXPECT_EQ(rows->sequences, (std::vector<bool>{true, false})) << c.name;
    std::string invariants;
    for (const bool divided : rows->invariants) invariants += divided ? 'r' : 'w';
    EXPECT_EQ(invariants, c.invariants) << c.name;
  }
}

TEST(ScanRows, ShortensOnlyWhatHasRows) {
  const graph::Graph graph = Loop([](Builder& b, const Values& v) {
    return Mul(b, Add(b, MatMul(b, v.state, v.w), v.x), v.kept);
  });
  const graph::ScanForm form = FormOf(graph);
  const graph::Graph body = BodyOfRows(*form.body, *FindScanRows(form), 2);
  std::string shapes;
  for (const graph::Node& node : body.nodes()) {
    shapes += node.name + node.outputs[0].shape.ToString() + " ";
    if (const Shape* shape = node.attributes.Find<Shape>("shape")) {
      EXPECT_EQ(*shape, node.outputs[0].shape) << node.name;
    }
  }
  EXPECT_EQ(shapes,
            "state_0[2,3] sequence_0[2,3] invariant_0[2,3] invariant_1[3,3] invariant_2[3] "
            "sequence_1[1,1] MatMul[2,3] Add[2,3] Mul[2,3] ");
}

TEST(ScanRows, DividesOnlyWhatIsWorthAThread) {
  constexpr size_t kSmall = 1 << 20, kLarge = 16 << 20;
  const auto loops = [](int64_t rows, double work, size_t weights) {
    ScanRows scan;
    scan.rows = rows;
    scan.work = work;
    return LoopsOf(scan, weights);
  };
  EXPECT_EQ(loops(32, 1e7, kSmall), 2);
  EXPECT_EQ(loops(31, 1e7, kSmall), 1);
  EXPECT_EQ(loops(100, 1e7, kSmall), 6);
  EXPECT_EQ(loops(100, 1e4, kSmall), 1);
  EXPECT_EQ(loops(1 << 20, 1e7, kSmall), 32);
  EXPECT_EQ(loops(32, 1e7, kLarge), 1);
  EXPECT_EQ(loops(128, 1e7, kLarge), 2);
  EXPECT_EQ(loops(0, 1e7, kSmall), 1);
}

}  // namespace
}  // namespace tfjob::exec
