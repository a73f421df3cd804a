#include "runtime/exec/schedule.h"

#include <gtest/gtest.h>

#include "runtime/graph/builder.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;

constexpr DType kF32 = DType::kFloat32;

std::vector<std::string> Names(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (int id : Schedule(graph)) names.push_back(graph.node(id).name);
  return names;
}

using Strings = std::vector<std::string>;

TEST(Schedule, PutsAWriteRightBehindWhatItWaitsFor) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output gradient = Neg(b, x);
  Exp(b, x);
  Square(b, x);
  AssignAdd(b, "v", gradient);
  EXPECT_EQ(Names(b.graph()), (Strings{"x", "Neg", "v/AssignAdd", "Exp", "Square"}));
}

TEST(Schedule, WritesAfterTheUsersOfEarlierReads) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output v = ReadVariable(b, "v", kF32, {2});
  Exp(b, x);
  Mul(b, v, x);
  Square(b, x);
  AssignAdd(b, "v", x);
  ReadVariable(b, "v", kF32, {2});
  EXPECT_EQ(Names(b.graph()), (Strings{"x", "v", "Exp", "Mul", "v/AssignAdd", "Square", "v_1"}));
}

TEST(Schedule, KeepsTheOrderOfWritesToOneVariable) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output y = Exp(b, x);
  Assign(b, "v", y);
  AssignAdd(b, "v", x);
  Assign(b, "w", x);
  EXPECT_EQ(Names(b.graph()), (Strings{"x", "w/Assign", "Exp", "v/Assign", "v/AssignAdd"}));
}

TEST(Schedule, WritesNothingBeforeTheLastIdIsChecked) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output table = Placeholder(b, "table", kF32, {4, 2});
  const Output ids = Placeholder(b, "ids", DType::kInt64, {3});
  const Output rows = Gather(b, table, ids);
  Exp(b, rows);
  AssignAdd(b, "v", x);
  EXPECT_EQ(Names(b.graph()), (Strings{"x", "table", "ids", "Gather", "v/AssignAdd", "Exp"}));
}

// A write waits for checks that follow it in the graph, and its readers wait for the write.
TEST(Schedule, WritesNothingBeforeAnyLaterIdIsChecked) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  AssignAdd(b, "v", x);
  Neg(b, ReadVariable(b, "v", kF32, {2}));
  const Output table = Placeholder(b, "table", kF32, {4, 2});
  const Output ids = Placeholder(b, "ids", DType::kInt64, {3});
  const Output rows = Gather(b, table, ids);
  AssignAdd(b, "v", x);
  Exp(b, rows);
  EXPECT_EQ(Names(b.graph()), (Strings{"x", "table", "ids", "Gather", "v/AssignAdd", "v", "Neg",
                                       "v/AssignAdd_1", "Exp"}));
}

TEST(Schedule, WritesTheTableBeforeItsRowsAreRead) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 2});
  const Output ids = Placeholder(b, "ids", DType::kInt64, {3});
  AssignAdd(b, "table", x);
  const Output rows = Gather(b, ReadVariable(b, "table", kF32, {4, 2}), ids);
  Exp(b, rows);
  AssignAdd(b, "table", x);
  EXPECT_EQ(Names(b.graph()), (Strings{"x", "table/AssignAdd", "ids", "table", "Gather",
                                       "table/AssignAdd_1", "Exp"}));
}

TEST(Schedule, WritesNothingBeforeALoopChecksItsIds) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output table = Placeholder(b, "table", kF32, {4, 2});
  const Output ids = Placeholder(b, "ids", DType::kInt64, {5, 3});
  graph::ScanBuilder scan(b, 5);
  scan.Stack(Gather(scan.body(), scan.Invariant(table), scan.Sequence(ids)));
  Exp(b, scan.Finish().outputs[0]);
  AssignAdd(b, "v", x);
  EXPECT_EQ(Names(b.graph()), (Strings{"x", "table", "ids", "Scan", "v/AssignAdd", "Exp"}));
}

}  // namespace
}  // namespace tfjob::exec
