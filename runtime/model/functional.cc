#include "runtime/model/functional.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <utility>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/any_length.h"
#include "runtime/model/call_reader.h"
#include "runtime/model/call_writer.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras_layer.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/shape.h"
#include "runtime/model/tensorflow_functions.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model {
namespace {

// Represents one call of a layer in the file.
struct Node {
  int layer = 0;
  CallForm form = {};
};

// Returns the index of the layer's first call in a file's lists of model inputs and outputs.
int NumberAtEnds(const Layer& layer) {
  const auto* nested = layer.config.As<NestedModel>();
  return nested != nullptr && !nested->model->sequential ? kFirstCallAtEnds : 0;
}

// Returns whether the layer is or contains a BatchNormalization. RNN and Bidirectional contain only
// recurrent layers and cells.
bool HasBatchNormalization(const Layer& layer) {
  if (layer.config.As<layers::BatchNormalization>() != nullptr) return true;
  if (const auto* each = layer.config.As<layers::TimeDistributed>())
    return each->layer != nullptr && HasBatchNormalization(*each->layer);
  const auto* nested = layer.config.As<NestedModel>();
  return nested != nullptr && std::ranges::any_of(nested->model->layers, HasBatchNormalization);
}

// Returns the nodes in `from`, and those that they depend on, each after all nodes that it depends
// on. `inputs` lists for each node those that it depends on directly.
std::vector<int> SearchDepthFirst(const std::vector<std::vector<int>>& inputs,
                                  const std::vector<int>& from) {
  std::vector<int> finished;
  std::vector<size_t> visited(inputs.size());  // the number of visited inputs
  std::vector<bool> seen(inputs.size());
  for (int start : from) {
    if (seen[static_cast<size_t>(start)]) continue;
    seen[static_cast<size_t>(start)] = true;
    std::vector<int> path = {start};
    while (!path.empty()) {
      const auto node = static_cast<size_t>(path.back());
      if (visited[node] == inputs[node].size()) {
        finished.push_back(path.back());
        path.pop_back();
        continue;
      }
      const int input = inputs[node][visited[node]++];
      if (seen[static_cast<size_t>(input)]) continue;
      seen[static_cast<size_t>(input)] = true;
      path.push_back(input);
    }
  }
  return finished;
}

// Returns the nodes that the outputs depend on, in the order in which Keras calls them: by their
// distance from the outputs. The distance of a node is at least that of the nodes of the same layer
// that were found before it.
std::vector<int> OrderOfKeras(const std::vector<Node>& nodes,
                              const std::vector<std::vector<int>>& inputs,
                              const std::vector<int>& outputs) {
  std::vector<int> depths(nodes.size(), -1);
  std::map<int, int> depth_of_layer;
  std::vector<int> found;
  const auto deepen = [&](int node, int depth) {
    int& deepest = depths[static_cast<size_t>(node)];
    if (deepest < 0) found.push_back(node);
    deepest = std::max(deepest, depth);
  };
  const std::vector<int> finished = SearchDepthFirst(inputs, outputs);
  for (auto node = finished.rbegin(); node != finished.rend(); ++node) {
    int& of_layer = depth_of_layer[nodes[static_cast<size_t>(*node)].layer];
    deepen(*node, of_layer);
    of_layer = depths[static_cast<size_t>(*node)];
    for (int input : inputs[static_cast<size_t>(*node)]) deepen(input, of_layer + 1);
  }
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [&](int node) { return depths[static_cast<size_t>(node)]; });
  return found;
}

// Reads a file's functional model.
class FunctionalReader {
 public:
  explicit FunctionalReader(const JsonField& config) : config_(config) {}

  StatusOr<Model> Run() {
    ASSIGN_OR_RETURN(model_.name, config_["name"].StringOr("functional"));
    model_.sequential = false;
    RETURN_IF_ERROR(ReadLayers());
    RETURN_IF_ERROR(Connect());
    RETURN_IF_ERROR(CheckEffort(model_));
    RETURN_IF_ERROR(ReadEnds());
    RETURN_IF_ERROR(ReadTrainable());
    return CheckTypes();
  }

 private:
  Status ReadLayers() {
    ASSIGN_OR_RETURN(const std::vector<JsonField> fields, config_["layers"].Elements());
    if (fields.empty()) return config_["layers"].Mismatch("a list of at least one layer");
    LayerNames names;
    for (const JsonField& field : fields) {
      if (!IsTensorflowFunction(field)) {
        RETURN_IF_ERROR(ReadLayerAndNodes(field, names));
        continue;
      }
      ASSIGN_OR_RETURN(const Json translated, TranslateTensorflowFunction(field));
      const Status read = ReadLayerAndNodes(JsonField(translated, field.path()), names);
      RETURN_IF_ERROR(InTermsOfTensorflow(field, read));
    }
    return OkStatus();
  }

  Status ReadLayerAndNodes(const JsonField& field, LayerNames& names) {
    ASSIGN_OR_RETURN(Layer layer, ReadLayer(field, names));
    const int index = static_cast<int>(model_.layers.size());
    layers_[layer.name] = index;
    model_.layers.push_back(std::move(layer));
    nodes_of_.emplace_back();
    first_number_.push_back(0);
    first_at_ends_.push_back(NumberAtEnds(model_.layers.back()));
    return ReadNodes(field["inbound_nodes"], index);
  }

  Status ReadNodes(const JsonField& field, int layer) {
    ASSIGN_OR_RETURN(const std::vector<JsonField> nodes, field.Elements());
    const bool input =
        model_.layers[static_cast<size_t>(layer)].config.As<layers::InputLayer>() != nullptr;
    if (input != nodes.empty()) {
      return field.Mismatch(input ? "no calls of an InputLayer" : "the calls of the layer");
    }
    if (input) AddNode({.layer = layer});
    for (const JsonField& node : nodes) {
      Node read{.layer = layer};
      if (!node.IsObject()) {
        first_number_[static_cast<size_t>(layer)] = OldFirstNumber(layer);
        first_at_ends_[static_cast<size_t>(layer)] = OldFirstNumber(layer);
      }
      ASSIGN_OR_RETURN(read.form, ReadCall(node, model_.layers[static_cast<size_t>(layer)]));
      if (read.form.inputs.empty()) return node.Mismatch("a call with at least one input");
      AddNode(std::move(read));
    }
    return OkStatus();
  }

  // Returns the index that tf.keras 2 uses for the layer's first call. If a nested model starts
  // with an InputLayer, tf.keras 2 calls it once when it creates the model. This call has index 0,
  // but is not in the file.
  int OldFirstNumber(int layer) const {
    const auto* nested = model_.layers[static_cast<size_t>(layer)].config.As<NestedModel>();
    if (nested == nullptr) return 0;
    return nested->model->layers[0].config.As<layers::InputLayer>() == nullptr ? 0 : 1;
  }

  void AddNode(Node node) {
    nodes_of_[static_cast<size_t>(node.layer)].push_back(static_cast<int>(nodes_.size()));
    nodes_.push_back(std::move(node));
  }

  // Returns the node that computes a value. `first_numbers` contains one element per layer: the
  // index of the layer's first call in the part of the file at `where`.
  StatusOr<int> NodeOf(const History& history, const std::vector<int>& first_numbers,
                       const JsonField& where) const {
    const auto found = layers_.find(history.layer);
    if (found == layers_.end()) {
      std::vector<std::string> known;
      for (const auto& [name, index] : layers_) known.push_back(name);
      return InvalidArgument(where.path(), ": there is no layer ", history.layer,
                             DidYouMean(history.layer, known));
    }
    const auto layer = static_cast<size_t>(found->second);
    const std::vector<int>& nodes = nodes_of_[layer];
    const int64_t first = first_numbers[layer];
    if (history.node < first || history.node - first >= static_cast<int64_t>(nodes.size())) {
      return InvalidArgument(where.path(), ": layer ", history.layer, " has no call number ",
                             history.node, ": it has ", nodes.size());
    }
    return nodes[static_cast<size_t>(history.node - first)];
  }

  // Adds the calls to the model, in the file's order as far as possible. Each call comes after its
  // inputs. The calls of a shared BatchNormalization, or of a shared layer that contains one, have
  // Keras' order, because each of them updates the moving statistics that the one before has
  // updated.
  Status Connect() {
    std::vector<std::vector<int>> users(nodes_.size());
    std::vector<size_t> missing(nodes_.size());
    std::vector<std::vector<int>> inputs(nodes_.size()), masks(nodes_.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (const History& history : nodes_[n].form.inputs) {
        ASSIGN_OR_RETURN(const int from, NodeOf(history, first_number_, config_["layers"]));
        inputs[n].push_back(from);
        users[static_cast<size_t>(from)].push_back(static_cast<int>(n));
      }
      for (const std::optional<History>& history : nodes_[n].form.masks) {
        masks[n].push_back(-1);
        if (!history) continue;
        ASSIGN_OR_RETURN(masks[n].back(), NodeOf(*history, first_number_, config_["layers"]));
        users[static_cast<size_t>(masks[n].back())].push_back(static_cast<int>(n));
      }
      missing[n] = inputs[n].size() + static_cast<size_t>(std::ranges::count_if(
                                          masks[n], [](int from) { return from >= 0; }));
    }
    for (const auto& [before, after] : PairsOfSharedLayers(inputs, masks)) {
      users[static_cast<size_t>(before)].push_back(after);
      ++missing[static_cast<size_t>(after)];
    }
    for (size_t n = 0; n < nodes_.size(); ++n)
      if (missing[n] == 0) ready.push(static_cast<int>(n));
    call_of_.assign(nodes_.size(), -1);
    while (!ready.empty()) {
      const auto n = static_cast<size_t>(ready.top());
      ready.pop();
      call_of_[n] = static_cast<int>(model_.calls.size());
      AddCall(nodes_[n], inputs[n], masks[n]);
      for (int user : users[n]) {
        if (--missing[static_cast<size_t>(user)] == 0) ready.push(user);
      }
    }
    return ExpectNoCircle();
  }

  // Returns the pairs of successive calls of the same layer with a BatchNormalization, in Keras'
  // order.
  std::vector<std::pair<int, int>> PairsOfSharedLayers(
      std::vector<std::vector<int>> inputs, const std::vector<std::vector<int>>& masks) const {
    std::vector<std::pair<int, int>> pairs;
    const StatusOr<std::vector<std::pair<int, int>>> outputs = EndNodes(config_["output_layers"]);
    if (!outputs.ok()) return pairs;  // ReadEnds returns the error
    for (size_t n = 0; n < inputs.size(); ++n)
      std::ranges::copy_if(masks[n], std::back_inserter(inputs[n]), [](int m) { return m >= 0; });
    std::vector<int> from;
    for (const auto& [node, tensor] : *outputs) from.push_back(node);
    std::vector<bool> shared(model_.layers.size());
    for (size_t layer = 0; layer < shared.size(); ++layer)
      shared[layer] = nodes_of_[layer].size() > 1 && HasBatchNormalization(model_.layers[layer]);
    std::map<int, int> last;  // per layer
    for (int node : OrderOfKeras(nodes_, inputs, from)) {
      const int layer = nodes_[static_cast<size_t>(node)].layer;
      if (!shared[static_cast<size_t>(layer)]) continue;
      const auto [at, first] = last.try_emplace(layer, node);
      if (!first) pairs.emplace_back(std::exchange(at->second, node), node);
    }
    return pairs;
  }

  // Adds the call that `node` represents. `inputs` and `masks` are the nodes that compute its
  // inputs and masks.
  void AddCall(const Node& node, const std::vector<int>& inputs, const std::vector<int>& masks) {
    const auto value = [this](int from, const History& history) {
      return ValueRef{call_of_[static_cast<size_t>(from)], static_cast<int>(history.tensor)};
    };
    Call call{.layer = node.layer, .config = node.form.config};
    for (size_t i = 0; i < inputs.size(); ++i)
      call.inputs.push_back(value(inputs[i], node.form.inputs[i]));
    for (size_t i = 0; i < masks.size(); ++i)
      call.masks.push_back(masks[i] < 0 ? ValueRef() : value(masks[i], *node.form.masks[i]));
    model_.calls.push_back(std::move(call));
  }

  Status ExpectNoCircle() const {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (call_of_[n] >= 0) continue;
      return InvalidArgument(Describe(model_.layers[static_cast<size_t>(nodes_[n].layer)]),
                             " depends on its own output, directly or through other layers");
    }
    return OkStatus();
  }

  // Returns the node and the number of the output for each element of a list of ends.
  StatusOr<std::vector<std::pair<int, int>>> EndNodes(const JsonField& field) const {
    if (!field.present() || !field.value()->is_array())
      return field.Mismatch("a list of [layer, number of the call, number of the output]");
    std::vector<JsonField> elements = {field};
    if (!IsHistory(*field.value())) {
      ASSIGN_OR_RETURN(elements, field.Elements());
    }
    if (elements.empty() || elements.size() > kMostEnds)
      return field.Mismatch("a list of 1 to 1000 elements");
    std::vector<std::pair<int, int>> ends;
    for (const JsonField& element : elements) {
      ASSIGN_OR_RETURN(const History history, ReadHistory(element));
      ASSIGN_OR_RETURN(const int node, NodeOf(history, first_at_ends_, element));
      ends.emplace_back(node, static_cast<int>(history.tensor));
    }
    return ends;
  }

  StatusOr<std::vector<ValueRef>> ReadEnd(const JsonField& field) const {
    ASSIGN_OR_RETURN(const auto ends, EndNodes(field));
    std::vector<ValueRef> values;
    for (const auto& [node, tensor] : ends)
      values.push_back({call_of_[static_cast<size_t>(node)], tensor});
    return values;
  }

  Status ReadEnds() {
    ASSIGN_OR_RETURN(const std::vector<ValueRef> inputs, ReadEnd(config_["input_layers"]));
    ASSIGN_OR_RETURN(model_.outputs, ReadEnd(config_["output_layers"]));
    for (const ValueRef& input : inputs) {
      const Layer& layer = LayerOf(model_, input);
      const bool twice = std::ranges::find(model_.inputs, input.call) != model_.inputs.end();
      if (layer.config.As<layers::InputLayer>() == nullptr || twice) {
        return config_["input_layers"].Mismatch("InputLayers, each once");
      }
      model_.inputs.push_back(input.call);
    }
    for (size_t call = 0; call < model_.calls.size(); ++call) {
      if (!model_.calls[call].inputs.empty()) continue;
      if (std::ranges::find(model_.inputs, static_cast<int>(call)) != model_.inputs.end()) continue;
      return InvalidArgument(config_["input_layers"].path(), ": ",
                             Describe(LayerOf(model_, ValueRef{static_cast<int>(call)})),
                             " is not among them");
    }
    return OkStatus();
  }

  // Reads whether the model is trainable. As in Keras, if the model is not trainable, none of its
  // layers is, regardless of the layers' flags.
  Status ReadTrainable() {
    ASSIGN_OR_RETURN(const bool trainable, config_["trainable"].BoolOr(true));
    if (trainable) return OkStatus();
    for (Layer& layer : model_.layers) {
      layer.frozen_from_outside = layer.trainable;
      layer.trainable = false;
    }
    return OkStatus();
  }

  StatusOr<Model> CheckTypes() {
    // If there are unstated lengths, the data determine whether the layers are compatible.
    if (!HasAnyLength(model_)) {
      ASSIGN_OR_RETURN(const std::vector<TensorType> in, ExampleInputs(model_));
      RETURN_IF_ERROR(OutputTypes(model_, in).status());
    }
    return std::move(model_);
  }

  static constexpr size_t kMostEnds = 1000;
  const JsonField config_;
  Model model_;
  std::map<std::string, int> layers_;
  std::vector<Node> nodes_;                 // in file order
  std::vector<std::vector<int>> nodes_of_;  // the nodes of each layer
  std::vector<int> first_number_;           // per layer: the index of its first call in the file
  std::vector<int> first_at_ends_;          // the same for input_layers and output_layers
  std::vector<int> call_of_;                // the call of each node
};

// Returns, for each call, its index among all calls of the same layer.
std::vector<int> NumbersOf(const Model& model) {
  std::vector<int> numbers;
  std::vector<int> counts(model.layers.size());
  for (const Call& call : model.calls) numbers.push_back(counts[static_cast<size_t>(call.layer)]++);
  return numbers;
}

Json WriteHistory(const Model& model, const std::vector<int>& numbers, const ValueRef& value) {
  return {LayerOf(model, value).name, numbers[static_cast<size_t>(value.call)], value.output};
}

}  // namespace

StatusOr<Model> ReadFunctional(const JsonField& config) {
  return FunctionalReader(config).Run();
}

Json WriteFunctional(const Model& model) {
  // This call fails only if the layers are not compatible for any length that is tried.
  const auto types = StatedCallTypes(model);
  const std::vector<int> numbers = NumbersOf(model);
  std::vector<Json> layers;
  for (const Layer& layer : model.layers) {
    layers.push_back(WriteLayer(layer));
    layers.back()["name"] = layer.name;
    layers.back()["inbound_nodes"] = Json::array();
  }
  for (const Call& call : model.calls) {
    if (call.inputs.empty()) continue;
    const auto written = [&](const ValueRef& value) -> Json {
      if (value.call < 0) return nullptr;
      // Keras reads only the history, so any type will do if the actual type is unknown.
      TensorType type{DType::kFloat32, {}};
      if (types.ok())
        type = (*types)[static_cast<size_t>(value.call)][static_cast<size_t>(value.output)];
      return {{"class_name", "__keras_tensor__"},
              {"config",
               {{"shape", BatchShape(type.shape)},
                {"dtype", std::string(Name(type.dtype))},
                {"keras_history", WriteHistory(model, numbers, value)}}}};
    };
    std::vector<Json> tensors, masks;
    for (const ValueRef& input : call.inputs) tensors.push_back(written(input));
    for (const ValueRef& mask : call.masks) masks.push_back(written(mask));
    layers[static_cast<size_t>(call.layer)]["inbound_nodes"].push_back(
        WriteCall(model, call, std::move(tensors), std::move(masks)));
  }
  Json inputs = Json::array(), outputs = Json::array();
  for (int call : model.inputs) inputs.push_back(WriteHistory(model, numbers, {call}));
  for (const ValueRef& output : model.outputs) {
    outputs.push_back(WriteHistory(model, numbers, output));
    outputs.back()[1] =
        numbers[static_cast<size_t>(output.call)] + NumberAtEnds(LayerOf(model, output));
  }
  // Omit `trainable`, because Keras 3 would apply its value to all layers.
  return {{"name", model.name},
          {"layers", std::move(layers)},
          {"input_layers", std::move(inputs)},
          {"output_layers", std::move(outputs)}};
}

}  // namespace tfjob::model
