#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/philox.h"
#include "runtime/model/layer/initial_pieces.h"
#include "runtime/model/layer/initializer.h"
#include "runtime/model/layer/orthogonal.h"

namespace tfjob::model {
namespace {

// The standard deviation of N(0, 1), truncated at two standard deviations.
constexpr double kTruncatedDeviation = 0.87962566103423978;

double Normal(PhiloxStream& random) {
  const double radius = std::sqrt(-2 * std::log1p(-random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

double TruncatedNormal(PhiloxStream& random) {
  double value = Normal(random);
  while (std::abs(value) > 2) value = Normal(random);
  return value;
}

// Returns the fan in and the fan out of a shape (see InitialValue).
std::pair<double, double> Fans(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {1, 1};
  const auto last = static_cast<double>(shape.dim(-1));
  if (rank == 1) return {last, last};
  const auto before = static_cast<double>(shape.dim(-2));
  const double receptive = static_cast<double>(shape.num_elements()) / last / before;
  return {before * receptive, last * receptive};
}

double Fan(const Initializer& initializer, const Shape& shape) {
  auto [in, out] = Fans(shape);
  if (initializer.fans) {
    in = static_cast<double>((*initializer.fans)[0]);
    out = static_cast<double>((*initializer.fans)[1]);
  }
  switch (initializer.mode) {
    case Initializer::Mode::kFanIn:
      return std::max(1.0, in);
    case Initializer::Mode::kFanOut:
      return std::max(1.0, out);
    case Initializer::Mode::kFanAvg:
      break;
  }
  return std::max(1.0, (in + out) / 2);
}

// Replaces kVarianceScaling with the equivalent distribution for this shape. Returns any other
// initializer unchanged.
Initializer Resolve(const Initializer& initializer, const Shape& shape) {
  if (initializer.kind != Initializer::Kind::kVarianceScaling) return initializer;
  const double variance = initializer.scale / Fan(initializer, shape);
  switch (initializer.distribution) {
    case Initializer::Distribution::kUniform: {
      const double limit = std::sqrt(3 * variance);
      return {.kind = Initializer::Kind::kRandomUniform, .minval = -limit, .maxval = limit};
    }
    case Initializer::Distribution::kUntruncatedNormal:
      return {.kind = Initializer::Kind::kRandomNormal, .stddev = std::sqrt(variance)};
    case Initializer::Distribution::kTruncatedNormal:
      break;
  }
  return {.kind = Initializer::Kind::kTruncatedNormal,
          .stddev = std::sqrt(variance) / kTruncatedDeviation};
}

double Draw(const Initializer& initializer, PhiloxStream& random) {
  switch (initializer.kind) {
    case Initializer::Kind::kZeros:
      return 0;
    case Initializer::Kind::kOnes:
      return 1;
    case Initializer::Kind::kConstant:
      return initializer.value;
    case Initializer::Kind::kRandomUniform:
      return initializer.minval + (initializer.maxval - initializer.minval) * random.Uniform();
    case Initializer::Kind::kRandomNormal:
      return initializer.mean + initializer.stddev * Normal(random);
    case Initializer::Kind::kTruncatedNormal:
      return initializer.mean + initializer.stddev * TruncatedNormal(random);
    case Initializer::Kind::kVarianceScaling:
    case Initializer::Kind::kOrthogonal:
    case Initializer::Kind::kIdentity:
      break;
  }
  ENFORCE(false, "variance scaling was resolved, and matrices are not drawn by element");
}

template <typename T>
void FillOrthogonal(double gain, PhiloxStream& random, Tensor& tensor) {
  const int64_t columns = tensor.shape().dim(-1);
  const int64_t rows = columns == 0 ? 0 : tensor.shape().num_elements() / columns;
  const int64_t few = std::min(rows, columns), many = std::max(rows, columns);
  std::vector<double> matrix(static_cast<size_t>(tensor.shape().num_elements()));
  for (double& element : matrix) element = Normal(random);
  Orthonormalize(matrix, few);
  const std::span<T> to = tensor.data<T>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t from = rows < columns ? row * many + column : column * many + row;
      to[static_cast<size_t>(row * columns + column)] =
          static_cast<T>(gain * matrix[static_cast<size_t>(from)]);
    }
  }
}

PhiloxStream RandomFor(const Initializer& initializer, uint64_t seed, std::string_view variable) {
  uint64_t key = PhiloxKey(seed, variable);
  if (initializer.seed)
    key = PhiloxKey(key + static_cast<uint64_t>(*initializer.seed), "initializer");
  return PhiloxStream(key);
}

}  // namespace

Status CheckShape(const Initializer& initializer, const Shape& shape) {
  if (initializer.kind == Initializer::Kind::kOrthogonal && shape.rank() < 2) {
    return InvalidArgument("initializer Orthogonal expects a shape of two axes or more, got ",
                           shape.ToString());
  }
  if (initializer.kind == Initializer::Kind::kIdentity && shape.rank() != 2) {
    return InvalidArgument("initializer Identity expects a shape of two axes, got ",
                           shape.ToString());
  }
  return OkStatus();
}

Tensor InitialValue(const Initializer& initializer, DType dtype, const Shape& shape, uint64_t seed,
                    std::string_view variable) {
  ENFORCE(dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt64,
          "variables are floating point, or count something");
  Tensor tensor(dtype, shape);
  if (InitialPieces::CanMake(initializer)) {
    InitialPieces(initializer, dtype, shape, seed, variable).Read(0, tensor.bytes());
    return tensor;
  }
  PhiloxStream random = RandomFor(initializer, seed, variable);
  if (dtype == DType::kFloat32) {
    FillOrthogonal<float>(initializer.gain, random, tensor);
  } else {
    FillOrthogonal<double>(initializer.gain, random, tensor);
  }
  return tensor;
}

// ---- piece by piece

bool InitialPieces::CanMake(const Initializer& initializer) {
  return initializer.kind != Initializer::Kind::kOrthogonal;
}

InitialPieces::InitialPieces(const Initializer& initializer, DType dtype, const Shape& shape,
                             uint64_t seed, std::string_view variable)
    : initializer_(Resolve(initializer, shape)),
      ones_(initializer.ones),
      dtype_(dtype),
      columns_(shape.rank() == 0 ? 1 : shape.dim(-1)),
      states_{RandomFor(initializer, seed, variable)} {
  ENFORCE(CanMake(initializer), "an initial value that can be made piece by piece");
}

void InitialPieces::Read(int64_t offset, std::span<std::byte> to) const {
  const auto size = static_cast<int64_t>(SizeOf(dtype_));
  if (dtype_ == DType::kFloat64) {
    Generate<double>(offset / size,
                     {reinterpret_cast<double*>(to.data()), to.size() / sizeof(double)});
  } else if (dtype_ == DType::kInt64) {
    Generate<int64_t>(offset / size,
                      {reinterpret_cast<int64_t*>(to.data()), to.size() / sizeof(int64_t)});
  } else {
    Generate<float>(offset / size,
                    {reinterpret_cast<float*>(to.data()), to.size() / sizeof(float)});
  }
}

template <typename T>
void InitialPieces::Generate(int64_t first, std::span<T> to) const {
  const int64_t end = first + static_cast<int64_t>(to.size());
  if (initializer_.kind == Initializer::Kind::kIdentity) {
    for (int64_t i = first; i < end; ++i) {
      const bool diagonal = i / columns_ == i % columns_;
      to[static_cast<size_t>(i - first)] = static_cast<T>(diagonal ? initializer_.gain : 0);
    }
  } else {
    PhiloxStream random = RandomAt(first);
    for (int64_t i = first; i < end; ++i) {
      if (i % kEvery == 0) Remember(i, random);
      to[static_cast<size_t>(i - first)] = static_cast<T>(Draw(initializer_, random));
    }
    if (end % kEvery == 0) Remember(end, random);
  }
  for (int64_t i = std::max(first, ones_.first); i < std::min(end, ones_.second); ++i)
    to[static_cast<size_t>(i - first)] = T{1};
}

PhiloxStream InitialPieces::RandomAt(int64_t first) const {
  const auto state = static_cast<size_t>(first / kEvery);
  PhiloxStream random = [&] {
    MutexLock lock(mutex_);
    while (states_.size() <= state) {
      PhiloxStream next = states_.back();
      for (int64_t i = 0; i < kEvery; ++i) Draw(initializer_, next);
      states_.push_back(next);
    }
    return states_[state];
  }();
  for (int64_t i = 0; i < first % kEvery; ++i) Draw(initializer_, random);
  return random;
}

void InitialPieces::Remember(int64_t next, const PhiloxStream& random) const {
  MutexLock lock(mutex_);
  if (next == static_cast<int64_t>(states_.size()) * kEvery) states_.push_back(random);
}

}  // namespace tfjob::model
