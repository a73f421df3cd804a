#include "runtime/model/layer/orthogonal.h"

#include <cmath>
#include <cstddef>

namespace tfjob::model {
namespace {

double Dot(std::span<const double> a, std::span<const double> b) {
  // Use several independent sums, so that additions need not wait for each other.
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// Subtracts the projections of `row` onto the orthonormal rows `before`.
void Project(std::span<double> row, std::span<const double> before) {
  for (size_t at = 0; at < before.size(); at += row.size()) {
    const std::span<const double> other = before.subspan(at, row.size());
    const double share = Dot(row, other);
    for (size_t i = 0; i < row.size(); ++i) row[i] -= share * other[i];
  }
}

}  // namespace

void Orthonormalize(std::span<double> matrix, int64_t count) {
  if (matrix.empty()) return;
  const size_t length = matrix.size() / static_cast<size_t>(count);
  for (size_t at = 0; at < matrix.size(); at += length) {
    const std::span<double> row = matrix.subspan(at, length);
    const double whole = Dot(row, row);
    Project(row, matrix.first(at));
    // If little of the row remains, rounding errors make up much of this remainder; a second
    // projection removes them.
    if (Dot(row, row) < 0.5 * whole) Project(row, matrix.first(at));
    const double norm = std::sqrt(Dot(row, row));
    for (double& element : row) element = norm > 0 ? element / norm : 0;
  }
}

}  // namespace tfjob::model
