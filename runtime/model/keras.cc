#include "runtime/model/keras.h"

#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/did_you_mean.h"

namespace tfjob::model {
namespace {

// Converts a class name to snake case by Keras' rule: a word begins at a capital letter that comes
// directly after or before a lower-case letter ("ReLU" → "re_lu").
std::string SnakeCase(std::string_view name) {
  const auto upper = [&](size_t i) {
    return i < name.size() && std::isupper(static_cast<unsigned char>(name[i]));
  };
  const auto lower = [&](size_t i) {
    return i < name.size() && std::islower(static_cast<unsigned char>(name[i]));
  };
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(i) && (lower(i - 1) || lower(i + 1))) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return snake;
}

// Generates names for layers that have none in the file ("dense", "dense_1", …), and checks that
// the names in a model are unique.
class Names {
 public:
  std::string Next(std::string_view class_name) {
    std::string base = SnakeCase(class_name);
    const int number = counts_[base]++;
    return number == 0 ? base : StrCat(base, "_", number);
  }
  Status Take(const std::string& name, const JsonField& field) {
    if (taken_.insert(name).second) return OkStatus();
    return InvalidArgument(field.path(), ": two layers are called \"", name,
                           "\"; give each its own name");
  }

 private:
  std::map<std::string, int> counts_;
  std::set<std::string> taken_;
};

Status CheckName(const std::string& name, const JsonField& field) {
  for (char c : name) {
    const bool fine =
        std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    if (!fine) return field.Mismatch("a name of letters, digits, '_', '-' and '.'");
  }
  return name.empty() ? field.Mismatch("a name that is not empty") : OkStatus();
}

// Reads Keras 2's description of the first layer's input.
Status ReadStatedInput(Arguments& arguments, Layer& layer) {
  RETURN_IF_ERROR(arguments.ReadBatchShape("batch_input_shape", layer.stated_input));
  RETURN_IF_ERROR(arguments.ReadShape("input_shape", layer.stated_input));
  int64_t dim = 0;
  RETURN_IF_ERROR(arguments.Read("input_dim", dim));
  if (dim > 0) layer.stated_input = Shape({dim});
  return OkStatus();
}

// Reads Keras 3's record of the shape that the layer was built for. Returns nullopt for
// unknown forms.
std::optional<Shape> ReadBuildShape(const JsonField& field) {
  if (!field.present() || !field.value()->is_array() || field.value()->empty()) return std::nullopt;
  std::vector<int64_t> dims;
  for (size_t i = 1; i < field.value()->size(); ++i) {
    const StatusOr<int64_t> dim = field[i].Int();
    if (!dim.ok() || *dim < 1) return std::nullopt;
    dims.push_back(*dim);
  }
  return Shape(std::move(dims));
}

// Reads the fields that every layer's config may contain.
Status ReadCommon(Arguments& arguments, Layer& layer) {
  RETURN_IF_ERROR(arguments.Read("trainable", layer.trainable));
  const JsonField dtype = arguments["dtype"];
  const JsonField policy = dtype["config"]["name"].present() ? dtype["config"]["name"] : dtype;
  if (policy.present() && *policy.value() != "float32") {
    return InvalidArgument(arguments.subject(), ": ", policy.path(), ": dtype ",
                           DescribeJson(*policy.value()), " is not supported; only float32 is");
  }
  if (!std::holds_alternative<InputLayer>(layer.config)) return ReadStatedInput(arguments, layer);
  return OkStatus();
}

Status UnsupportedClass(const JsonField& field, const std::string& class_name) {
  return InvalidArgument(field.path(), ": layer class ", class_name, " is not supported",
                         DidYouMean(class_name, LayerClasses()));
}

StatusOr<Layer> ReadLayer(const JsonField& field, Names& names) {
  ASSIGN_OR_RETURN(ClassForm form, ReadClassForm(field, "a layer"));
  std::optional<LayerConfig> config = MakeLayer(form.class_name);
  const JsonField registered = field["registered_name"];
  const bool custom =
      registered.present() && registered.StringOr("").value_or("").find('>') != std::string::npos;
  if (!config || custom) return UnsupportedClass(field, form.class_name);
  Layer layer{.config = *config};
  const JsonField name = form.arguments["name"];
  if (name.present()) {
    ASSIGN_OR_RETURN(layer.name, name.String());
    RETURN_IF_ERROR(CheckName(layer.name, name));
  } else {
    layer.name = names.Next(form.class_name);
  }
  RETURN_IF_ERROR(names.Take(layer.name, field));
  Arguments arguments(Describe(layer), form.arguments);
  arguments.Ignore("name");
  RETURN_IF_ERROR(ReadCommon(arguments, layer));
  RETURN_IF_ERROR(ReadArguments(layer.config, arguments));
  RETURN_IF_ERROR(arguments.Finish());
  const std::optional<Shape> built = ReadBuildShape(form.stated);
  if (built && !layer.stated_input) layer.stated_input = built;
  return layer;
}

StatusOr<std::vector<Layer>> ReadLayerList(const JsonField& field) {
  ASSIGN_OR_RETURN(std::vector<JsonField> elements, field.Elements());
  if (elements.empty()) return field.Mismatch("a list of at least one layer");
  Names names;
  std::vector<Layer> layers;
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(Layer layer, ReadLayer(element, names));
    layers.push_back(std::move(layer));
  }
  return layers;
}

StatusOr<Model> ReadSequential(const JsonField& root) {
  ASSIGN_OR_RETURN(std::string class_name, root["class_name"].String());
  if (class_name != "Sequential") {
    return InvalidArgument("class_name: model class ", class_name,
                           " is not supported; only Sequential is");
  }
  const JsonField config = root["config"];
  // In the first versions of Keras 2, `config` was the list of layers itself.
  const bool list = config.present() && config.value()->is_array();
  ASSIGN_OR_RETURN(std::vector<Layer> layers, ReadLayerList(list ? config : config["layers"]));
  ASSIGN_OR_RETURN(std::string name, config["name"].StringOr("sequential"));
  return Sequential(std::move(name), std::move(layers));
}

Json BatchShape(const Shape& example) {
  Json dims = Json::array({nullptr});
  for (int64_t dim : example.dims()) dims.push_back(dim);
  return dims;
}

Json Policy() {
  return {{"module", "keras"},
          {"class_name", "DTypePolicy"},
          {"config", {{"name", "float32"}}},
          {"registered_name", nullptr}};
}

Json WriteLayer(const Layer& layer) {
  Json config = Json::object();
  WriteArguments(layer.config, config);
  config["name"] = layer.name;
  const bool input = std::holds_alternative<InputLayer>(layer.config);
  config["dtype"] = input ? Json("float32") : Policy();
  if (!input) config["trainable"] = layer.trainable;
  Json json = {{"module", "keras.layers"},
               {"class_name", std::string(ClassName(layer.config))},
               {"config", std::move(config)},
               {"registered_name", nullptr}};
  if (layer.stated_input) json["build_config"] = {{"input_shape", BatchShape(*layer.stated_input)}};
  return json;
}

}  // namespace

StatusOr<Model> ReadKerasJson(std::string_view text, std::string_view what) {
  ASSIGN_OR_RETURN(Json document, ParseJson(text, what));
  StatusOr<Model> model = ReadSequential(JsonField(document));
  if (!model.ok()) return Annotate(model.status(), what);
  return model;
}

StatusOr<Model> ReadLayers(const JsonField& layers) {
  ASSIGN_OR_RETURN(std::vector<Layer> list, ReadLayerList(layers));
  return Sequential("sequential", std::move(list));
}

Json WriteKerasJson(const Model& model) {
  Json layers = Json::array();
  for (const Layer& layer : model.layers) layers.push_back(WriteLayer(layer));
  Json config = {{"name", model.name},
                 {"trainable", true},
                 {"dtype", Policy()},
                 {"layers", std::move(layers)}};
  const std::optional<Shape> features = StatedFeatureShape(model);
  if (features) config["build_input_shape"] = BatchShape(*features);
  return {{"module", "keras"},
          {"class_name", "Sequential"},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

}  // namespace tfjob::model
