#include "runtime/strategy/model/updates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/strategy/test_tables.h"

namespace tfjob::strategy {
namespace {

TEST(UpdatesByRows, KeepsTheProgramsUsedLast) {
  const ModelDefinition definition = Pooled({.kind = optimizer::Kind::kAdam}, /*rows=*/true);
  const optimizer::Clipping clipping;
  const exec::Device device = exec::CpuDevice();
  variables::VariableStore store;
  ASSERT_EQ(CreateVariables(definition, store), OkStatus());
  const auto updates = *UpdatesByRows::Compile(definition, clipping, store, device);
  const auto program_for = [&](int64_t rows) {
    StatusOr<Updates*> program = updates->For([&](int) { return rows; });
    EXPECT_TRUE(program.ok()) << program.status();
    EXPECT_GE((*program)->rows_of(0), rows);
    EXPECT_LT((*program)->rows_of(0), std::max<int64_t>(2 * rows, kLength + 1));
    return *program;
  };

  const Updates* small = program_for(1);
  EXPECT_EQ(updates->size(), 1u);
  program_for(kLength * 2);
  EXPECT_EQ(program_for(1), small);
  program_for(kLength * 4);
  EXPECT_EQ(program_for(1), small);
  EXPECT_EQ(updates->size(), 3u);

  // A fourth program evicts the least recently used program, which is the one for two examples.
  Updates* large = program_for(kLength * 8);
  EXPECT_EQ(updates->size(), 3u);
  EXPECT_EQ(program_for(1), small);
  EXPECT_EQ(program_for(kLength * 8), large);
  program_for(kLength * 2);
  EXPECT_EQ(updates->size(), 3u);
}

}  // namespace
}  // namespace tfjob::strategy
