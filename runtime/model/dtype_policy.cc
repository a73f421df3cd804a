#include "runtime/model/dtype_policy.h"

#include <array>

namespace tfjob::model {
namespace {

struct PolicyEntry {
  DTypePolicy policy;
  std::string_view name;
  DType compute;
};

constexpr std::array<PolicyEntry, 3> kPolicies = {{
    {DTypePolicy::kFloat32, "float32", DType::kFloat32},
    {DTypePolicy::kMixedBFloat16, "mixed_bfloat16", DType::kBFloat16},
    {DTypePolicy::kMixedFloat16, "mixed_float16", DType::kFloat16},
}};

const PolicyEntry& EntryOf(DTypePolicy policy) {
  for (const PolicyEntry& entry : kPolicies) {
    if (entry.policy == policy) return entry;
  }
  return kPolicies[0];
}

}  // namespace

std::string_view Name(DTypePolicy policy) {
  return EntryOf(policy).name;
}

std::optional<DTypePolicy> ParseDTypePolicy(std::string_view name) {
  for (const PolicyEntry& entry : kPolicies) {
    if (entry.name == name) return entry.policy;
  }
  return std::nullopt;
}

DType ComputeType(DTypePolicy policy) {
  return EntryOf(policy).compute;
}

}  // namespace tfjob::model
