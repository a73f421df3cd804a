#include "runtime/exec/evaluate.h"

#include <vector>

#include "runtime/kernels/stream.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::exec {
namespace {

StatusOr<std::vector<Tensor>> Evaluate(const kernels::KernelTable& table, const graph::Node& node,
                                       const std::vector<Tensor>& inputs) {
  kernels::KernelRequest request{node.op, node.attributes, {}, {}};
  std::vector<const void*> from;
  for (const Tensor& input : inputs) {
    request.inputs.push_back(kernels::Operand::Dense(input.dtype(), input.shape()));
    from.push_back(input.bytes().data());
  }
  std::vector<Tensor> outputs;
  std::vector<void*> to;
  for (const graph::TensorType& type : node.outputs) {
    outputs.emplace_back(type.dtype, type.shape);
    request.outputs.push_back(kernels::Operand::Dense(type.dtype, type.shape));
    to.push_back(outputs.back().bytes().data());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<kernels::Kernel> kernel, table.Prepare(request));
  Buffer workspace(kernel->workspace_bytes());
  kernels::Stream stream;
  kernel->Run(from.data(), to.data(), workspace.data(), stream);
  RETURN_IF_ERROR(stream.TakeStatus());
  return outputs;
}

}  // namespace

graph::Evaluator KernelEvaluator(const kernels::KernelTable* table) {
  return [table](const graph::Node& node, const std::vector<Tensor>& inputs) {
    return Evaluate(*table, node, inputs);
  };
}

}  // namespace tfjob::exec
