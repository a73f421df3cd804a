#include "runtime/exec/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/exec/schedule.h"
#include "runtime/graph/op.h"
#include "runtime/kernels/stream.h"

namespace tfjob::exec {
namespace {

class AllReduceMean : public kernels::Kernel {
 public:
  AllReduceMean(const kernels::Operand& operand, int64_t number, Exchange& exchange)
      : dtype_(operand.dtype),
        bytes_(static_cast<size_t>(operand.shape.num_elements()) * SizeOf(operand.dtype)),
        number_(number),
        exchange_(exchange) {}

  void Run(const void* const* inputs, void* const* outputs, void*,
           kernels::Stream& stream) override {
    std::memcpy(outputs[0], inputs[0], bytes_);
    const std::span<std::byte> values(static_cast<std::byte*>(outputs[0]), bytes_);
    Status status = exchange_.AllReduceMean(number_, dtype_, values);
    if (!status.ok()) stream.Fail(std::move(status));
  }

 private:
  const DType dtype_;
  const size_t bytes_;
  const int64_t number_;
  Exchange& exchange_;
};

}  // namespace

std::vector<PlannedExchange> ExchangesOf(const graph::Graph& graph) {
  std::vector<PlannedExchange> exchanges;
  for (const int id : graph::Exchanges(graph)) {
    const graph::TensorType& type = graph.type({id, 0});
    exchanges.push_back({.name = graph.node(id).name,
                         .dtype = type.dtype,
                         .elements = type.shape.num_elements(),
                         .position = id});
  }
  return exchanges;
}

// Passes may compute a value earlier than the graph does, but never later, because they append a
// fused node where the last of its parts was.
std::vector<int> AnnouncedAt(const graph::Graph& graph, const std::vector<std::string>& fetches) {
  int checked = -1;  // a program announces nothing before its last check
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (MayRefuseValues(graph.node(id).op, graph.node(id).attributes)) checked = id;
  }
  std::vector<int> positions;
  for (const std::string& name : fetches) {
    const graph::Fetch* const fetch = graph.FindFetch(name);
    ENFORCE(fetch != nullptr, "a fetch of the graph");
    positions.push_back(std::max(fetch->output.node, checked));
  }
  return positions;
}

StatusOr<std::unique_ptr<kernels::Kernel>> PrepareExchange(const kernels::KernelRequest& request,
                                                           Exchange& exchange,
                                                           const Device& device) {
  if (!device.runtime->immediate()) {
    return Unimplemented(request.op, " exchanges values with other tasks while the program runs, ",
                         "which only works on CPUs, but this task computes on ", device.name,
                         "; set device: cpu, or set synchronized: false in the BatchNormalization ",
                         "layers");
  }
  return std::make_unique<AllReduceMean>(
      request.inputs[0], request.attributes.Get<int64_t>(graph::kExchange, 0), exchange);
}

}  // namespace tfjob::exec
