#include "runtime/model/operations/operation_table.h"

#include <algorithm>
#include <cctype>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/einsum.h"
#include "runtime/model/layer/flip.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;
using Outputs = std::vector<Output>;

// ---- elementwise

template <Output (*kFunction)(Builder&, Output)>
Outputs Unary(const OperationCall& call) {
  return {kFunction(call.b, call.x[0])};
}

template <Output (*kFunction)(Builder&, Output, Output)>
Outputs Binary(const OperationCall& call) {
  return {kFunction(call.b, call.x[0], call.x[1])};
}

Outputs Differs(const OperationCall& call) {
  return {Not(call.b, Equal(call.b, call.x[0], call.x[1]))};
}

Outputs LessEqual(const OperationCall& call) {
  return {GreaterEqual(call.b, call.x[1], call.x[0])};
}

// Divides two operands of the same type. Integers are converted to float32 first.
Outputs TrueDivide(const OperationCall& call) {
  const DType own = call.b.dtype(call.x[0]);
  const bool whole =
      own == DType::kInt32 || own == DType::kInt64 || own == DType::kUInt8 || own == DType::kBool;
  const DType dtype = whole ? DType::kFloat32 : own;
  return {Div(call.b, Cast(call.b, call.x[0], dtype), Cast(call.b, call.x[1], dtype))};
}

Outputs Power(const OperationCall& call) {
  const CallOperand& exponent = call.operation.operands[1];
  if (exponent.input == kNoInput && exponent.number == 2) return {Square(call.b, call.x[0])};
  return {Pow(call.b, call.x[0], call.x[1])};
}

Outputs Where(const OperationCall& call) {
  return {Select(call.b, Cast(call.b, call.x[0], DType::kBool), call.x[1], call.x[2])};
}

void ClipArguments(Operation& operation, ArgumentVisitor& visitor) {
  const NumberRule required = {.required = true};
  visitor.Number("x_min", operation.low, required);
  visitor.Number("x_max", operation.high, required);
}
Outputs Clipped(const OperationCall& call) {
  return {ClipByValue(call.b, call.x[0], call.operation.low, call.operation.high)};
}

void CastArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Type("dtype", operation.dtype);
}
Outputs CastTo(const OperationCall& call) {
  return {Cast(call.b, call.x[0], call.operation.dtype)};
}

// ---- reductions

void ExtremeArguments(Operation& operation, ArgumentVisitor& visitor) {
  ReductionArguments(operation, visitor);
  visitor.Only("initial", "null");
}
template <Output (*kFunction)(Builder&, Output, std::vector<int64_t>, bool)>
Outputs Reduced(const OperationCall& call) {
  return {kFunction(call.b, call.x[0], call.operation.axes, call.operation.keepdims)};
}

// ---- shapes

void ReshapeArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Integers("newshape", operation.newshape, {.required = true});
}
Outputs Reshaped(const OperationCall& call) {
  return {graph::Reshape(call.b, call.x[0], Shape(call.operation.newshape))};
}

void TransposeArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.OptionalAxes("axes", operation.axes);
}
Outputs Transposed(const OperationCall& call) {
  std::vector<int64_t> axes = call.operation.axes;
  for (int64_t axis = call.b.shape(call.x[0]).rank(); call.operation.axes.empty() && axis-- > 0;)
    axes.push_back(axis);
  const int64_t rank = call.b.shape(call.x[0]).rank();
  for (int64_t& axis : axes) axis = AxisOf(call, axis, rank);
  return {Transpose(call.b, call.x[0], std::move(axes))};
}

void SwapArguments(Operation& operation, ArgumentVisitor& visitor) {
  const IntegerRule required = {.required = true};
  visitor.Integer("axis1", operation.axis1, required);
  visitor.Integer("axis2", operation.axis2, required);
}
Outputs Swapped(const OperationCall& call) {
  const int64_t rank = call.b.shape(call.x[0]).rank();
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  std::swap(axes[static_cast<size_t>(AxisOf(call, call.operation.axis1, rank))],
            axes[static_cast<size_t>(AxisOf(call, call.operation.axis2, rank))]);
  return {Transpose(call.b, call.x[0], std::move(axes))};
}

Output Expanded(const OperationCall& call, Output x) {
  std::vector<int64_t> dims = call.b.shape(x).dims();
  const auto rank = static_cast<int64_t>(dims.size()) + 1;
  dims.insert(dims.begin() + AxisOf(call, call.operation.axis, rank), 1);
  return graph::Reshape(call.b, x, Shape(std::move(dims)));
}
Outputs ExpandDims(const OperationCall& call) {
  return {Expanded(call, call.x[0])};
}

void SqueezeArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.OptionalAxes("axis", operation.axes);
}
// Drops axes of size 1. If no axes are specified, drops all of them except the batch axis.
Outputs Squeezed(const OperationCall& call) {
  const Shape shape = call.b.shape(call.x[0]);
  std::vector<bool> drop(static_cast<size_t>(shape.rank()));
  for (int64_t axis : call.operation.axes) {
    const int64_t found = AxisOf(call, axis, shape.rank());
    drop[static_cast<size_t>(found)] = true;
    if (shape.dim(static_cast<int>(found)) != 1)
      return {call.b.Fail(InvalidArgument("axis ", axis, " has not size 1"))};
  }
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool one = call.operation.axes.empty() && axis > 0 && shape.dim(axis) == 1;
    if (!one && !drop[static_cast<size_t>(axis)]) dims.push_back(shape.dim(axis));
  }
  return {graph::Reshape(call.b, call.x[0], Shape(std::move(dims)))};
}

Outputs Concatenated(const OperationCall& call) {
  return {Concat(call.b, call.x, call.operation.axis)};
}

Outputs Stacked(const OperationCall& call) {
  Outputs expanded;
  for (const Output x : call.x) expanded.push_back(Expanded(call, x));
  const int64_t rank = call.b.shape(expanded[0]).rank();
  return {Concat(call.b, expanded, AxisOf(call, call.operation.axis, rank))};
}

constexpr int64_t kMostParts = 1024;

void SplitArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.CountOrList("indices_or_sections", operation.sections, operation.indices,
                      {.least = 1,
                       .most = kMostParts,
                       .expected = "an integer from 1 to 1024, or a list of such integers",
                       .required = true});
  visitor.Axis("axis", operation.axis);
}

// Splits the axis before each of the indices, which must not decrease.
Outputs SplitAt(const OperationCall& call, size_t axis) {
  const Shape shape = call.b.shape(call.x[0]);
  std::vector<int64_t> begin(shape.dims().size()), dims = shape.dims(),
                                                   ends = call.operation.indices;
  ends.push_back(shape.dims()[axis]);
  Outputs parts;
  for (const int64_t end : ends) {
    if (end < begin[axis] || end > ends.back() || ends.size() > kMostParts)
      return {call.b.Fail(InvalidArgument("expected up to ", kMostParts, " indices of an axis of ",
                                          ends.back(), " elements, in ascending order"))};
    dims[axis] = end - begin[axis];
    parts.push_back(Slice(call.b, call.x[0], begin, dims));
    begin[axis] = end;
  }
  return parts;
}
Outputs Split(const OperationCall& call) {
  const Shape shape = call.b.shape(call.x[0]);
  const int64_t axis = AxisOf(call, call.operation.axis, shape.rank());
  if (!call.operation.indices.empty()) return SplitAt(call, static_cast<size_t>(axis));
  const int64_t sections = call.operation.sections, size = shape.dim(static_cast<int>(axis));
  if (size % sections != 0)
    return {call.b.Fail(InvalidArgument(size, " elements do not split into ", sections, " parts"))};
  std::vector<int64_t> begin(static_cast<size_t>(shape.rank())), dims = shape.dims();
  dims[static_cast<size_t>(axis)] = size / sections;
  Outputs parts;
  for (int64_t i = 0; i < sections; ++i) {
    begin[static_cast<size_t>(axis)] = i * (size / sections);
    parts.push_back(Slice(call.b, call.x[0], begin, dims));
  }
  return parts;
}

Outputs Item(const OperationCall& call) {
  return {GetItem(call.b, call.x[0], call.operation.key)};
}

// ---- products

Output MatrixProduct(Builder& b, Output x, Output y) {
  return BatchMatMul(b, x, y);
}

void EinsumArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Text("subscripts", operation.subscripts, /*required=*/true);
}
Outputs EinsumOf(const OperationCall& call) {
  const std::string& text = call.operation.subscripts;
  const size_t comma = text.find(','), arrow = text.find("->");
  const auto bad = [&] {
    return Outputs{
        call.b.Fail(InvalidArgument("subscripts ", text, ": expected the form ab,bc->ac, ",
                                    "with the letters of the two operands"))};
  };
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) return bad();
  const EinsumAxes axes = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1),
                           text.substr(arrow + 2)};
  for (char letter : axes.x + axes.y + axes.z)
    if (!std::isalpha(static_cast<unsigned char>(letter))) return bad();
  const Status checked = CheckEinsum(axes);
  if (!checked.ok()) return {call.b.Fail(checked)};
  const Shape &x = call.b.shape(call.x[0]), &y = call.b.shape(call.x[1]);
  if (axes.x.size() != x.dims().size() || axes.y.size() != y.dims().size()) return bad();
  for (size_t i = 0; i < axes.x.size(); ++i) {
    const size_t other = axes.y.find(axes.x[i]);
    if (other != std::string::npos && x.dims()[i] != y.dims()[other]) return bad();
  }
  return {Einsum(call.b, call.x[0], call.x[1], axes)};
}

constexpr CallForm kUnary = CallForm::kUnary, kBinary = CallForm::kBinary;

constexpr OperationKind kOperations[] = {
    {"numpy", "Add", kBinary, nullptr, Binary<graph::Add>},
    {"numpy", "Subtract", kBinary, nullptr, Binary<graph::Sub>},
    {"numpy", "Multiply", kBinary, nullptr, Binary<graph::Mul>},
    {"numpy", "TrueDivide", kBinary, nullptr, TrueDivide},
    {"numpy", "Divide", kBinary, nullptr, TrueDivide},
    {"numpy", "Power", kBinary, nullptr, Power},
    {"numpy", "Maximum", kBinary, nullptr, Binary<graph::Maximum>},
    {"numpy", "Minimum", kBinary, nullptr, Binary<graph::Minimum>},
    {"numpy", "Equal", kBinary, nullptr, Binary<graph::Equal>},
    {"numpy", "NotEqual", kBinary, nullptr, Differs},
    {"numpy", "Greater", kBinary, nullptr, Binary<graph::Greater>},
    {"numpy", "GreaterEqual", kBinary, nullptr, Binary<graph::GreaterEqual>},
    {"numpy", "Less", kBinary, nullptr, Binary<graph::Less>},
    {"numpy", "LessEqual", kBinary, nullptr, LessEqual},
    {"numpy", "Where", CallForm::kSelect, nullptr, Where},
    {"numpy", "Negative", kUnary, nullptr, Unary<graph::Neg>},
    {"numpy", "Absolute", kUnary, nullptr, Unary<graph::Abs>},
    {"numpy", "Square", kUnary, nullptr, Unary<graph::Square>},
    {"numpy", "Sqrt", kUnary, nullptr, Unary<graph::Sqrt>},
    {"numpy", "Exp", kUnary, nullptr, Unary<graph::Exp>},
    {"numpy", "Log", kUnary, nullptr, Unary<graph::Log>},
    {"numpy", "Sin", kUnary, nullptr, Unary<graph::Sin>},
    {"numpy", "Cos", kUnary, nullptr, Unary<graph::Cos>},
    {"numpy", "Tanh", kUnary, nullptr, Unary<graph::Tanh>},
    {"numpy", "Clip", kUnary, ClipArguments, Clipped},
    {"math", "Rsqrt", kUnary, nullptr, Unary<graph::Rsqrt>},
    {"math", "Erf", kUnary, nullptr, Unary<graph::Erf>},
    {"core", "Cast", kUnary, CastArguments, CastTo},
    {"numpy", "Mean", kUnary, ReductionArguments, Reduced<graph::Mean>},
    {"numpy", "Sum", kUnary, ReductionArguments, Reduced<graph::Sum>},
    {"numpy", "Max", kUnary, ExtremeArguments, Reduced<graph::Max>},
    {"numpy", "Min", kUnary, ExtremeArguments, Reduced<graph::Min>},
    {"numpy", "Reshape", kUnary, ReshapeArguments, Reshaped},
    {"numpy", "Transpose", kUnary, TransposeArguments, Transposed},
    {"numpy", "Swapaxes", kUnary, SwapArguments, Swapped},
    {"numpy", "ExpandDims", kUnary, AxisArgument, ExpandDims},
    {"numpy", "Squeeze", kUnary, SqueezeArguments, Squeezed},
    {"numpy", "Concatenate", CallForm::kList, AxisArgument, Concatenated},
    {"numpy", "Stack", CallForm::kList, AxisArgument, Stacked},
    {"numpy", "Split", kUnary, SplitArguments, Split},
    {"numpy", "GetItem", CallForm::kKey, nullptr, Item},
    {"numpy", "Matmul", kBinary, nullptr, Binary<MatrixProduct>},
    {"numpy", "Einsum", kBinary, EinsumArguments, EinsumOf},
};

// ---- x[key]

// Keeps every `step`-th element along the axis, starting with the first.
Output EveryNth(Builder& b, Output x, size_t axis, int64_t step) {
  if (!x.valid()) return x;
  const std::vector<int64_t> dims = b.shape(x).dims();
  const int64_t count = (dims[axis] + step - 1) / step;
  std::vector<int64_t> none(dims.size()), after(dims.size()), split = dims;
  after[axis] = count * step - dims[axis];
  split[axis] = count;
  split.insert(split.begin() + static_cast<int64_t>(axis) + 1, step);
  const Output whole = graph::Reshape(b, Pad(b, x, none, after), Shape(split));
  std::vector<int64_t> first = split, result = dims;
  first[axis + 1] = 1;
  result[axis] = count;
  return graph::Reshape(b, Slice(b, whole, std::vector<int64_t>(split.size()), first),
                        Shape(result));
}

class Indexing {
 public:
  Indexing(Builder& b, Output x) : b_(b), x_(x), dims_(b.shape(x).dims()) {}

  Output Run(const std::vector<KeyPart>& key) {
    size_t named = 0, ellipses = 0;
    for (const KeyPart& part : key) {
      named += part.kind == KeyPart::Kind::kIndex || part.kind == KeyPart::Kind::kSlice;
      ellipses += part.kind == KeyPart::Kind::kEllipsis;
    }
    if (named > dims_.size() || ellipses > 1)
      return b_.Fail(InvalidArgument("the key does not fit a value of ", dims_.size(), " axes"));
    for (const KeyPart& part : key) {
      Take(part, dims_.size() - named);
      if (!b_.ok() || !x_.valid()) return {};
    }
    while (axis_ < dims_.size()) result_.push_back(dims_[axis_++]);
    return graph::Reshape(b_, x_, Shape(result_));
  }

 private:
  void Take(const KeyPart& part, size_t elided) {
    switch (part.kind) {
      case KeyPart::Kind::kNewAxis:
        result_.push_back(1);
        return;
      case KeyPart::Kind::kEllipsis:
        for (size_t i = 0; i < elided; ++i) result_.push_back(dims_[axis_++]);
        return;
      case KeyPart::Kind::kIndex:
        return TakeIndex(part.index);
      case KeyPart::Kind::kSlice:
        return TakeSlice(part);
    }
  }

  void Keep(int64_t begin, int64_t size) {
    const std::vector<int64_t> dims = b_.shape(x_).dims();
    std::vector<int64_t> begins(dims.size()), sizes = dims;
    begins[axis_] = begin;
    sizes[axis_] = size;
    if (size != dims[axis_]) x_ = Slice(b_, x_, begins, sizes);
  }

  void TakeIndex(int64_t index) {
    const int64_t size = dims_[axis_];
    if (index < 0) index += size;
    if (axis_ == 0 || index < 0 || index >= size) {
      b_.Fail(InvalidArgument("the key's index does not fit axis ", axis_, ", which has ", size,
                              " elements", axis_ == 0 ? " (it is the batch)" : ""));
      return;
    }
    Keep(index, 1);
    ++axis_;
  }

  void TakeSlice(const KeyPart& part) {
    const bool whole = !part.start && !part.stop && part.step.value_or(1) == 1;
    const int64_t size = dims_[axis_], step = part.step.value_or(1);
    if (step == 0 || (axis_ == 0 && !whole)) {
      b_.Fail(InvalidArgument("expected slices with a step other than 0, and all of the batch"));
      return;
    }
    if (step < 0) return TakeReversed(part, size, -step);
    const auto bound = [size](int64_t at) {
      return std::clamp(at < 0 ? at + size : at, int64_t{0}, size);
    };
    const int64_t begin = bound(part.start.value_or(0)), end = bound(part.stop.value_or(size));
    const int64_t covered = std::max<int64_t>(0, end - begin), count = (covered + step - 1) / step;
    Keep(begin, count > 1 ? covered : count);
    if (step > 1 && count > 1) x_ = EveryNth(b_, x_, axis_, step);
    result_.push_back(count);
    ++axis_;
  }

  // Takes the same elements in ascending order, and reverses them.
  void TakeReversed(const KeyPart& part, int64_t size, int64_t step) {
    const auto bound = [size](int64_t at) {
      return std::clamp(at < 0 ? at + size : at, int64_t{-1}, size - 1);
    };
    const int64_t first = part.start ? bound(*part.start) : size - 1;
    const int64_t end = part.stop ? bound(*part.stop) : -1;
    const int64_t count = std::max<int64_t>(0, (first - end + step - 1) / step);
    const int64_t covered = count == 0 ? 0 : (count - 1) * step + 1;
    Keep(count == 0 ? 0 : first - covered + 1, covered);
    if (step > 1 && count > 1) x_ = EveryNth(b_, x_, axis_, step);
    if (count > 1 && b_.ok()) x_ = Flipped(b_, x_, static_cast<int64_t>(axis_));
    result_.push_back(count);
    ++axis_;
  }

  Builder& b_;
  Output x_;
  std::vector<int64_t> dims_;    // dimensions of the original value
  std::vector<int64_t> result_;  // dimensions of the result so far
  size_t axis_ = 0;
};

}  // namespace

std::span<const OperationKind> AllOperations() {
  static const auto* const all = [] {
    auto* list = new std::vector<OperationKind>(std::begin(kOperations), std::end(kOperations));
    for (const auto family : {LogicalOperations(), ActivationOperations(), ArrayOperations(),
                              RoundingOperations(), ReductionOperations()})
      list->insert(list->end(), family.begin(), family.end());
    return list;
  }();
  return *all;
}

void AxisArgument(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Axis("axis", operation.axis);
}

int64_t AxisOf(const OperationCall& call, int64_t axis, int64_t rank) {
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return axis;
  call.b.Fail(InvalidArgument("there is no axis ", axis, " among ", rank));
  return 0;
}

void ReductionArguments(Operation& operation, ArgumentVisitor& visitor) {
  visitor.OptionalAxes("axis", operation.axes);
  visitor.Flag("keepdims", operation.keepdims);
}

Output Not(Builder& b, Output x) {
  return Equal(b, x, Scalar(b, DType::kBool, 0));
}

Output GetItem(Builder& b, Output x, const std::vector<KeyPart>& key) {
  return Indexing(b, x).Run(key);
}

}  // namespace tfjob::model::layers
