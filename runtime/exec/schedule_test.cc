#include "runtime/exec/schedule.h"

#include <gtest/gtest.h>

#include "runtime/graph/builder.h"
#include "runtime/graph/ops.h"

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

}  // namespace
}  // namespace tfjob::exec
