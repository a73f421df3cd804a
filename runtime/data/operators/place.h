// Defines a place, which identifies an example of one of several sources.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfjob::data {

struct Place {
  size_t source = 0;
  int64_t row = 0;
  bool operator==(const Place&) const = default;
};

}  // namespace tfjob::data
