#include "runtime/kernels/cuda/checks/gelu_reference.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "runtime/kernels/cuda/checks/element.h"

namespace tfjob::kernels::cuda {
namespace {

double GeluOf(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3));
  return x / 2 * (1 + std::tanh(inner));
}

// Returns the derivative as a quotient of differences, so that the formula does not depend on those
// of the kernels.
double SlopeOf(double x) {
  constexpr double kStep = 1e-4;
  return (GeluOf(x + kStep) - GeluOf(x - kStep)) / (2 * kStep);
}

class GeluLoops final : public Kernel {
 public:
  explicit GeluLoops(KernelRequest request) : request_(std::move(request)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream&) override {
    const bool gradient = request_.op == "MatMulGeluGrad";
    const bool bias = request_.attributes.Get("bias", false);
    const Operand& out = request_.outputs[0];
    for (int64_t row = 0; row < out.rows(); ++row) {
      for (int64_t col = 0; col < out.cols(); ++col) {
        double value = Product(inputs, row, col);
        if (bias) value += NumberAt(request_.inputs[2], inputs[2], 0, col);
        if (gradient) {
          const double x = NumberAt(request_.inputs[2], inputs[2], row, col);
          SetNumber(out, outputs[0], row, col, value * SlopeOf(x));
          continue;
        }
        SetNumber(request_.outputs[1], outputs[1], row, col, value);
        SetNumber(out, outputs[0], row, col, GeluOf(value));
      }
    }
  }

 private:
  double Product(const void* const* inputs, int64_t row, int64_t col) const {
    const Operand &a = request_.inputs[0], &b = request_.inputs[1];
    const bool ta = request_.attributes.Get("transpose_a", false);
    const bool tb = request_.attributes.Get("transpose_b", false);
    double sum = 0;
    for (int64_t i = 0; i < (ta ? a.rows() : a.cols()); ++i)
      sum += NumberAt(a, inputs[0], ta ? i : row, ta ? row : i) *
             NumberAt(b, inputs[1], tb ? col : i, tb ? i : col);
    return sum;
  }

  const KernelRequest request_;
};

}  // namespace

KernelTable::Entries GeluReference() {
  const auto prepare = [](const KernelRequest& request) -> StatusOr<std::unique_ptr<Kernel>> {
    return std::make_unique<GeluLoops>(request);
  };
  return {{"MatMulGelu", {prepare, {}}}, {"MatMulGeluGrad", {prepare, {}}}};
}

}  // namespace tfjob::kernels::cuda
