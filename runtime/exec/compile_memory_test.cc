// Tests that programs that do not fit into memory are refused before memory is allocated.
#include <gtest/gtest.h>

#include "runtime/base/env.h"
#include "runtime/exec/program.h"
#include "runtime/graph/ops.h"
#include "tests/sanitized.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;
using variables::VariableStore;

constexpr DType kF32 = DType::kFloat32;

TEST(Compile, RefusesMoreThanTheMachineHas) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {});
  b.AddFetch("y", BroadcastTo(b, x, {1 << 20, 1 << 20}));
  b.AddFetch("z", Exp(b, x));
  VariableStore store;
  const Status status = Compile(b.graph(), store, CpuDevice()).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_NE(Message(status).find("The largest tensors: BroadcastTo float32[1048576,1048576] "
                                 "(4398046511104 bytes), Exp float32[] ("),
            std::string_view::npos)
      << status;
}

TEST(Compile, RefusesVariablesAndValuesThatDoNotFitTogether) {
  // The memory of a new variable is not in use yet, but AddressSanitizer writes its own record of
  // it.
  if (kSanitized) GTEST_SKIP() << "would use gigabytes";
  const int64_t most = AvailableMemory() / 4 / 10 * 6;  // elements in six tenths of the memory
  Builder b;
  VariableStore store;
  ASSERT_EQ(store.Create("table", kF32, {most}, variables::Kind::kTrainable).status(), OkStatus());
  b.AddFetch("y", Exp(b, ReadVariable(b, "table", kF32, {most})));
  const Status status = Compile(b.graph(), store, CpuDevice()).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_NE(Message(status).find(StrCat("Exp float32[", most, "] (")), std::string_view::npos)
      << status;
  EXPECT_NE(Message(status).find(StrCat("table float32[", most, "] (", 4 * most, " bytes)")),
            std::string_view::npos)
      << status;
}

}  // namespace
}  // namespace tfjob::exec
