#include "runtime/model/any_length.h"

#include <algorithm>

namespace tfjob::model {
namespace {

using Types = std::vector<std::vector<TensorType>>;

// Returns the lengths to try, in order. Powers of 2 come first: most windows fit into them, and
// pooling and strided layers can divide them. The stated lengths of the inputs come last, because
// some layers require equal lengths.
std::vector<int64_t> LengthsToTry(const Model& model) {
  std::vector<int64_t> lengths = {64, 128, 512, 2048, 32, 16, 8, 4, 2, 1};
  for (const std::optional<TensorType>& stated : StatedInputs(model)) {
    for (int64_t dim : stated->shape.dims()) {
      if (dim != kAnyLength) lengths.push_back(dim);
    }
  }
  constexpr size_t kMost = 32;
  if (lengths.size() > kMost) lengths.resize(kMost);
  return lengths;
}

std::vector<TensorType> WithLength(const Model& model, int64_t length) {
  std::vector<TensorType> inputs;
  for (const std::optional<TensorType>& stated : StatedInputs(model)) {
    std::vector<int64_t> dims = stated->shape.dims();
    std::ranges::replace(dims, kAnyLength, length);
    inputs.push_back({stated->dtype, Shape(std::move(dims))});
  }
  return inputs;
}

struct Trial {
  std::vector<TensorType> inputs;
  Types types;
  int64_t length = 0;
};

// Tries all lengths except `other`. Returns the first successful trial or, if all trials fail, the
// first error.
StatusOr<Trial> FirstThatFits(const Model& model, int64_t other) {
  Status first_error;
  for (int64_t length : LengthsToTry(model)) {
    if (length == other) continue;
    std::vector<TensorType> inputs = WithLength(model, length);
    StatusOr<Types> types = CallTypes(model, inputs);
    if (types.ok()) return Trial{std::move(inputs), *std::move(types), length};
    if (first_error.ok()) first_error = types.status();
  }
  return first_error;
}

// Sets each length in `types` that differs from the corresponding length in `other` to kAnyLength.
void Compare(const Types& other, Types& types) {
  for (size_t call = 0; call < types.size(); ++call) {
    for (size_t i = 0; i < types[call].size(); ++i) {
      std::vector<int64_t> dims = types[call][i].shape.dims();
      const std::vector<int64_t>& others = other[call][i].shape.dims();
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] != others[d]) dims[d] = kAnyLength;
      }
      types[call][i].shape = Shape(std::move(dims));
    }
  }
}

}  // namespace

bool HasAnyLength(const Shape& stated) {
  return std::ranges::find(stated.dims(), kAnyLength) != stated.dims().end();
}

bool HasAnyLength(const Model& model) {
  return std::ranges::any_of(StatedInputs(model), [](const std::optional<TensorType>& stated) {
    return stated && HasAnyLength(stated->shape);
  });
}

std::string StatedText(const Shape& stated) {
  std::string text;
  for (int64_t dim : stated.dims())
    text += StrCat(text.empty() ? "" : ",", dim == kAnyLength ? "null" : StrCat(dim));
  return StrCat("[", text, "]");
}

bool FitsStated(const Shape& stated, const Shape& shape) {
  return std::ranges::equal(stated.dims(), shape.dims(), [](int64_t wanted, int64_t given) {
    return wanted == given || wanted == kAnyLength;
  });
}

Shape TakenAs(const Shape& stated, const Shape& array) {
  if (FitsStated(stated, array)) return array;
  std::vector<int64_t> dims = array.dims();
  dims.push_back(1);
  if (const Shape longer(dims); FitsStated(stated, longer)) return longer;
  dims.pop_back();
  if (dims.empty() || dims.back() != 1) return array;
  dims.pop_back();
  const Shape shorter(std::move(dims));
  return FitsStated(stated, shorter) ? shorter : array;
}

StatusOr<std::vector<TensorType>> ExampleInputs(const Model& model) {
  if (!HasAnyLength(model)) return WithLength(model, 0);
  ASSIGN_OR_RETURN(Trial trial, FirstThatFits(model, 0));
  return std::move(trial.inputs);
}

bool HasFixedVariables(const Model& model) {
  if (!HasAnyLength(model)) return true;
  const StatusOr<Trial> first = FirstThatFits(model, 0);
  if (!first.ok()) return false;
  const StatusOr<Trial> second = FirstThatFits(model, first->length);
  if (!second.ok()) return true;  // the layers accept no other length
  const auto variables = Variables(model, first->inputs);
  const auto others = Variables(model, second->inputs);
  return variables.ok() && others.ok() &&
         std::ranges::equal(*variables, *others,
                            [](const auto& x, const auto& y) { return x.shape == y.shape; });
}

StatusOr<Types> StatedCallTypes(const Model& model) {
  if (!HasAnyLength(model)) return CallTypes(model, WithLength(model, 0));
  ASSIGN_OR_RETURN(Trial trial, FirstThatFits(model, 0));
  const StatusOr<Trial> other = FirstThatFits(model, trial.length);
  // If the layers accept no other length, all lengths are fixed.
  if (other.ok()) Compare(other->types, trial.types);
  return std::move(trial.types);
}

}  // namespace tfjob::model
