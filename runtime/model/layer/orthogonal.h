// Makes the rows of a matrix orthonormal, for the initializer Orthogonal.
#pragma once

#include <cstdint>
#include <span>

namespace tfjob::model {

// Replaces the `count` rows of `matrix`, one after another, with orthonormal rows that span the
// same space (Gram-Schmidt). The transposed result is the factor Q of the transposed matrix's QR
// decomposition in which R has a positive diagonal. Keras computes the same Q from the same
// numbers. The rows must be linearly independent: a row that depends on the rows before it becomes
// zero or rounding noise.
void Orthonormalize(std::span<double> matrix, int64_t count);

}  // namespace tfjob::model
