#include "runtime/kernels/cuda/checks/mixed_reference.h"

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/kernels/cuda/checks/element.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cuda {
namespace {

using Numbers = std::vector<float>;

// Runs a kernel with copies of some inputs in float32, with the same row strides.
class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(KernelRequest request, std::unique_ptr<Kernel> kernel)
      : request_(std::move(request)), kernel_(std::move(kernel)) {}

  size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    std::vector<const void*> wide;
    std::vector<Numbers> copies(request_.inputs.size());
    for (size_t i = 0; i < copies.size(); ++i) {
      const Operand& operand = request_.inputs[i];
      wide.push_back(inputs[i]);
      if (!IsHalf(operand.dtype)) continue;
      copies[i].resize(static_cast<size_t>(operand.rows() * operand.row_stride));
      for (int64_t row = 0; row < operand.rows(); ++row)
        for (int64_t col = 0; col < operand.cols(); ++col)
          copies[i][static_cast<size_t>(row * operand.row_stride + col)] =
              static_cast<float>(NumberAt(operand, inputs[i], row, col));
      wide[i] = copies[i].data();
    }
    kernel_->Run(wide.data(), outputs, workspace, stream);
  }

 private:
  const KernelRequest request_;
  const std::unique_ptr<Kernel> kernel_;
};

class ProgramSteps final : public Kernel {
 public:
  explicit ProgramSteps(KernelRequest request) : request_(std::move(request)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    std::istringstream texts(request_.attributes.Get("program", std::string()));
    std::vector<Numbers> results;
    for (std::string text; std::getline(texts, text, ';');)
      results.push_back(Step(text, results, inputs, stream));
    const Operand& out = request_.outputs[0];
    for (int64_t row = 0; row < out.rows(); ++row)
      for (int64_t col = 0; col < out.cols(); ++col)
        SetNumber(out, outputs[0], row, col,
                  static_cast<double>(results.back()[static_cast<size_t>(row * out.cols() + col)]));
  }

 private:
  int64_t count() const { return request_.outputs[0].shape.num_elements(); }

  Numbers Step(const std::string& text, const std::vector<Numbers>& results,
               const void* const* inputs, Stream& stream) const {
    std::istringstream words(text);
    std::string op;
    words >> op;
    std::vector<Numbers> operands;
    const auto dense = Operand::Dense(DType::kFloat32, Shape({count()}));
    if (op == "Dropout") {
      std::string x;
      double rate = 0;
      int64_t op_id = 0;
      words >> x >> rate >> op_id;
      const Attributes attributes = {{"rate", rate},
                                     {"op_id", op_id},
                                     {"replica", request_.attributes.Get("replica", int64_t{0})}};
      const size_t step = request_.inputs.size() - 2;
      operands.push_back(Operands(x, results, inputs));
      return Compute({"Dropout",
                      attributes,
                      {dense, request_.inputs[step], request_.inputs[step + 1]},
                      {dense}},
                     {operands[0].data(), inputs[step], inputs[step + 1]}, stream);
    }
    KernelRequest request{"FusedElementwise", {}, {}, {dense}};
    std::vector<const void*> addresses;
    std::string program = op;
    for (std::string word; words >> word;) {
      program += " i" + std::to_string(operands.size());
      operands.push_back(Operands(word, results, inputs));
      request.inputs.push_back(dense);
    }
    for (const Numbers& operand : operands) addresses.push_back(operand.data());
    request.attributes.Set("program", program);
    return Compute(request, addresses, stream);
  }

  // Returns the elements of an operand, broadcast to the shape of the output.
  Numbers Operands(const std::string& word, const std::vector<Numbers>& results,
                   const void* const* inputs) const {
    if (word[0] == 't') return results[std::stoul(word.substr(1))];
    if (word[0] != 'i' || word == "inf")
      return Numbers(static_cast<size_t>(count()), std::stof(word));
    const size_t i = std::stoul(word.substr(1));
    const Operand &input = request_.inputs[i], &out = request_.outputs[0];
    Numbers numbers;
    for (int64_t row = 0; row < out.rows(); ++row) {
      for (int64_t col = 0; col < out.cols(); ++col)
        numbers.push_back(static_cast<float>(
            NumberAt(input, inputs[i], input.rows() == 1 ? 0 : row, input.cols() == 1 ? 0 : col)));
    }
    return numbers;
  }

  static Numbers Compute(const KernelRequest& request, const std::vector<const void*>& inputs,
                         Stream& stream) {
    const auto kernel = CpuKernels().Prepare(request);
    ENFORCE(kernel.ok(), Message(kernel.status()));
    Numbers out(static_cast<size_t>(request.outputs[0].shape.num_elements()));
    void* const outputs[] = {out.data()};
    (*kernel)->Run(inputs.data(), outputs, nullptr, stream);
    return out;
  }

  const KernelRequest request_;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> PrepareWidened(const KernelTable& table,
                                                 const KernelRequest& request) {
  if (request.outputs.empty() || IsHalf(request.outputs[0].dtype)) return table.Prepare(request);
  KernelRequest wide = request;
  for (Operand& input : wide.inputs)
    if (IsHalf(input.dtype)) input.dtype = DType::kFloat32;
  ASSIGN_OR_RETURN(auto kernel, table.Prepare(wide));
  return std::make_unique<WidenedKernel>(request, std::move(kernel));
}

StatusOr<std::unique_ptr<Kernel>> PrepareProgramSteps(const KernelRequest& request) {
  if (request.attributes.Find<DType>("dtype") == nullptr) return CpuKernels().Prepare(request);
  return std::make_unique<ProgramSteps>(request);
}

}  // namespace tfjob::kernels::cuda
