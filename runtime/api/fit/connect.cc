// Connects layers into models: writes the model in Keras' JSON, and reads this JSON as if Keras had
// written it.
#include "runtime/api/connect.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/api/loops/calls.h"
#include "runtime/model/keras.h"
#include "runtime/model/layer/call_arguments.h"
#include "runtime/model/layer_table.h"

namespace tfjob::api {
namespace {

// Distributes the inputs of a call among the arguments of the layer: each argument takes one input,
// and a list takes all remaining inputs. Masks are not inputs.
class ArgumentsOfCall : public model::CallVisitor {
 public:
  explicit ArgumentsOfCall(std::vector<Json> inputs) : inputs_(std::move(inputs)) {}

  void Input(std::string_view name, int&, bool) override {
    if (next_ < inputs_.size() && !IsMask(name)) Add(name, inputs_[next_++]);
  }
  void First(std::string_view name, int& index, std::vector<int>&) override {
    Input(name, index, true);
  }
  void Inputs(std::string_view name, std::vector<int>&, bool) override {
    if (next_ == inputs_.size() || IsMask(name)) return;
    Json list = Json::array();
    while (next_ < inputs_.size()) list.push_back(inputs_[next_++]);
    Add(name, std::move(list));
  }
  void Flag(std::string_view, bool&) override {}
  void Operand(std::string_view, model::CallOperand&) override {}
  void Key(std::string_view, std::vector<model::KeyPart>&) override {}
  void Unsupported(std::string_view) override {}

  size_t used() const { return next_; }
  Json Written() && { return {{"args", std::move(args_)}, {"kwargs", std::move(kwargs_)}}; }

 private:
  static bool IsMask(std::string_view name) { return name.find("mask") != std::string_view::npos; }

  void Add(std::string_view name, Json value) {
    if (args_.empty()) {
      args_.push_back(std::move(value));
    } else {
      kwargs_[std::string(name)] = std::move(value);
    }
  }

  const std::vector<Json> inputs_;
  size_t next_ = 0;
  Json args_ = Json::array(), kwargs_ = Json::object();
};

// Replaces the objects that stand for inputs (kInputOfCall) with the inputs.
void PutInputs(const std::vector<Json>& inputs, Json& arguments) {
  if (!arguments.is_structured()) return;
  if (arguments.is_object() && arguments.contains(kInputOfCall)) {
    arguments = inputs[arguments[kInputOfCall].get<size_t>()];
    return;
  }
  for (Json& part : arguments) PutInputs(inputs, part);
}

}  // namespace

StatusOr<Json> WriteNode(const CallData& call, const std::string& name, std::vector<Json> inputs) {
  const LayerData& layer = *call.layer;
  if (!call.arguments.is_null()) {
    Json written = call.arguments;
    PutInputs(inputs, written);
    return written;
  }
  const std::optional<model::LayerConfig> config = model::MakeLayer(layer.class_name());
  if (config && config->takes_arguments()) {
    const size_t given = inputs.size();
    ArgumentsOfCall arguments(std::move(inputs));
    (void)config->Called(arguments);
    if (arguments.used() == given) return std::move(arguments).Written();
    return InvalidArgument("layer ", name, " (", layer.class_name(), "): a call takes at most ",
                           arguments.used(),
                           arguments.used() == 1 ? " input, got " : " inputs, got ", given);
  }
  Json args = Json::array();
  args.push_back(inputs.size() == 1 ? std::move(inputs[0]) : Json(std::move(inputs)));
  return Json{{"args", std::move(args)}, {"kwargs", Json::object()}};
}

namespace {

// Adds the values of a layer's variables, under the names that the variables have in a model that
// contains the layer as `name`.
void AddValues(const LayerData& layer, const std::string& name, VariableValues& values) {
  if (layer.values == nullptr) return;
  for (const auto& [variable, value] : *layer.values) values[StrCat(name, "/", variable)] = value;
}

std::shared_ptr<const VariableValues> SharedUnlessEmpty(VariableValues values) {
  if (values.empty()) return nullptr;
  return std::make_shared<const VariableValues>(std::move(values));
}

// Writes a functional model in Keras' JSON.
class Connector {
 public:
  StatusOr<Json> Run(const Symbols& inputs, const Symbols& outputs, const std::string& name) {
    Json input_layers = Json::array(), output_layers = Json::array();
    for (const Symbol& input : inputs.values()) {
      const CallData* call = Access::Call(input);
      RETURN_IF_ERROR(ExpectLayer(*call));
      if (!call->inputs.empty() || call->layer->class_name() != "InputLayer") {
        return InvalidArgument("an input of model ", name, " is the output of a layer (",
                               call->layer->class_name(), "); expected a value made from an Input");
      }
      inputs_.insert(call);
      ASSIGN_OR_RETURN(Json history, Visit(input));
      input_layers.push_back(std::move(history));
    }
    for (const Symbol& output : outputs.values()) {
      ASSIGN_OR_RETURN(Json history, Visit(output));
      if (IsFunctionalModel(layers_[places_.at(Access::Call(output)).layer]))
        history[1] = history[1].get<int64_t>() + model::kFirstCallAtEnds;
      output_layers.push_back(std::move(history));
    }
    Json config = {{"name", name}};
    config["layers"] = std::move(layers_);
    config["input_layers"] = std::move(input_layers);
    config["output_layers"] = std::move(output_layers);
    Json document = {{"class_name", "Functional"}};
    document["config"] = std::move(config);
    return document;
  }

  // Returns the values of the layers' variables that were read from files.
  VariableValues TakeValues() { return std::move(values_); }

 private:
  static bool IsFunctionalModel(const Json& layer) {
    return layer["class_name"] == "Functional" && layer["config"].contains("layers");
  }

  // Returns an error if the value belongs to the step of a function.
  static tfjob::Status ExpectLayer(const CallData& call) {
    if (call.step == nullptr) return OkStatus();
    return InvalidArgument("a value of the step of a Function cannot be part of a model");
  }

  struct Place {
    size_t layer = 0;
    int64_t node = 0;  // the index of the call among the calls of its layer
  };

  // Returns the origin of a value: [layer, index of the call, index of the output].
  StatusOr<Json> Visit(const Symbol& symbol) {
    const CallData* call = Access::Call(symbol);
    if (!places_.contains(call)) RETURN_IF_ERROR(Write(*call));
    const Place& place = places_.at(call);
    return Json::array({layers_[place.layer]["name"], place.node, Access::Output(symbol)});
  }

  // Writes the call after the calls that it depends on. Keeps a list of the calls to write, instead
  // of using recursion, because a deep model could overflow the stack.
  tfjob::Status Write(const CallData& last) {
    std::vector<const CallData*> waiting = {&last};
    while (!waiting.empty()) {
      const CallData* call = waiting.back();
      const size_t before = waiting.size();
      for (auto input = call->inputs.rbegin(); input != call->inputs.rend(); ++input) {
        if (!places_.contains(Access::Call(*input))) waiting.push_back(Access::Call(*input));
      }
      if (waiting.size() > before) continue;
      waiting.pop_back();
      if (!places_.contains(call)) RETURN_IF_ERROR(WriteCall(*call));
    }
    return OkStatus();
  }

  tfjob::Status WriteCall(const CallData& call) {
    RETURN_IF_ERROR(ExpectLayer(call));
    ASSIGN_OR_RETURN(const size_t layer, PlaceOf(call.layer));
    Json& written = layers_[layer];
    const std::string& name = written["name"].get_ref<const std::string&>();
    const auto node = static_cast<int64_t>(calls_[layer]++);
    if (call.inputs.empty()) {
      if (call.layer->class_name() != "InputLayer")
        return InvalidArgument("layer ", name, " was called without an input");
      if (!inputs_.contains(&call)) {
        return InvalidArgument("an output depends on the input ", name,
                               ", which is not among the inputs of the model; add it");
      }
    } else {
      std::vector<Json> tensors;
      for (const Symbol& input : call.inputs) tensors.push_back(Tensor(input));
      ASSIGN_OR_RETURN(Json arguments, WriteNode(call, name, std::move(tensors)));
      written["inbound_nodes"].push_back(std::move(arguments));
    }
    places_[&call] = {layer, node};
    return OkStatus();
  }

  // Returns the JSON that a call uses to refer to the value as an argument. The call that computes
  // the value must already be in places_.
  Json Tensor(const Symbol& symbol) const {
    const Place& place = places_.at(Access::Call(symbol));
    // The reader uses only keras_history, so the shape and the dtype need not be correct.
    Json config = {{"shape", Json::array({nullptr})}, {"dtype", "float32"}};
    config["keras_history"] =
        Json::array({layers_[place.layer]["name"], place.node, Access::Output(symbol)});
    return {{"class_name", "__keras_tensor__"}, {"config", std::move(config)}};
  }

  // Returns the layer's index in layers_, adding it first if necessary.
  StatusOr<size_t> PlaceOf(const std::shared_ptr<const LayerData>& layer) {
    const auto found = layer_places_.find(layer.get());
    if (found != layer_places_.end()) return found->second;
    RETURN_IF_ERROR(layer->error);
    Json form = layer->form;
    std::string name = layer->name();
    const bool whole_model = form["config"].contains("layers");
    if (name.empty() || (whole_model && names_.contains(name)))
      name = FreeName(name.empty() ? model::SnakeCase(layer->class_name()) : name);
    if (!names_.insert(name).second) {
      return InvalidArgument("two layers of the model are called \"", name,
                             "\"; give each its own name");
    }
    form["config"]["name"] = name;
    form["name"] = name;
    form["inbound_nodes"] = Json::array();
    AddValues(*layer, name, values_);
    const size_t place = layers_.size();
    layers_.push_back(std::move(form));
    calls_.push_back(0);
    layer_places_[layer.get()] = place;
    return place;
  }

  // Returns the first free name of "dense", "dense_1", …
  std::string FreeName(const std::string& base) {
    std::string name;
    do {
      const int number = numbers_[base]++;
      name = number == 0 ? base : StrCat(base, "_", number);
    } while (names_.contains(name));
    return name;
  }

  std::set<const CallData*> inputs_;
  Json layers_ = Json::array();
  std::vector<size_t> calls_;  // by layer: how many calls have been written
  std::map<const LayerData*, size_t> layer_places_;
  std::map<const CallData*, Place> places_;
  std::set<std::string> names_;
  std::map<std::string, int> numbers_;
  VariableValues values_;
};

}  // namespace

StatusOr<Json> WriteFunctional(const Symbols& inputs, const Symbols& outputs,
                               const std::string& name) {
  return Connector().Run(inputs, outputs, name);
}

namespace {

StatusOr<Model> Connect(const Symbols& inputs, const Symbols& outputs, const std::string& name) {
  Connector connector;
  ASSIGN_OR_RETURN(const Json document, connector.Run(inputs, outputs, name));
  ASSIGN_OR_RETURN(model::Model model,
                   model::ReadKerasJson(PrintJson(document), StrCat("model ", name)));
  return Access::MakeModel(std::move(model), name, SharedUnlessEmpty(connector.TakeValues()));
}

StatusOr<Model> Chain(const std::vector<Layer>& layers, const std::string& name) {
  Json list = Json::array();
  std::map<const LayerData*, size_t> places;
  VariableValues values;
  for (const Layer& layer : layers) {
    if (!layer.present())
      return InvalidArgument("layer ", list.size(), " of model ", name, " has no class");
    const LayerData& data = Access::Data(layer);
    const auto [before, added] = places.emplace(&data, list.size());
    if (!added) {
      return InvalidArgument("layer ", list.size(), " of model ", name, " is also layer ",
                             before->second,
                             "; a Sequential takes a layer once: use Functional to ",
                             "share the variables, or make another layer (Model::Clone)");
    }
    RETURN_IF_ERROR(data.error);
    AddValues(data, data.name(), values);
    list.push_back(data.form);
  }
  Json config = {{"name", name}};
  config["layers"] = std::move(list);
  Json document = {{"class_name", "Sequential"}};
  document["config"] = std::move(config);
  ASSIGN_OR_RETURN(model::Model model,
                   model::ReadKerasJson(PrintJson(document), StrCat("model ", name)));
  return Access::MakeModel(std::move(model), name, SharedUnlessEmpty(std::move(values)));
}

}  // namespace

Model Sequential(const std::vector<Layer>& layers, const std::string& name) {
  StatusOr<Model> chain = Chain(layers, name);
  return chain.ok() ? *std::move(chain) : Access::MakeModel(chain.status(), name);
}

Model Functional(const Symbols& inputs, const Symbols& outputs, const std::string& name) {
  StatusOr<Model> connected = Connect(inputs, outputs, name);
  return connected.ok() ? *std::move(connected) : Access::MakeModel(connected.status(), name);
}

}  // namespace tfjob::api
