// Lists the hyper-parameters of all optimizers in one table, which is used for validation, for
// attributes and for JSON. Private to this package.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "runtime/optimizer/optimizer.h"

namespace tfjob::optimizer::internal {

enum class Range { kAny, kNotNegative, kBelowOne, kUpToOne, kNotPositive };

struct HyperParameter {
  std::string_view name;  // Keras' name
  std::variant<double Optimizer::*, bool Optimizer::*, int64_t Optimizer::*> member;
  unsigned kinds;  // one bit per Kind: 1 << kind
  Range range = Range::kAny;
  // Whether attributes and JSON omit the hyper-parameter if it has the default value in Optimizer.
  bool only_if_set = false;
};

inline constexpr unsigned kEveryKind = (1u << kKindCount) - 1;

// Returns the table, in which the learning rate comes first. The schedule and
// exclude_from_weight_decay are not included.
std::span<const HyperParameter> HyperParameters();

inline bool Uses(const Optimizer& optimizer, const HyperParameter& parameter) {
  return (parameter.kinds >> static_cast<unsigned>(optimizer.kind) & 1) != 0;
}

}  // namespace tfjob::optimizer::internal
