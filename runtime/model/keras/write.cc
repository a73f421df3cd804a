#include "runtime/model/keras/write.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/io/hdf5_file.h"
#include "runtime/io/safetensors.h"
#include "runtime/io/zip_writer.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/compile_config.h"
#include "runtime/model/keras/layout.h"

namespace tfjob::keras {
namespace {

// The Keras version whose formats are written.
constexpr char kKerasVersion[] = "3.15.1";

std::map<std::string, Tensor> ByName(const WholeModel& whole) {
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < whole.variables.size(); ++i)
    values.emplace(whole.variables[i].name, whole.values[i]);
  return values;
}

// The name of the Keras object that scales the loss.
constexpr char kLossScale[] = "loss_scale_optimizer";

// Returns the name of the Keras object that represents the optimizer.
std::string ObjectName(const optimizer::Optimizer& optimizer) {
  return model::SnakeCase(optimizer::Name(optimizer.kind));
}

// The variables of the optimizer as Keras stores them, with unique names such as
// "adam/dense/kernel/momentum". If the loss is scaled, the first variables, `scaling` of them,
// belong to the LossScaleOptimizer.
struct OptimizerVariablesOfKeras {
  io::NamedTensors named;
  size_t scaling = 0;
};

OptimizerVariablesOfKeras VariablesOfOptimizer(const WholeModel& whole) {
  OptimizerVariablesOfKeras stored;
  if (!whole.compiled || whole.compiled->state == nullptr) return stored;
  const OptimizerState& state = *whole.compiled->state;
  if (state.loss_scale) {
    const std::vector<Tensor> values = LossScaleValues(*state.loss_scale);
    for (size_t i = 0; i < values.size(); ++i)
      stored.named.emplace_back(StrCat(kLossScale, "/", kLossScaleVariables[i]), values[i]);
    stored.scaling = values.size();
  }
  const optimizer::Optimizer& optimizer = whole.compiled->optimizer;
  const std::vector<std::string> trained = TrainedVariables(whole.model, whole.variables);
  const std::vector<Tensor> values = ValuesOf(state, optimizer, trained);
  const auto variables = OptimizerVariables(optimizer, trained.size());
  for (size_t i = 0; i < values.size(); ++i) {
    stored.named.emplace_back(
        StrCat(ObjectName(optimizer), "/", NameOfVariable(variables[i], trained)), values[i]);
  }
  return stored;
}

// Adds the state of the optimizer in the format of Keras 3.
void AddOptimizer(const WholeModel& whole, io::NamedTensors& datasets, Json& attributes) {
  const auto [named, scaling] = VariablesOfOptimizer(whole);
  if (named.empty()) return;
  const std::string name = ObjectName(whole.compiled->optimizer);
  for (size_t i = 0; i < named.size(); ++i)
    datasets.emplace_back(StrCat("optimizer/vars/", i), named[i].second);
  attributes["optimizer/vars"] = {{"name", scaling > 0 ? kLossScale : name}};
  if (scaling == 0) return;
  constexpr char kInner[] = "optimizer/inner_optimizer/vars";
  for (size_t i = scaling; i < named.size(); ++i)
    datasets.emplace_back(StrCat(kInner, "/", i - scaling), named[i].second);
  attributes[kInner] = {{"name", name}};
}

// Returns a weights file in the format of Keras 3. Includes the state of the optimizer if
// `with_optimizer` is true.
StatusOr<io::MemoryFile> MakeWeights(const std::string& path, const WholeModel& whole,
                                     bool with_optimizer) {
  ASSIGN_OR_RETURN(const std::vector<Group> groups, Groups(whole.model, whole.variables));
  const std::map<std::string, Tensor> values = ByName(whole);
  io::NamedTensors datasets;
  Json attributes = {{"vars", {{"name", whole.model.name}}}};
  for (const Group& group : groups) {
    attributes[group.path + "/vars"] = {{"name", group.name}};
    for (size_t i = 0; i < group.variables.size(); ++i)
      datasets.emplace_back(StrCat(group.path, "/vars/", i), values.at(group.variables[i]));
  }
  if (with_optimizer) AddOptimizer(whole, datasets, attributes);
  return io::MakeHdf5(path, datasets, attributes);
}

// Adds the compile() settings and the state of the optimizer to a whole model in the older format.
void AddCompiled(const WholeModel& whole, io::NamedTensors& datasets, Json& attributes) {
  if (!whole.compiled) return;
  attributes[""]["training_config"] = PrintJson(OlderCompileConfig(whole.compiled->compile_config));
  const io::NamedTensors named = VariablesOfOptimizer(whole).named;
  if (named.empty()) return;
  Json names = Json::array();
  for (const auto& [name, value] : named) {
    names.push_back(name);
    datasets.emplace_back(StrCat("optimizer_weights/", name), value);
  }
  attributes["optimizer_weights"] = {{"weight_names", std::move(names)}};
}

// Returns a whole model in the older format.
StatusOr<io::MemoryFile> MakeOlderModel(const std::string& path, const WholeModel& whole) {
  const std::map<std::string, Tensor> values = ByName(whole);
  io::NamedTensors datasets;
  Json attributes = {{"",
                      {{"model_config", PrintJson(model::WriteKerasJson(whole.model))},
                       {"keras_version", kKerasVersion},
                       {"backend", "tensorflow"}}}};
  Json layer_names = Json::array();
  for (const LayerWeights& layer :
       WeightsByLayer(whole.model, whole.variables, TrainableFlags::kPresent)) {
    const std::string group = StrCat("model_weights/", layer.layer);
    layer_names.push_back(layer.layer);
    attributes[group] = {{"weight_names", layer.variables}};
    for (const std::string& name : layer.variables)
      datasets.emplace_back(StrCat(group, "/", name), values.at(name));
  }
  attributes["model_weights"] = {{"layer_names", std::move(layer_names)},
                                 {"keras_version", kKerasVersion},
                                 {"backend", "tensorflow"}};
  attributes["model_weights/top_level_model_weights"] = {{"weight_names", Json::array()}};
  AddCompiled(whole, datasets, attributes);
  return io::MakeHdf5(path, datasets, attributes);
}

Status WriteArchive(const std::string& path, const WholeModel& whole, FileSystem& files) {
  ASSIGN_OR_RETURN(io::MemoryFile weights, MakeWeights(path, whole, /*with_optimizer=*/true));
  ASSIGN_OR_RETURN(const std::string_view bytes, weights.Map());
  Json document = model::WriteKerasJson(whole.model);
  if (whole.compiled) document["compile_config"] = whole.compiled->compile_config;
  const std::string config = PrintJson(document);
  const std::string metadata = PrintJson({{"keras_version", kKerasVersion}});
  ASSIGN_OR_RETURN(const auto zip, io::ZipWriter::Create(path, files));
  const std::pair<const char*, std::string_view> members[] = {
      {"metadata.json", metadata}, {"config.json", config}, {"model.weights.h5", bytes}};
  for (const auto& [name, content] : members)
    RETURN_IF_ERROR(zip->Add(name, std::span(&content, 1)));
  return zip->Finish();
}

Status WriteMemory(const std::string& path, StatusOr<io::MemoryFile> made, FileSystem& files) {
  RETURN_IF_ERROR(made.status());
  ASSIGN_OR_RETURN(const std::string_view bytes, made->Map());
  return WriteFileAtomically(path, bytes, files);
}

Status WriteNamed(const std::string& path, const WholeModel& whole, FileSystem& files) {
  io::NamedTensors tensors;
  for (size_t i = 0; i < whole.variables.size(); ++i)
    tensors.emplace_back(whole.variables[i].name, whole.values[i]);
  return io::WriteSafetensors(path, tensors, {}, files);
}

}  // namespace

Status Write(const std::string& path, const WholeModel& whole, FileSystem& files) {
  if (path.ends_with(".keras")) return WriteArchive(path, whole, files);
  if (path.ends_with(".weights.h5"))
    return WriteMemory(path, MakeWeights(path, whole, /*with_optimizer=*/false), files);
  if (path.ends_with(".h5")) return WriteMemory(path, MakeOlderModel(path, whole), files);
  if (path.ends_with(".safetensors")) return WriteNamed(path, whole, files);
  return InvalidArgument(path, ": expected a name that ends in ",
                         absl::StrJoin(kWrittenFormats, ", "));
}

}  // namespace tfjob::keras
