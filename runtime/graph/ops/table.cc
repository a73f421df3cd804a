// Builds the op table from the rows of every family.
#include <algorithm>

#include "runtime/graph/family.h"
#include "runtime/graph/op.h"

namespace tfjob::graph {
namespace {

std::string Describe(std::string_view op, const std::vector<TensorType>& inputs) {
  std::string text = std::string(op) + "(";
  for (size_t i = 0; i < inputs.size(); ++i) text += (i > 0 ? ", " : "") + inputs[i].ToString();
  return text + ")";
}

// Limits the number of elements of an output, so that sizes in bytes, and their sums, stay far
// below the maximum of int64.
constexpr int64_t kMaxElements = int64_t{1} << 40;

Status CheckSize(const TensorType& type) {
  int64_t elements = 1;
  for (int64_t dim : type.shape.dims()) {
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > kMaxElements) {
      return InvalidArgument("expected an output of at most 2^40 elements, got ", type.ToString());
    }
  }
  return OkStatus();
}

}  // namespace

const std::vector<Op>& AllOps() {
  static const std::vector<Op>* const kTable = [] {
    auto* table = new std::vector<Op>();
    for (const std::vector<Op>& family :
         {SourceOps(), LinearOps(), BatchMatMulOps(), AttentionOps(), LayerNormalizationOps(),
          ElementwiseOps(), ShapeOps(), SliceOps(), GatherOps(), ImageOps(), ImageTransformOps(),
          BatchNormOps(), CollectiveOps(), ScanOps()}) {
      table->insert(table->end(), family.begin(), family.end());
    }
    return table;
  }();
  return *kTable;
}

const Op* FindOp(std::string_view name) {
  const std::vector<Op>& table = AllOps();
  const auto found = std::ranges::find(table, name, &Op::name);
  return found == table.end() ? nullptr : &*found;
}

StatusOr<std::vector<TensorType>> InferTypes(std::string_view name,
                                             const std::vector<TensorType>& inputs,
                                             Attributes& attributes) {
  const Op* op = FindOp(name);
  if (op == nullptr) return Unimplemented("there is no op ", name);
  const int count = static_cast<int>(inputs.size());
  if (count < op->min_inputs || count > op->max_inputs) {
    const bool range = op->max_inputs > op->min_inputs;
    return InvalidArgument(Describe(name, inputs), ": expected ", op->min_inputs,
                           range ? StrCat(" to ", op->max_inputs) : std::string(), " inputs, got ",
                           count);
  }
  InferenceContext context{inputs, attributes};
  auto outputs = op->infer(context);
  if (!outputs.ok()) return Annotate(outputs.status(), Describe(name, inputs));
  for (const TensorType& type : *outputs) {
    if (Status size = CheckSize(type); !size.ok()) return Annotate(size, Describe(name, inputs));
  }
  return outputs;
}

}  // namespace tfjob::graph
