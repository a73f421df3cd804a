#include "runtime/model/keras/hdf5_weights.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/model/keras/layout.h"

namespace tfjob::keras {
namespace {

// Maps the name of each variable to the path of its dataset in a file.
using Places = std::map<std::string, std::string>;

bool HasAll(const io::Hdf5File& file, const Places& places) {
  return std::ranges::all_of(
      places, [&](const auto& place) { return file.datasets().contains(place.second); });
}

Places PlacesByStructure(const std::vector<Group>& groups) {
  Places places;
  for (const Group& group : groups) {
    for (size_t i = 0; i < group.variables.size(); ++i)
      places[group.variables[i]] = StrCat(group.path, "/vars/", i);
  }
  return places;
}

// Returns the name that the file gives to the object of a group, prefixed with the names of the
// enclosing objects: "bidirectional/forward_lstm/lstm_cell". Returns "" if the object has no name
// in the file.
std::string NameOf(const io::Hdf5File& file, const std::string& path) {
  std::string name;
  for (size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
    const StatusOr<std::string> part = file.Text(path.substr(0, slash) + "/vars", "name");
    if (part.ok()) name += (name.empty() ? "" : "/") + *part;
    if (slash == std::string::npos) return part.ok() ? name : "";
  }
}

// Finds the variables by the object names that Keras 3 writes as attributes.
Places PlacesByName(const io::Hdf5File& file, const std::vector<Group>& groups) {
  std::map<std::string, std::string> named;  // object name → path of its group
  for (const auto& [path, dataset] : file.datasets()) {
    const size_t vars = path.rfind("/vars/");
    if (vars == std::string::npos || path.starts_with("optimizer/")) continue;
    const std::string group = path.substr(0, vars), name = NameOf(file, group);
    if (!name.empty()) named[name] = group;
  }
  Places places;
  for (const Group& group : groups) {
    if (group.variables.empty()) continue;
    const std::string& first = group.variables[0];
    const auto found = named.find(first.substr(0, first.rfind('/')));
    for (size_t i = 0; found != named.end() && i < group.variables.size(); ++i)
      places[group.variables[i]] = StrCat(found->second, "/vars/", i);
  }
  return places;
}

size_t CountOf(const std::vector<Group>& groups) {
  size_t count = 0;
  for (const Group& group : groups) count += group.variables.size();
  return count;
}

StatusOr<Places> NativePlaces(const io::Hdf5File& file, const model::Model& model,
                              std::span<const model::VariableSpec> variables) {
  ASSIGN_OR_RETURN(const std::vector<Group> groups, Groups(model, variables));
  Places by_name = PlacesByName(file, groups);
  if (by_name.size() == CountOf(groups)) return by_name;
  // Files of tf.keras 2 do not contain object names, so try to find the variables by the model's
  // structure. The first versions of the format used a different name for the list of layers; try
  // this name last.
  Places by_structure = PlacesByStructure(groups);
  if (HasAll(file, by_structure)) return by_structure;
  Places older;
  for (const auto& [name, path] : by_structure)
    older[name] = StrCat("_layer_checkpoint_dependencies", path.substr(path.find('/')));
  if (HasAll(file, older)) return older;
  return by_name.empty() ? by_structure : by_name;
}

// Lists the weights of one layer in a file of the older format.
struct OldLayer {
  std::string name;
  std::vector<std::string> weights;  // their names
  std::vector<std::string> paths;
};

StatusOr<std::vector<OldLayer>> OldLayers(const io::Hdf5File& file, const std::string& root) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file.Texts(root, "layer_names"));
  std::vector<OldLayer> layers;
  for (const std::string& name : names) {
    const std::string group = StrCat(root, root.empty() ? "" : "/", name);
    const StatusOr<std::vector<std::string>> weights = file.Texts(group, "weight_names");
    if (!weights.ok() || weights->empty()) continue;
    layers.push_back({.name = name, .weights = *weights});
    for (const std::string& weight : *weights)
      layers.back().paths.push_back(StrCat(group, "/", weight));
  }
  return layers;
}

// Finds the weights of a layer. If the names in the file are exactly the names of the variables, as
// in files that this program writes, matches the weights by name. Otherwise, matches them by order.
void Place(const LayerWeights& layer, const OldLayer& old, Places& places) {
  const std::set<std::string> names(layer.variables.begin(), layer.variables.end());
  if (layer.variables.size() == old.weights.size() &&
      names == std::set<std::string>(old.weights.begin(), old.weights.end())) {
    for (size_t i = 0; i < old.paths.size(); ++i) places[old.weights[i]] = old.paths[i];
    return;
  }
  const size_t count = std::min(layer.variables.size(), old.paths.size());
  for (size_t i = 0; i < count; ++i) places[layer.variables[i]] = old.paths[i];
}

StatusOr<Places> OldPlaces(const io::Hdf5File& file, const std::string& root,
                           const model::Model& model,
                           std::span<const model::VariableSpec> variables) {
  ASSIGN_OR_RETURN(const std::vector<OldLayer> old, OldLayers(file, root));
  std::vector<LayerWeights> layers = WeightsByLayer(model, variables, TrainableFlags::kOfFile);
  std::erase_if(layers, [](const LayerWeights& layer) { return layer.variables.empty(); });
  Places by_name;
  size_t found = 0;
  for (const LayerWeights& layer : layers) {
    const auto same = std::ranges::find(old, layer.layer, &OldLayer::name);
    if (same == old.end()) continue;
    ++found;
    Place(layer, *same, by_name);
  }
  if (found == layers.size() || old.size() != layers.size()) return by_name;
  Places by_order;
  for (size_t i = 0; i < layers.size(); ++i) Place(layers[i], old[i], by_order);
  return by_order;
}

// Returns whether the dataset at this path does not contain weights.
bool IsOther(const std::string& path) {
  return path.starts_with("optimizer/") || path.starts_with("optimizer_weights/") ||
         path.starts_with("metrics/") || path.find("seed_generator/") != std::string::npos;
}

}  // namespace

StatusOr<Weights> WeightsOf(std::shared_ptr<const io::Hdf5File> file, const model::Model& model,
                            std::span<const model::VariableSpec> variables) {
  const std::string older = file->HasAttribute("model_weights", "layer_names") ||
                                    file->HasAttribute("model_weights", "layer_names0")
                                ? "model_weights"
                                : "";
  const bool old = !older.empty() || file->HasAttribute("", "layer_names") ||
                   file->HasAttribute("", "layer_names0");
  StatusOr<Places> places =
      old ? OldPlaces(*file, older, model, variables) : NativePlaces(*file, model, variables);
  RETURN_IF_ERROR(Annotate(places.status(), file->name()));
  Weights weights{.file = file->name()};
  std::set<std::string> used;
  std::erase_if(*places,
                [&](const auto& place) { return !file->datasets().contains(place.second); });
  for (const auto& [name, path] : *places) {
    const io::SafetensorsEntry& entry = file->datasets().at(path);
    weights.entries[name] = {entry.dtype, entry.shape};
    used.insert(path);
  }
  for (const auto& [path, entry] : file->datasets()) {
    if (!used.contains(path) && !IsOther(path)) weights.entries[path] = {entry.dtype, entry.shape};
  }
  const auto path_of = [places = *std::move(places)](const std::string& name) {
    const auto place = places.find(name);
    return place == places.end() ? name : place->second;
  };
  weights.read = [file, path_of](const std::string& name) { return file->Read(path_of(name)); };
  weights.open = [file, path_of](const std::string& name) -> StatusOr<PieceReader> {
    return PieceReader([file, path = path_of(name)](int64_t offset, std::span<std::byte> to) {
      return file->ReadPiece(path, offset, to);
    });
  };
  return weights;
}

}  // namespace tfjob::keras
