// Represents Kubernetes quantities ("500m", "8Gi", "1.5", "2e3") as exact numbers, so that resource
// requests can be summed.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::api {

struct Quantity {
  __int128 nanos = 0;   // in units of 10⁻⁹
  bool binary = false;  // written with Ki, Mi, …

  bool operator==(const Quantity& other) const { return nanos == other.nanos; }
};

// Parses a quantity. Returns InvalidArgument if the text is not a quantity, or if it has more than
// 18 digits, an exponent outside -9 to 18, or a value above 2⁶³ units. Rounds up to a whole number
// of nano-units.
StatusOr<Quantity> ParseQuantity(std::string_view text);
// Adds two quantities. The sum is binary if each operand is binary or 0.
Quantity operator+(const Quantity& a, const Quantity& b);
// Prints a quantity. A fraction gets the suffix m, u or n. A whole binary quantity gets the largest
// binary suffix that divides it ("12Gi"). Any other quantity is printed as a whole number.
std::string ToString(const Quantity& quantity);

}  // namespace tfjob::api
