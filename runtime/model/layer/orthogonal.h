// Orthonormalizes the rows of a matrix, for the initializer Orthogonal.
#pragma once

#include <cstdint>
#include <span>

namespace tfjob::model {

// Replaces the `count` rows of `matrix`, one after another, with orthonormal rows that span the
// same space (Gram-Schmidt). The result, transposed, is the factor Q of the QR decomposition of the
// transposed matrix, where R has a positive diagonal. Keras computes the same Q from the same
// matrix. The rows must be linearly independent: a row that depends on the preceding rows becomes
// zero or rounding noise.
void Orthonormalize(std::span<double> matrix, int64_t count);

}  // namespace tfjob::model
