// Defines how workers divide the rows of a batch.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tfjob::data {

// The rows [begin, begin + size) of a batch.
struct Part {
  int64_t begin = 0;
  int64_t size = 0;
  bool operator==(const Part&) const = default;
};

// Splits `rows` rows into consecutive parts, one per worker. Their sizes differ by at most one, and
// the first workers have the larger parts. A part may be empty.
inline Part PartOf(int64_t rows, int64_t worker, int64_t workers) {
  const int64_t least = rows / workers, larger = rows % workers;
  return {worker * least + std::min(worker, larger), least + (worker < larger ? 1 : 0)};
}

}  // namespace tfjob::data
