// Kubernetes quantities ("500m", "8Gi", "1.5", "2e3") as exact numbers, for sums of resource requests.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::api {

struct Quantity {
  __int128 nanos = 0;   // 10⁻⁹
  bool binary = false;  // written with Ki, Mi, …

  bool operator==(const Quantity& other) const { return nanos == other.nanos; }
};

// InvalidArgument for anything else, and for more than 2⁶³ units.
StatusOr<Quantity> ParseQuantity(std::string_view text);
// The sum is binary when both sides are, or one is 0.
Quantity operator+(const Quantity& a, const Quantity& b);
// "12Gi" for binary ones that a binary suffix divides, else a whole number, else with m, u or n.
std::string ToString(const Quantity& quantity);

}  // namespace tfjob::api
