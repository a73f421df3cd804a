// Tests copies of variables while programs write the variables.
#include <gtest/gtest.h>

#include "runtime/exec/program.h"
#include "runtime/graph/ops.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;
using variables::ValueCopy;
using variables::Variable;

constexpr DType kF32 = DType::kFloat32;

class VariableCopyTest : public testing::Test {
 protected:
  Variable* Create(const char* name) {
    Variable* variable = *store_.Create(name, kF32, {3}, variables::Kind::kTrainable);
    EXPECT_EQ(variable->FromTensor(Tensor::Of<float>({3}, {1, 2, 3})), OkStatus());
    return variable;
  }
  std::unique_ptr<Program> Compiled(Builder b, std::vector<std::string> announced = {}) {
    const auto graph = std::move(b).Finish();
    EXPECT_TRUE(graph.ok()) << graph.status();
    auto program = Compile(*graph, store_, CpuDevice(), {.announced = std::move(announced)});
    EXPECT_TRUE(program.ok()) << program.status();
    return *std::move(program);
  }
  static std::vector<float> Values(const Tensor& tensor) {
    return {tensor.data<float>().begin(), tensor.data<float>().end()};
  }

  variables::VariableStore store_;
  const Tensor to_{kF32, {3}};
};

TEST_F(VariableCopyTest, IsFinishedJustBeforeTheFirstWrite) {
  Variable* const v = Create("v");
  Builder b;
  b.AddFetch("before", Square(b, ReadVariable(b, "v", kF32, {3})));
  AssignAdd(b, "v", Fill(b, kF32, {3}, 10));
  const auto program = Compiled(std::move(b), {"before"});
  const std::shared_ptr<ValueCopy> copy = v->BeginCopy(to_);
  int announced = 0;
  ASSERT_EQ(program->Run({},
                         [&](int) {
                           ++announced;
                           EXPECT_FALSE(copy->finished()) << "v is only read so far";
                         }),
            OkStatus());
  EXPECT_EQ(announced, 1);
  EXPECT_TRUE(copy->finished());
  EXPECT_EQ(Values(to_), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(Values(v->ToTensor()), (std::vector<float>{11, 12, 13}));
}

TEST_F(VariableCopyTest, AVariableThatIsNotWrittenKeepsItsCopyWaiting) {
  Variable* const read = Create("read");
  Create("written");
  Builder b;
  Assign(b, "written", Square(b, ReadVariable(b, "read", kF32, {3})));
  const auto program = Compiled(std::move(b));
  const std::shared_ptr<ValueCopy> copy = read->BeginCopy(to_);
  ASSERT_EQ(program->Run({}), OkStatus());
  EXPECT_FALSE(copy->finished());
}

TEST_F(VariableCopyTest, AnOptimizersSlotsAreCopiedBeforeTheyAreWritten) {
  Create("v");
  Builder b;
  ApplyOptimizer(b, "v", Fill(b, kF32, {3}, 1), Placeholder(b, "step", DType::kInt64, {}),
                 ToAttributes(optimizer::Optimizer::Default(optimizer::Kind::kAdam)));
  const auto program = Compiled(std::move(b));
  const int64_t step = 0;
  ASSERT_EQ(program->Run(std::array{Feed::Of(step)}), OkStatus());
  Variable* const slot = store_.Find("v/Adam");
  ASSERT_NE(slot, nullptr);
  const std::vector<float> before = Values(slot->ToTensor());
  const std::shared_ptr<ValueCopy> copy = slot->BeginCopy(to_);
  ASSERT_EQ(program->Run(std::array{Feed::Of(step)}), OkStatus());
  EXPECT_TRUE(copy->finished());
  EXPECT_EQ(Values(to_), before);
  EXPECT_NE(Values(slot->ToTensor()), before);
}

TEST_F(VariableCopyTest, ProgramsNameWhatTheyWriteInItsOrder) {
  Variable* const a = Create("a");
  Variable* const z = Create("z");
  Create("read");
  Builder b;
  Assign(b, "z", ReadVariable(b, "read", kF32, {3}));
  Assign(b, "a", Square(b, ReadVariable(b, "z", kF32, {3})));
  EXPECT_EQ(Compiled(std::move(b))->written(), (std::vector<Variable*>{z, a}));
}

}  // namespace
}  // namespace tfjob::exec
