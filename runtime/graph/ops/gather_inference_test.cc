// Tests the type inference of ops that access rows by index.
#include "runtime/graph/ops.h"
#include "runtime/graph/ops/inference_cases.h"

namespace tfjob::graph {
namespace {

TEST(Inference, OfOpsOnRows) {
  const Attributes segments{{"num_segments", int64_t{9}}};
  const std::string no_index = "refused: expected one int32 or int64 index per row";
  const std::string no_rows = "refused: expected rows of a float type, a matrix";
  Check({
      {"Gather", {F32({9, 4}), I32({5})}, {}, "float32[5,4]"},
      {"Gather", {Bytes({9, 4}), I64({0})}, {}, "uint8[0,4]"},
      {"Gather", {F32({9}), I32({5})}, {}, "refused: expected a matrix"},
      {"Gather", {F32({9, 4}), F32({5})}, {}, "refused: expected a list of int32 or int64 indices"},
      {"Gather",
       {F32({9, 4}), I32({5, 1})},
       {},
       "refused: expected a list of int32 or int64 indices"},
      {"DeduplicateIndexedSlices", {I32({5}), F32({5, 4})}, {}, "int64[5] float32[5,4]"},
      {"DeduplicateIndexedSlices", {I32({4}), F32({5, 4})}, {}, no_index},
      {"DeduplicateIndexedSlices", {F32({5}), F32({5, 4})}, {}, no_index},
      {"DeduplicateIndexedSlices", {I32({5}), I32({5, 4})}, {}, no_rows},
      {"DeduplicateIndexedSlices", {I32({5}), F32({5})}, {}, no_rows},
      {"UnsortedSegmentSum", {F64({5, 4}), I64({5})}, segments, "float64[9,4]"},
      {"UnsortedSegmentSum", {F64({5, 4}), I64({4})}, segments, no_index},
      {"UnsortedSegmentSum",
       {F64({5, 4}), I64({5})},
       {},
       "refused: expected the attribute num_segments, at least 0"},
      {"ApplyOptimizerRows", {I64({5}), F32({5, 4}), I64()}, {{"variable", Text("w")}}, ""},
      {"ApplyOptimizerRows",
       {I32({5}), F32({5, 4}), I64()},
       {{"variable", Text("w")}},
       "refused: expected one int64 index per row of the values"},
      {"ApplyOptimizerRows",
       {I64({5}), F32({5}), I64()},
       {{"variable", Text("w")}},
       "refused: expected values of float32 or float64, a matrix"},
      {"ApplyOptimizerRows",
       {I64({5}), F32({5, 4}), I32()},
       {{"variable", Text("w")}},
       "refused: expected the step as int64[]"},
  });
}

TEST(BuilderFunctions, GatherAlongTheFirstAxisWithIndicesOfAnyShape) {
  Builder b;
  const Output indices = Placeholder(b, "indices", DType::kInt32, {2, 3});
  const std::pair<Shape, Shape> cases[] = {
      {{9, 4}, {2, 3, 4}}, {{9}, {2, 3}}, {{9, 4, 5}, {2, 3, 4, 5}}};
  for (const auto& [table, rows] : cases) {
    const Output params = Placeholder(b, StrCat("table", table.rank()), kF32, table);
    EXPECT_EQ(b.shape(Gather(b, params, indices)), rows);
  }
  EXPECT_TRUE(b.ok()) << b.status();
  Gather(b, Scalar(b, kF32, 1), indices);
  EXPECT_FALSE(b.ok());
}

}  // namespace
}  // namespace tfjob::graph
