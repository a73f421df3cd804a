// Compares updates by rows with the same updates by dense gradients. Both must have the same
// results.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/kernels/stream.h"
#include "runtime/optimizer/apply_kernel.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::optimizer {
namespace {

constexpr int64_t kRows = 300, kCols = 70;

std::vector<Optimizer> Optimizers() {
  std::vector<Optimizer> all;
  const auto add = [&](Kind kind) -> Optimizer& {
    return all.emplace_back(Optimizer::Default(kind));
  };
  for (int kind = 0; kind < kKindCount; ++kind) add(static_cast<Kind>(kind));
  add(Kind::kSgd).momentum = 0.9;
  add(Kind::kSgd).weight_decay = 0.1;
  add(Kind::kRmsprop).momentum = 0.5;
  all.back().centered = true;
  add(Kind::kAdam).amsgrad = true;
  add(Kind::kAdagrad).use_ema = true;
  all.back().ema_overwrite_frequency = 2;
  add(Kind::kAdagrad).gradient_accumulation_steps = 2;
  return all;
}

struct Table {
  std::vector<float> value;
  std::vector<std::vector<float>> slots;

  explicit Table(const Optimizer& optimizer) : value(kRows * kCols) {
    for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(std::cos(i));
    for (const Slot& slot : Slots(optimizer))
      slots.emplace_back(value.size(), static_cast<float>(slot.initial_value));
  }
  std::vector<std::span<float>> Spans() { return {slots.begin(), slots.end()}; }
  bool operator==(const Table&) const = default;
};

// Returns the rows that a step updates: every third row, starting with a different row in each
// step.
std::vector<int64_t> RowsOfStep(int64_t step) {
  std::vector<int64_t> rows;
  for (int64_t row = step % 3; row < kRows; row += 3) rows.push_back(row);
  return rows;
}

std::vector<float> ValuesOf(const std::vector<int64_t>& rows, int64_t step) {
  std::vector<float> values;
  for (int64_t row : rows) {
    for (int64_t c = 0; c < kCols; ++c)
      values.push_back(static_cast<float>(std::sin(row * 3.0 + c + 0.5 * step)));
  }
  return values;
}

void ApplyDense(const Optimizer& optimizer, int64_t step, Table& table, kernels::Stream& stream) {
  const std::vector<int64_t> rows = RowsOfStep(step);
  const std::vector<float> values = ValuesOf(rows, step);
  std::vector<float> gradient(kRows * kCols);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(values.begin() + static_cast<int64_t>(i) * kCols, kCols,
                gradient.begin() + rows[i] * kCols);
  Apply(optimizer, step, std::span<float>(table.value), std::span<const float>(gradient),
        std::span<const std::span<float>>(table.Spans()), stream, 0.5f);
}

// Updates the table by rows. The table is the part of a larger variable that starts at the
// variable's row `first`.
void ApplyByRows(const Optimizer& optimizer, int64_t step, Table& table, kernels::Stream& stream,
                 int64_t first = 0) {
  std::vector<int64_t> rows = RowsOfStep(step);
  const std::vector<float> values = ValuesOf(rows, step);
  for (int64_t& row : rows) row += first;
  ApplyRows(optimizer, step, std::span<float>(table.value),
            {.indices = rows, .values = values, .first_index = first, .cols = kCols},
            std::span<const std::span<float>>(table.Spans()), stream, 0.5f);
}

TEST(ApplyRows, TakesTheStepsOfDenseGradients) {
  ThreadPool pool("rows", 2);
  for (const Optimizer& optimizer : Optimizers()) {
    Table dense(optimizer), rows(optimizer), parallel(optimizer), part(optimizer);
    kernels::Stream one, many(&pool);
    for (int64_t step = 0; step < 5; ++step) {
      ApplyDense(optimizer, step, dense, one);
      ApplyByRows(optimizer, step, rows, one);
      ApplyByRows(optimizer, step, parallel, many);
      ApplyByRows(optimizer, step, part, one, 1000);
    }
    for (size_t i = 0; i < dense.value.size(); ++i)
      ASSERT_NEAR(dense.value[i], rows.value[i], 1e-6) << Name(optimizer.kind) << " " << i;
    EXPECT_EQ(rows, parallel) << Name(optimizer.kind);
    EXPECT_EQ(rows, part) << Name(optimizer.kind);
  }
}

TEST(ApplyRows, LazyOptimizersLeaveOtherRowsAndTheirSlots) {
  for (Optimizer optimizer : Optimizers()) {
    if (optimizer.use_ema || optimizer.gradient_accumulation_steps > 0) continue;
    Table eager(optimizer), lazy(optimizer);
    kernels::Stream stream;
    ApplyByRows(optimizer, 0, eager, stream);
    ApplyByRows(optimizer, 0, lazy, stream);
    const Table before = lazy;
    ApplyByRows(optimizer, 1, eager, stream);
    optimizer.lazy = true;
    ApplyByRows(optimizer, 1, lazy, stream);
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const auto at = static_cast<size_t>(i);
      if (i / kCols % 3 == 1) {
        ASSERT_EQ(lazy.value[at], eager.value[at]) << Name(optimizer.kind);
      } else {
        ASSERT_EQ(lazy.value[at], before.value[at]) << Name(optimizer.kind);
        for (size_t s = 0; s < lazy.slots.size(); ++s)
          ASSERT_EQ(lazy.slots[s][at], before.slots[s][at]) << Name(optimizer.kind);
      }
    }
    optimizer.lazy = false;
    if (KeepsRows(optimizer)) {
      EXPECT_EQ(eager, lazy) << Name(optimizer.kind);
    }
    if (optimizer.kind == Kind::kAdam) {
      EXPECT_NE(eager, lazy) << "momentum goes on";
    }
  }
}

TEST(ApplyRows, LazyOptimizersDoNotGoWithWhatChangesAllRows) {
  Optimizer optimizer = Optimizer::Default(Kind::kAdam);
  optimizer.lazy = true;
  EXPECT_EQ(Validate(optimizer), OkStatus());
  EXPECT_EQ(FromAttributes(ToAttributes(optimizer)).value(), optimizer);
  optimizer.use_ema = true;
  EXPECT_EQ(Message(Validate(optimizer)),
            "optimizer: lazy is true, but use_ema changes all rows of a variable: set only one of "
            "the two");
  optimizer.use_ema = false;
  optimizer.gradient_accumulation_steps = 2;
  EXPECT_NE(Validate(optimizer), OkStatus());
}

// Runs the op on a table with padded rows. Returns the updated table without padding.
StatusOr<Table> RunKernel(const Optimizer& optimizer, std::vector<int64_t> indices,
                          const std::vector<float>& values) {
  constexpr int64_t kStride = kCols + 10;
  Table table(optimizer);
  const kernels::Operand padded{DType::kFloat32, Shape({kRows, kCols}), kStride};
  const auto count = static_cast<int64_t>(indices.size());
  kernels::KernelRequest request{"ApplyOptimizerRows", ToAttributes(optimizer), {}, {}};
  request.inputs = {kernels::Operand::Dense(DType::kInt64, Shape()),
                    kernels::Operand::Dense(DType::kInt64, {count}),
                    kernels::Operand::Dense(DType::kFloat32, {count, kCols})};
  request.inputs.resize(4 + table.slots.size(), padded);
  request.outputs.resize(1 + table.slots.size(), padded);
  ASSIGN_OR_RETURN(auto kernel, CpuKernels().Prepare(request));
  const auto at = [](int64_t i) { return static_cast<size_t>(i / kCols * kStride + i % kCols); };
  std::vector<std::vector<float>*> parts{&table.value};
  for (auto& slot : table.slots) parts.push_back(&slot);
  std::vector<std::vector<float>> memory(parts.size(), std::vector<float>(kRows * kStride, -7));
  const int64_t step = 0;
  std::vector<const void*> inputs = {&step, indices.data(), values.data()};
  std::vector<void*> outputs;
  for (size_t p = 0; p < parts.size(); ++p) {
    for (int64_t i = 0; i < kRows * kCols; ++i)
      memory[p][at(i)] = (*parts[p])[static_cast<size_t>(i)];
    inputs.push_back(memory[p].data());
    outputs.push_back(memory[p].data());
  }
  kernels::Stream stream;
  kernel->Run(inputs.data(), outputs.data(), nullptr, stream);
  RETURN_IF_ERROR(stream.TakeStatus());
  for (size_t p = 0; p < parts.size(); ++p) {
    for (int64_t i = 0; i < kRows * kCols; ++i)
      (*parts[p])[static_cast<size_t>(i)] = memory[p][at(i)];
    EXPECT_EQ(memory[p][kCols], -7) << "padding";
  }
  return table;
}

TEST(ApplyOptimizerRows, UpdatesPaddedRowsUpToTheLastIndex) {
  for (const Optimizer& optimizer : Optimizers()) {
    std::vector<int64_t> indices = RowsOfStep(0);
    std::vector<float> values = ValuesOf(indices, 0);
    Table expected(optimizer);
    kernels::Stream stream;
    ApplyRows(optimizer, 0, std::span<float>(expected.value),
              {.indices = indices, .values = values, .cols = kCols},
              std::span<const std::span<float>>(expected.Spans()), stream);
    indices.insert(indices.end(), {-1, -1});
    values.resize(indices.size() * kCols, 0);
    const StatusOr<Table> table = RunKernel(optimizer, indices, values);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(*table, expected) << Name(optimizer.kind);
  }
}

TEST(ApplyOptimizerRows, FailsForARowThatTheVariableLacks) {
  const auto table = RunKernel(Optimizer::Default(Kind::kAdam), {0, kRows}, ValuesOf({0, 1}, 0));
  EXPECT_EQ(Message(table.status()), "the gradient has a row 300: expected 0 to 299");
}

}  // namespace
}  // namespace tfjob::optimizer
