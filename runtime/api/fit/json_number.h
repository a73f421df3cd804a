// Writes and reads numbers as JSON, which has none that are not finite. Private to this package.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/json.h"

namespace tfjob::api {

// Returns the number, or "nan", "inf" or "-inf".
inline Json NumberToJson(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

inline StatusOr<double> ReadNumber(const JsonField& field) {
  const StatusOr<std::string> text = field.String();
  if (!text.ok()) return field.Double();
  if (*text == "nan") return std::nan("");
  if (*text == "inf") return HUGE_VAL;
  if (*text == "-inf") return -HUGE_VAL;
  return field.Mismatch("a number, \"nan\", \"inf\" or \"-inf\"");
}

}  // namespace tfjob::api
