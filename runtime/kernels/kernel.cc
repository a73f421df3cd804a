#include "runtime/kernels/kernel.h"

#include "absl/strings/str_join.h"

namespace tfjob::kernels {
namespace {

std::string List(const std::vector<Operand>& operands) {
  return absl::StrJoin(operands, ", ", [](std::string* out, const Operand& operand) {
    out->append(operand.ToString());
  });
}

}  // namespace

Operand Operand::Dense(DType dtype, Shape shape) {
  const int64_t cols = shape.rank() == 0 ? 1 : shape.dim(-1);
  return {dtype, std::move(shape), cols};
}

int64_t Operand::rows() const {
  int64_t rows = 1;
  for (int axis = 0; axis < shape.rank() - 1; ++axis) rows *= shape.dim(axis);
  return rows;
}

std::string Operand::ToString() const {
  std::string text = StrCat(Name(dtype), shape.ToString());
  if (!dense()) text.insert(text.size() - 1, StrCat(":", row_stride));
  return text;
}

std::string KernelRequest::ToString() const {
  std::string text = StrCat(op, "(", List(inputs), ")");
  if (!attributes.values().empty()) text += StrCat("{", attributes.ToString(), "}");
  return StrCat(text, " -> ", List(outputs));
}

const KernelEntry* KernelTable::Find(std::string_view op) const {
  auto it = entries_.find(op);
  return it == entries_.end() ? nullptr : &it->second;
}

StatusOr<std::unique_ptr<Kernel>> KernelTable::Prepare(const KernelRequest& request) const {
  const KernelEntry* entry = Find(request.op);
  if (entry == nullptr) {
    return Unimplemented("device ", device_, " has no kernel for op ", request.op, " in ",
                         request.ToString());
  }
  for (const auto* side : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *side) {
      if (operand.row_stride < operand.cols()) {
        return InvalidArgument(request.ToString(), ": a row stride of ", operand.row_stride,
                               " is below the row's ", operand.cols(), " elements");
      }
      if (!host_operands_ && operand.memory != device::MemoryKind::kDevice) {
        return InvalidArgument(request.ToString(), ": ",
                               side == &request.inputs ? "an input" : "an output", " is in ",
                               device::Name(operand.memory), " memory, but the kernels of device ",
                               device_, " access only device memory: copy it there first");
      }
    }
  }
  auto kernel = entry->prepare(request);
  if (kernel.ok()) return kernel;
  return Annotate(kernel.status(), StrCat("device ", device_, ": ", request.ToString()));
}

KernelTable KernelTable::With(const KernelTable& more) const {
  Entries entries = more.entries_;
  entries.insert(entries_.begin(), entries_.end());
  return KernelTable(device_, std::move(entries), host_operands_);
}

}  // namespace tfjob::kernels
