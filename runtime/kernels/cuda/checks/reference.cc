#include "runtime/kernels/cuda/checks/reference.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernels/cuda/checks/attention_reference.h"
#include "runtime/kernels/cuda/checks/element.h"
#include "runtime/kernels/cuda/checks/gelu_reference.h"
#include "runtime/kernels/cuda/checks/mixed_reference.h"
#include "runtime/kernels/cuda/checks/normalization_reference.h"
#include "runtime/optimizer/apply_kernel.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::kernels::cuda {
namespace {

// Computes MatMulBiasGrad with MatMul and BiasAddGrad.
class SeparateBiasGrad final : public Kernel {
 public:
  SeparateBiasGrad(std::unique_ptr<Kernel> product, std::unique_ptr<Kernel> sums, size_t summed)
      : product_(std::move(product)), sums_(std::move(sums)), summed_(summed) {}

  size_t workspace_bytes() const override {
    return std::max(product_->workspace_bytes(), sums_->workspace_bytes());
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    product_->Run(inputs, outputs, workspace, stream);
    sums_->Run(inputs + summed_, outputs + 1, workspace, stream);
  }

 private:
  const std::unique_ptr<Kernel> product_, sums_;
  const size_t summed_;
};

StatusOr<std::unique_ptr<Kernel>> PrepareBiasGrad(const KernelRequest& request) {
  const auto summed = static_cast<size_t>(request.attributes.Get("summed", int64_t{1}));
  ASSIGN_OR_RETURN(
      auto product,
      CpuKernels().Prepare({"MatMul", request.attributes, request.inputs, {request.outputs[0]}}));
  ASSIGN_OR_RETURN(
      auto sums,
      CpuKernels().Prepare({"BiasAddGrad", {}, {request.inputs[summed]}, {request.outputs[1]}}));
  return std::make_unique<SeparateBiasGrad>(std::move(product), std::move(sums), summed);
}

// Computes MatMulAdd with MatMulAccumulate, on a copy of the added value. Half types are rounded
// once, as CPU kernels do.
class AddedOnCopy final : public Kernel {
 public:
  AddedOnCopy(KernelRequest request, std::unique_ptr<Kernel> product)
      : request_(std::move(request)), product_(std::move(product)) {}

  size_t workspace_bytes() const override { return product_->workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const Operand &from = request_.inputs[2], &to = request_.outputs[0];
    for (int64_t row = 0; row < to.rows(); ++row)
      for (int64_t col = 0; col < to.cols(); ++col)
        SetNumber(to, outputs[0], row, col, NumberAt(from, inputs[2], row, col));
    const void* const own[] = {inputs[0], inputs[1], outputs[0]};
    product_->Run(own, outputs, workspace, stream);
  }

 private:
  const KernelRequest request_;
  const std::unique_ptr<Kernel> product_;
};

StatusOr<std::unique_ptr<Kernel>> PrepareAddedOnCopy(const KernelRequest& request) {
  KernelRequest product = request;
  product.op = "MatMulAccumulate";
  product.inputs[2] = request.outputs[0];
  ASSIGN_OR_RETURN(auto kernel, CpuKernels().Prepare(product));
  return std::make_unique<AddedOnCopy>(request, std::move(kernel));
}

// Computes ApplyOptimizers with one ApplyOptimizer per variable.
class UpdatesInTurn final : public Kernel {
 public:
  UpdatesInTurn(std::vector<std::unique_ptr<Kernel>> kernels, size_t operands)
      : kernels_(std::move(kernels)), operands_(operands) {}

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const void* const* const step = inputs + kernels_.size() * operands_;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      std::vector<const void*> own = {step[0], step[1 + i]};
      own.insert(own.end(), inputs + i * operands_, inputs + (i + 1) * operands_);
      kernels_[i]->Run(own.data(), outputs + i * operands_, workspace, stream);
    }
  }

 private:
  const std::vector<std::unique_ptr<Kernel>> kernels_;
  const size_t operands_;  // per variable: itself and its slots
};

StatusOr<std::unique_ptr<Kernel>> PrepareInTurn(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const auto o, optimizer::FromAttributes(request.attributes));
  const auto operands = 1 + static_cast<size_t>(optimizer::SlotCount(o));
  const size_t step = request.outputs.size();
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (size_t i = 0; i < step / operands; ++i) {
    KernelRequest update{"ApplyOptimizer", request.attributes, {}, {}};
    update.inputs = {request.inputs[step], request.inputs[step + 1 + i]};
    for (size_t j = i * operands; j < (i + 1) * operands; ++j) {
      update.inputs.push_back(request.inputs[j]);
      update.outputs.push_back(request.outputs[j]);
    }
    ASSIGN_OR_RETURN(kernels.emplace_back(), PrepareWidened(optimizer::CpuKernels(), update));
  }
  return std::make_unique<UpdatesInTurn>(std::move(kernels), operands);
}

// Returns an op of the table that also accepts half types in place of float32.
KernelTable::Entries Widened(const KernelTable& table, const std::string& op) {
  return {{op,
           {[&table](const KernelRequest& request) { return PrepareWidened(table, request); },
            table.Find(op)->in_place}}};
}

// Returns rules by which each output uses the memory of the input at the same index.
std::vector<InPlace> InPlaceUpdates() {
  std::vector<InPlace> rules;
  for (int i = 0; i < 256; ++i) rules.push_back({i, i, InPlace::kAlways});
  return rules;
}

}  // namespace

const KernelTable& ReferenceKernels() {
  static const auto* const kTable = new KernelTable(
      CpuKernels()
          .With(optimizer::CpuKernels())
          .With(KernelTable("CPU", AttentionReference()))
          .With(KernelTable("CPU", NormalizationReference()))
          .With(KernelTable("CPU", GeluReference()))
          .With(KernelTable("CPU", Widened(CpuKernels(), "MatMulAccumulate")))
          .With(KernelTable("CPU", Widened(optimizer::CpuKernels(), "ApplyOptimizer")))
          .With(KernelTable("CPU", {{"FusedElementwise", {PrepareProgramSteps, {}}},
                                    {"MatMulAdd", {PrepareAddedOnCopy, {}}},
                                    {"MatMulBiasGrad", {PrepareBiasGrad, {}}},
                                    {"ApplyOptimizers", {PrepareInTurn, InPlaceUpdates()}}})));
  return *kTable;
}

}  // namespace tfjob::kernels::cuda
