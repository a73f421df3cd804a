// Computes the initial values of variables with Keras' initializers
// (keras.io/api/layers/initializers). The random numbers differ from Keras': they come from Philox,
// keyed by the seed and the variable's name, so every task computes the same values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::model {

struct Initializer {
  enum class Kind {
    kZeros,
    kOnes,
    kConstant,
    kRandomNormal,
    kRandomUniform,
    kTruncatedNormal,
    kVarianceScaling,
    kOrthogonal,
    kIdentity
  };
  enum class Mode { kFanIn, kFanOut, kFanAvg };
  enum class Distribution { kUniform, kUntruncatedNormal, kTruncatedNormal };

  Kind kind = Kind::kZeros;
  double value = 0;                      // kConstant
  double mean = 0, stddev = 0.05;        // kRandomNormal, kTruncatedNormal
  double minval = -0.05, maxval = 0.05;  // kRandomUniform
  // kVarianceScaling: the variance is scale / fan.
  double scale = 1;
  Mode mode = Mode::kFanIn;
  Distribution distribution = Distribution::kTruncatedNormal;
  // Fan in and fan out, for layers that count them differently from InitialValue. Not written to
  // files.
  std::optional<std::array<int64_t, 2>> fans = {};
  double gain = 1;              // kOrthogonal, kIdentity: scales the matrix
  std::optional<int64_t> seed;  // mixed into the run's seed
  // The elements with indices in [first, second) are 1, whatever the kind (unit_forget_bias).
  std::pair<int64_t, int64_t> ones = {0, 0};

  static Initializer Zeros() { return {}; }
  static Initializer Ones() { return {.kind = Kind::kOnes}; }
  static Initializer GlorotUniform() {
    return {.kind = Kind::kVarianceScaling,
            .mode = Mode::kFanAvg,
            .distribution = Distribution::kUniform};
  }
  static Initializer Orthogonal() { return {.kind = Kind::kOrthogonal}; }
  bool operator==(const Initializer&) const = default;
};

// Reads a short name ("glorot_uniform"), a class name ("GlorotUniform"), {Class: {arguments}}, or
// Keras' {class_name, config}. For anything else, returns InvalidArgument with a message that names
// the path, the class or argument, and what is supported.
StatusOr<Initializer> ReadInitializer(const JsonField& field);

// Writes Keras 3's form.
Json WriteInitializer(const Initializer& initializer);

// Returns InvalidArgument if the initializer does not support this shape: Orthogonal needs at least
// two axes, and Identity exactly two.
Status CheckShape(const Initializer& initializer, const Shape& shape);

// Returns the initial value of a float32 or float64 variable. Requires a shape that CheckShape
// accepts. The value depends only on the arguments.
//
// Fans are computed as in Keras. The last two dimensions are fan in and fan out. If there are more
// dimensions, both fans are multiplied by the receptive field, which is the product of the other
// dimensions. Normally distributed numbers are drawn by the Box-Muller method. For a truncated
// normal distribution, a number is redrawn if it is more than two standard deviations from the
// mean. Variance scaling compensates for this by dividing its standard deviation by
// 0.87962566103423978.
//
// Orthogonal treats the last axis as columns, and all other axes, flattened, as rows. The columns
// are orthonormal or, if there are fewer rows than columns, the rows are. They are obtained from a
// matrix of normally distributed numbers (orthogonal.h).
Tensor InitialValue(const Initializer& initializer, DType dtype, const Shape& shape, uint64_t seed,
                    std::string_view variable);

}  // namespace tfjob::model
