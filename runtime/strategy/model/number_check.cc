#include "runtime/strategy/model/number_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/optimizer/finite.h"
#include "runtime/state/run_failure.h"

namespace tfjob::strategy {
namespace {

// No variable and no gradient has a half type.
bool FiniteBytes(DType dtype, const void* data, size_t count, ThreadPool* pool) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  return optimizer::AllFinite(dtype, {bytes, count * SizeOf(dtype)}, pool);
}

// Skips the padding between rows, whose content is arbitrary.
bool FiniteRows(const variables::Variable& variable, ThreadPool* pool) {
  if (!variable.runtime().immediate()) {
    const Tensor value = variable.ToTensor();
    return FiniteBytes(value.dtype(), value.bytes().data(),
                       static_cast<size_t>(value.num_elements()), pool);
  }
  const size_t size = SizeOf(variable.dtype());
  const size_t count = variable.num_bytes() / size;
  if (variable.dense()) return FiniteBytes(variable.dtype(), variable.data(), count, pool);
  const auto cols = static_cast<size_t>(variable.shape().dim(-1));
  const size_t stride = static_cast<size_t>(variable.row_stride()) * size;
  const auto* row = static_cast<const std::byte*>(variable.data());
  for (size_t done = 0; done < count; done += cols, row += stride) {
    if (!FiniteBytes(variable.dtype(), row, cols, nullptr)) return false;
  }
  return true;
}

bool FiniteRow(const variables::Variable& variable, int64_t index) {
  const size_t size = SizeOf(variable.dtype());
  const auto cols = static_cast<size_t>(variable.shape().dim(-1));
  const auto row = static_cast<size_t>(index);
  if (!variable.runtime().immediate()) {
    Tensor value(variable.dtype(), {variable.shape().dim(-1)});
    return variable.CopyOut(row * cols * size, value.bytes()).ok() &&
           FiniteBytes(variable.dtype(), value.bytes().data(), cols, nullptr);
  }
  const size_t stride = static_cast<size_t>(variable.row_stride()) * size;
  return FiniteBytes(variable.dtype(),
                     static_cast<const std::byte*>(variable.data()) + row * stride, cols, nullptr);
}

constexpr char kAdvice[] =
    ": lower optimizer.learning_rate, clip the gradients (optimizer.global_clipnorm), or look at "
    "the data; on_non_finite: skip leaves out such batches";

}  // namespace

NumberCheck::NumberCheck(config::OnNonFinite rule, std::string task,
                         const std::vector<state::Variable>& variables, ThreadPool* pool)
    : rule_(rule),
      task_(std::move(task)),
      variables_(variables),
      pool_(pool),
      first_(variables.size()) {}

void NumberCheck::Begin() {
  first_ = variables_.size();
  updated_ = false;
  refused_.clear();
}

bool NumberCheck::Contribution(size_t v, std::span<const std::byte> contribution) {
  return CheckedContribution(
      v, !enabled() || optimizer::AllFinite(variables_[v].dtype, contribution, pool_));
}

bool NumberCheck::CheckedContribution(size_t v, bool finite) {
  if (!enabled()) return true;
  if (!finite) first_ = std::min(first_, v);
  return first_ == variables_.size();
}

void NumberCheck::Updated(size_t v, const variables::Variable& variable) {
  if (!enabled() || first_ < variables_.size() || FiniteRows(variable, pool_)) return;
  first_ = v;
  updated_ = true;
}

void NumberCheck::UpdatedRows(size_t v, const variables::Variable& variable,
                              std::span<const int64_t> indices) {
  if (!enabled() || first_ < variables_.size()) return;
  for (const int64_t index : indices) {
    if (index < 0) return;
    if (FiniteRow(variable, index)) continue;
    first_ = v;
    updated_ = true;
    return;
  }
}

std::string NumberCheck::Culprit(double loss) const {
  if (std::isnan(loss)) return "the loss is NaN";
  if (std::isinf(loss)) return "the loss is infinite";
  if (!refused_.empty()) return refused_;
  const std::string& name = variables_[first_].name;
  if (updated_) return StrCat(name, " contains NaN or infinity after its update");
  const bool gradient = variables_[first_].update == state::Update::kGradient;
  return StrCat("the ", gradient ? "gradient" : "new value", " of ", name,
                " contains NaN or infinity");
}

StatusOr<bool> NumberCheck::Verdict(double loss, int64_t step) {
  if (!enabled()) return true;
  if (std::isfinite(loss) && first_ == variables_.size() && refused_.empty()) {
    skipped_in_a_row_ = 0;
    return true;
  }
  const std::string where = StrCat(task_, task_.empty() ? "" : ", ", "step ", step, ": ");
  if (!skips()) return state::RunFailure(StrCat(where, Culprit(loss), kAdvice));
  if (++skipped_in_a_row_ <= kMaxSkippedInARow) return false;
  return state::RunFailure(StrCat(where, Culprit(loss), ", as in the ", kMaxSkippedInARow,
                                  " batches before, which were skipped: the variables are "
                                  "damaged, not the data; lower optimizer.learning_rate and go on "
                                  "from an older checkpoint"));
}

}  // namespace tfjob::strategy
