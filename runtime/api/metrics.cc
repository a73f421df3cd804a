#include "runtime/api/metrics.h"

#include <algorithm>
#include <limits>
#include <ostream>

namespace tfjob::api {

bool Metrics::has(const std::string& name) const {
  return std::ranges::any_of(values_, [&](const auto& value) { return value.first == name; });
}

double Metrics::operator[](const std::string& name) const {
  for (const auto& [own, value] : values_) {
    if (own == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

Result<double> Metrics::At(const std::string& name) const {
  if (has(name)) return (*this)[name];
  if (values_.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "there is no metric \"" + name + "\": this task has no metrics");
  }
  std::string names;
  for (const auto& [own, value] : values_) names += (names.empty() ? "" : ", ") + own;
  return Status(StatusCode::kInvalidArgument,
                "there is no metric \"" + name + "\"; expected one of: " + names);
}

std::ostream& operator<<(std::ostream& out, const Metrics& metrics) {
  const char* separator = "";
  for (const auto& [name, value] : metrics.values()) {
    out << separator << name << "=" << value;
    separator = " ";
  }
  return out;
}

}  // namespace tfjob::api
