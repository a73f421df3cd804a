#include "runtime/kernels/cuda/checks/normalization_reference.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/kernels/cuda/checks/element.h"

namespace tfjob::kernels::cuda {
namespace {

class NormalizationLoops final : public Kernel {
 public:
  explicit NormalizationLoops(const KernelRequest& request) : request_(request) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream&) override {
    if (request_.op == "LayerNormalization") return Normalize(inputs, outputs);
    Differentiate(inputs, outputs);
  }

 private:
  void Normalize(const void* const* inputs, void* const* outputs) const {
    const Operand& x = request_.inputs[0];
    const auto count = static_cast<double>(x.cols());
    for (int64_t row = 0; row < x.rows(); ++row) {
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < x.cols(); ++c) mean += NumberAt(x, inputs[0], row, c) / count;
      for (int64_t c = 0; c < x.cols(); ++c)
        variance += std::pow(NumberAt(x, inputs[0], row, c) - mean, 2) / count;
      const double factor = 1 / std::sqrt(variance + request_.attributes.Get("epsilon", 0.0));
      for (int64_t c = 0; c < x.cols(); ++c) {
        const double normal = (NumberAt(x, inputs[0], row, c) - mean) * factor;
        SetNumber(request_.outputs[0], outputs[0], row, c,
                  normal * NumberAt(request_.inputs[1], inputs[1], 0, c) +
                      NumberAt(request_.inputs[2], inputs[2], 0, c));
      }
      SetNumber(request_.outputs[1], outputs[1], 0, row, mean);
      SetNumber(request_.outputs[1], outputs[1], 1, row, factor);
    }
  }

  void Differentiate(const void* const* inputs, void* const* outputs) const {
    const Operand& x = request_.inputs[0];
    const auto cols = static_cast<size_t>(x.cols());
    std::vector<double> d_gamma(cols), d_beta(cols);
    for (int64_t row = 0; row < x.rows(); ++row) {
      const double mean = NumberAt(request_.inputs[2], inputs[2], 0, row);
      const double factor = NumberAt(request_.inputs[2], inputs[2], 1, row);
      const auto normal = [&](int64_t c) {
        return (NumberAt(x, inputs[0], row, c) - mean) * factor;
      };
      const auto dy = [&](int64_t c) { return NumberAt(request_.inputs[3], inputs[3], row, c); };
      const auto d_normal = [&](int64_t c) {
        return dy(c) * NumberAt(request_.inputs[1], inputs[1], 0, c);
      };
      double sum = 0, dot = 0;
      for (int64_t c = 0; c < x.cols(); ++c) {
        sum += d_normal(c) / static_cast<double>(cols);
        dot += d_normal(c) * normal(c) / static_cast<double>(cols);
        d_gamma[static_cast<size_t>(c)] += dy(c) * normal(c);
        d_beta[static_cast<size_t>(c)] += dy(c);
      }
      const auto added = [&](int64_t c) {
        return request_.inputs.size() == 5 ? NumberAt(request_.inputs[4], inputs[4], row, c) : 0;
      };
      for (int64_t c = 0; c < x.cols(); ++c)
        SetNumber(request_.outputs[0], outputs[0], row, c,
                  factor * (d_normal(c) - sum - normal(c) * dot) + added(c));
    }
    for (int64_t c = 0; c < x.cols(); ++c) {
      SetNumber(request_.outputs[1], outputs[1], 0, c, d_gamma[static_cast<size_t>(c)]);
      SetNumber(request_.outputs[2], outputs[2], 0, c, d_beta[static_cast<size_t>(c)]);
    }
  }

  const KernelRequest request_;
};

}  // namespace

KernelTable::Entries NormalizationReference() {
  const PrepareFunction prepare =
      [](const KernelRequest& request) -> StatusOr<std::unique_ptr<Kernel>> {
    return std::make_unique<NormalizationLoops>(request);
  };
  return {{"LayerNormalization", {prepare, {}}}, {"LayerNormalizationGrad", {prepare, {}}}};
}

}  // namespace tfjob::kernels::cuda
