#include "runtime/model/model.h"

namespace tfjob::model {
namespace {

// The input of a call: its shape, and where it comes from.
struct Input {
  Shape shape;
  std::string giver;
};

Input InputOf(const Model& model, const std::vector<Shape>& shapes, const Call& call,
              const Shape& feature_shape) {
  if (call.inputs.empty()) return {feature_shape, "the data"};
  const size_t before = static_cast<size_t>(call.inputs.front());
  return {shapes[before], Describe(model.layers[static_cast<size_t>(model.calls[before].layer)])};
}

// Refuses a shape of more than 2^40 elements (4 TiB of floats). Sizes come from a file, so they may
// be absurdly large or overflow.
Status CheckSize(const Shape& shape) {
  constexpr int64_t kMaxElements = int64_t{1} << 40;
  int64_t elements = 1;
  for (int64_t dim : shape.dims()) {
    const bool overflow = __builtin_mul_overflow(elements, dim, &elements);
    if (overflow || elements > kMaxElements) {
      return InvalidArgument("shape ", shape.ToString(), " is too large: more than 2^40 elements");
    }
  }
  return OkStatus();
}

StatusOr<Shape> ShapeAfter(const Layer& layer, const Input& input) {
  StatusOr<Shape> shape = OutputShape(layer.config, input.shape);
  if (shape.ok() && layer.stated_input && *layer.stated_input != input.shape) {
    shape = InvalidArgument("expected examples of shape ", layer.stated_input->ToString(),
                            ", as its input shape says, got ", input.shape.ToString());
  }
  if (shape.ok()) {
    RETURN_IF_ERROR(Annotate(CheckSize(*shape), Describe(layer)));
    return shape;
  }
  return Annotate(shape.status(), StrCat(Describe(layer), " does not fit after ", input.giver));
}

std::vector<VariableSpec> VariablesOf(const Layer& layer, const Shape& in) {
  std::vector<VariableSpec> variables = Variables(layer.config, in);
  for (VariableSpec& variable : variables) {
    variable.name = StrCat(layer.name, "/", variable.name);
    variable.trainable = variable.trainable && layer.trainable;
  }
  return variables;
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

int64_t Parameters(const std::vector<VariableSpec>& variables) {
  int64_t count = 0;
  for (const VariableSpec& variable : variables) count += variable.shape.num_elements();
  return count;
}

}  // namespace

Model Sequential(std::string name, std::vector<Layer> layers) {
  Model model{.name = std::move(name), .layers = std::move(layers)};
  for (int i = 0; i < static_cast<int>(model.layers.size()); ++i) {
    model.calls.push_back(
        {.layer = i, .inputs = i == 0 ? std::vector<int>() : std::vector<int>{i - 1}});
  }
  model.output = static_cast<int>(model.layers.size()) - 1;
  return model;
}

std::string Describe(const Layer& layer) {
  return StrCat("layer ", layer.name, " (", ClassName(layer.config), ")");
}

std::optional<Shape> StatedFeatureShape(const Model& model) {
  for (const Call& call : model.calls) {
    if (!call.inputs.empty()) continue;
    const Layer& layer = model.layers[static_cast<size_t>(call.layer)];
    if (const auto* input = std::get_if<InputLayer>(&layer.config)) return input->shape;
    if (layer.stated_input) return layer.stated_input;
  }
  return std::nullopt;
}

StatusOr<std::vector<Shape>> CallShapes(const Model& model, const Shape& feature_shape) {
  RETURN_IF_ERROR(Annotate(CheckSize(feature_shape), "the data"));
  std::vector<Shape> shapes;
  for (const Call& call : model.calls) {
    const Layer& layer = model.layers[static_cast<size_t>(call.layer)];
    ASSIGN_OR_RETURN(Shape shape, ShapeAfter(layer, InputOf(model, shapes, call, feature_shape)));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

StatusOr<Shape> OutputShape(const Model& model, const Shape& feature_shape) {
  ASSIGN_OR_RETURN(std::vector<Shape> shapes, CallShapes(model, feature_shape));
  return shapes[static_cast<size_t>(model.output)];
}

StatusOr<std::vector<VariableSpec>> Variables(const Model& model, const Shape& feature_shape) {
  ASSIGN_OR_RETURN(std::vector<Shape> shapes, CallShapes(model, feature_shape));
  std::vector<VariableSpec> variables;
  std::vector<bool> seen(model.layers.size());
  for (const Call& call : model.calls) {
    const size_t index = static_cast<size_t>(call.layer);
    if (seen[index]) continue;
    seen[index] = true;
    const Input input = InputOf(model, shapes, call, feature_shape);
    for (VariableSpec& variable : VariablesOf(model.layers[index], input.shape)) {
      RETURN_IF_ERROR(Annotate(CheckSize(variable.shape), StrCat("variable ", variable.name)));
      variables.push_back(std::move(variable));
    }
  }
  return variables;
}

StatusOr<std::string> Summary(const Model& model, const Shape& feature_shape) {
  ASSIGN_OR_RETURN(std::vector<Shape> shapes, CallShapes(model, feature_shape));
  ASSIGN_OR_RETURN(std::vector<VariableSpec> all, Variables(model, feature_shape));
  std::string text = StrCat("Model ", model.name, ", features ", feature_shape.ToString(), "\n");
  for (size_t i = 0; i < model.calls.size(); ++i) {
    const Layer& layer = model.layers[static_cast<size_t>(model.calls[i].layer)];
    const Input input = InputOf(model, shapes, model.calls[i], feature_shape);
    text += Padded(StrCat(layer.name, " (", ClassName(layer.config), ")"), 32) +
            Padded(shapes[i].ToString(), 16) +
            StrCat(Parameters(VariablesOf(layer, input.shape)), layer.trainable ? "" : " (frozen)",
                   "\n");
  }
  return text + StrCat("Parameters: ", Parameters(all), "\n");
}

}  // namespace tfjob::model
