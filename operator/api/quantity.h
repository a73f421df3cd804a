// Represents Kubernetes quantities ("500m", "8Gi", "1.5", "2e3") as exact numbers, for summing
// resource requests.
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

// Parses a quantity. Any other text and a value above 2⁶³ units are InvalidArgument.
StatusOr<Quantity> ParseQuantity(std::string_view text);
// The sum is binary if each operand is binary or 0.
Quantity operator+(const Quantity& a, const Quantity& b);
// Prints a binary quantity that a binary suffix divides with that suffix ("12Gi"). Others are
// printed as a whole number, or with m, u or n.
std::string ToString(const Quantity& quantity);

}  // namespace tfjob::api
