#include "runtime/train/job/named_sources.h"

#include <algorithm>
#include <map>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/build.h"

namespace tfjob::train {
namespace {

using config::SourceConfig;
using Names = std::map<std::string, std::string>;

Status CheckNames(const Role& role, const Names& given) {
  for (const auto& [name, array] : given) {
    if (name.empty() || std::ranges::find(role.layers, name) != role.layers.end()) continue;
    return InvalidArgument(role.key, ".", name, ": the model has no such input or output",
                           DidYouMean(name, role.layers));
  }
  return OkStatus();
}

// Adds the arrays of one role. If the file assigns no array to a layer, the layer uses the array of
// the same name or, if it is the only layer, the array `otherwise`.
Status AddSources(const Role& role, const Names& given, Extent extent,
                  std::vector<data::NpzOptions::Source>& sources) {
  RETURN_IF_ERROR(CheckNames(role, given));
  const bool only_one = given.contains("");
  if (only_one && role.layers.size() > 1) {
    return InvalidArgument(role.key, ": the model has ", role.layers.size(),
                           " of them: give a map of their names to arrays");
  }
  for (size_t i = 0; i < role.layers.size(); ++i) {
    const auto found = given.find(only_one ? "" : role.layers[i]);
    if (found == given.end() && extent == Extent::kNamed) continue;
    const std::string& default_name = role.layers.size() == 1 ? role.otherwise : role.layers[i];
    sources.push_back({role.arrays[i], found == given.end() ? default_name : found->second});
  }
  return OkStatus();
}

Status AddSampleWeights(const Role& role, const Names& given,
                        std::vector<data::NpzOptions::Source>& sources) {
  RETURN_IF_ERROR(CheckNames(role, given));
  for (size_t i = 0; i < role.layers.size(); ++i) {
    auto found = given.find(role.layers[i]);
    if (found == given.end()) found = given.find("");
    if (found != given.end()) sources.push_back({role.arrays[i], found->second});
  }
  return OkStatus();
}

}  // namespace

Role InputRole(const model::Model& model, Split split) {
  Role role{
      .key = StrCat(KeyOf(split), ".inputs"), .arrays = model::InputNames(model), .otherwise = "x"};
  for (int call : model.inputs) role.layers.push_back(model::LayerOf(model, {call}).name);
  return role;
}

Role OutputRole(const model::Model& model, Split split, std::string_view key,
                std::string (*array)(const model::Model&, size_t), std::string otherwise) {
  Role role{.key = StrCat(KeyOf(split), ".", key),
            .layers = model::OutputNames(model),
            .otherwise = std::move(otherwise)};
  for (size_t i = 0; i < role.layers.size(); ++i) role.arrays.push_back(array(model, i));
  return role;
}

StatusOr<std::vector<data::NpzOptions::Source>> NamedSources(const SourceConfig& source,
                                                             Split split, const model::Model& model,
                                                             Extent extent) {
  std::vector<data::NpzOptions::Source> sources;
  RETURN_IF_ERROR(AddSources(InputRole(model, split), source.inputs, extent, sources));
  if (extent == Extent::kInputs) return sources;
  const size_t inputs = sources.size();
  RETURN_IF_ERROR(AddSources(OutputRole(model, split, "targets", model::LabelsName, "y"),
                             source.targets, extent, sources));
  RETURN_IF_ERROR(
      AddSampleWeights(OutputRole(model, split, "sample_weights", model::SampleWeightsName, ""),
                       source.sample_weights, sources));
  if (extent == Extent::kInputsAndPresent) {
    for (size_t i = inputs; i < sources.size(); ++i) sources[i].optional = true;
  }
  return sources;
}

}  // namespace tfjob::train
