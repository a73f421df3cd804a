// Implements the C++ half of the interoperability tests. Each verb reads a request as JSON from
// standard input, and writes the answer as JSON to standard output. The other half,
// interop_test.py, compares the answers with TensorFlow, Keras and TensorBoard.
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/json.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/event_writer.h"
#include "runtime/kernels/stream.h"
#include "runtime/model/build.h"
#include "runtime/model/keras.h"
#include "runtime/optimizer/optimizer.h"
#include "tests/interop/data_verbs.h"
#include "tests/interop/json_tensor.h"
#include "tests/interop/model_verbs.h"

namespace tfjob {
namespace {

// {"prefix": …, "tensors": {name: {dtype, shape, values}}} → {}
StatusOr<Json> WriteCheckpoint(const Json& request) {
  ASSIGN_OR_RETURN(auto writer, io::BundleWriter::Create(request["prefix"].get<std::string>()));
  for (const auto& [name, tensor] : request["tensors"].items())
    RETURN_IF_ERROR(writer->Add(name, ToTensor(tensor)));
  RETURN_IF_ERROR(writer->Finish());
  return Json::object();
}

// {"prefix": …} → {name: {dtype, shape, values}}; an unsupported tensor is {"error": …}
StatusOr<Json> ReadCheckpoint(const Json& request) {
  ASSIGN_OR_RETURN(auto reader, io::BundleReader::Open(request["prefix"].get<std::string>()));
  Json reply = Json::object();
  for (const auto& [name, entry] : reader->entries()) {
    StatusOr<Tensor> tensor = reader->Read(name);
    reply[name] = tensor.ok() ? ToJson(*tensor) : Json{{"error", tensor.status().ToString()}};
  }
  return reply;
}

// {"folder": …, "start": step, "points": [[step, {tag: value}], …]} → {}
StatusOr<Json> WriteEvents(const Json& request) {
  ASSIGN_OR_RETURN(auto writer, io::EventWriter::Create(request["folder"].get<std::string>(),
                                                        RealClock().Now()));
  if (request.contains("start")) {
    RETURN_IF_ERROR(writer->AddStart(request["start"].get<int64_t>(), RealClock().Now()));
  }
  for (const Json& point : request["points"]) {
    const auto scalars = point[1].get<std::map<std::string, double>>();
    RETURN_IF_ERROR(writer->AddScalars(point[0].get<int64_t>(), {scalars.begin(), scalars.end()},
                                       RealClock().Now()));
  }
  return Json::object();
}

// Returns the optimizer that the members describe. Missing members have their defaults.
StatusOr<optimizer::Optimizer> ToOptimizer(const Json& given) {
  ASSIGN_OR_RETURN(const auto kind, optimizer::ParseKind(given["kind"].get<std::string>()));
  Json json = optimizer::ToJson(optimizer::Optimizer::Default(kind));
  json.update(given);
  if (!json["learning_rate_schedule"].empty()) {
    Json schedule = optimizer::ToJson(optimizer::Schedule{.decay = optimizer::Decay::kExponential});
    schedule.update(given["learning_rate_schedule"]);
    json["learning_rate_schedule"] = std::move(schedule);
  }
  return optimizer::ParseOptimizer(JsonField(json));
}

// {"optimizer": {kind, …}, "variable": [floats], "gradients": [[floats], …]} → the variable
// after each step
StatusOr<Json> ApplyOptimizer(const Json& request) {
  ASSIGN_OR_RETURN(const optimizer::Optimizer made, ToOptimizer(request["optimizer"]));
  auto variable = request["variable"].get<std::vector<float>>();
  std::vector<std::vector<float>> slots;
  std::vector<std::span<float>> views;
  for (const optimizer::Slot& slot : optimizer::Slots(made)) {
    slots.emplace_back(variable.size(), static_cast<float>(slot.initial_value));
    if (slot.starts_as_variable) slots.back() = variable;
  }
  for (std::vector<float>& slot : slots) views.emplace_back(slot);
  Json reply = Json::array();
  kernels::Stream stream;
  for (size_t step = 0; step < request["gradients"].size(); ++step) {
    const auto gradient = request["gradients"][step].get<std::vector<float>>();
    optimizer::Apply(made, static_cast<int64_t>(step), variable, gradient, views, stream);
    reply.push_back(variable);
  }
  return reply;
}

model::Loss ToLoss(const Json& json) {
  model::Loss loss{.kind = *model::ParseLoss(json["name"].get<std::string>())};
  loss.from_logits = json.value("from_logits", loss.from_logits);
  loss.label_smoothing = json.value("label_smoothing", loss.label_smoothing);
  if (json.contains("alpha")) loss.alpha = json["alpha"].get<double>();
  if (json.contains("gamma")) loss.gamma = json["gamma"].get<double>();
  loss.beta = json.value("beta", loss.beta);
  loss.margin = json.value("margin", loss.margin);
  loss.remove_diagonal = json.value("remove_diagonal", loss.remove_diagonal);
  loss.axes = json.value("axis", loss.axes);
  loss.delta = json.value("delta", loss.delta);
  loss.q = json.value("q", loss.q);
  loss.apply_class_balancing = json.value("apply_class_balancing", false);
  if (json.contains("ignore_class")) loss.ignore_class = json["ignore_class"].get<int64_t>();
  return loss;
}

// Runs a graph that `compute` builds from a prediction and labels. Returns the fetched values.
StatusOr<std::vector<std::vector<float>>> RunOn(
    const Tensor& prediction, const Tensor& labels,
    const std::function<std::vector<graph::Output>(graph::Builder&, graph::Output, graph::Output)>&
        compute) {
  graph::Builder b;
  const graph::Output p = Placeholder(b, "p", prediction.dtype(), prediction.shape());
  const graph::Output y = Placeholder(b, "y", labels.dtype(), labels.shape());
  int number = 0;
  for (const graph::Output output : compute(b, p, y)) b.AddFetch(StrCat(number++), output);
  ASSIGN_OR_RETURN(const graph::Graph graph, std::move(b).Finish());
  variables::VariableStore store(exec::CpuDevice().row_stride);
  ASSIGN_OR_RETURN(auto program, exec::Compile(graph, store, exec::CpuDevice()));
  RETURN_IF_ERROR(program->Run(std::vector{exec::Feed::Of(prediction), exec::Feed::Of(labels)}));
  std::vector<std::vector<float>> fetches;
  for (int i = 0; i < number; ++i) {
    const auto values = program->Fetch<float>(i);
    fetches.emplace_back(values.begin(), values.end());
  }
  return fetches;
}

// {"loss": {name, …}, "prediction": tensor, "labels": tensor} → {"values": one loss per position,
// "gradient": the gradient of their mean}
StatusOr<Json> ComputeLoss(const Json& request) {
  ASSIGN_OR_RETURN(const auto results,
                   RunOn(ToTensor(request["prediction"]), ToTensor(request["labels"]),
                         [&](graph::Builder& b, graph::Output p, graph::Output y) {
                           const graph::Output values =
                               model::LossValues(b, ToLoss(request["loss"]), p, y);
                           std::vector<int64_t> axes;
                           for (int i = 0; i < b.shape(values).rank(); ++i) axes.push_back(i);
                           const std::vector<graph::Output> wrt = {p};
                           return std::vector<graph::Output>{
                               values, graph::Gradients(b, Mean(b, values, axes), wrt)[0]};
                         }));
  return Json{{"values", results[0]}, {"gradient", results[1]}};
}

StatusOr<Json> ValueOf(const model::Metric& metric, const Json& request) {
  std::vector<double> totals;
  int64_t examples = 0;
  for (const Json& batch : request["batches"]) {
    const Tensor prediction = ToTensor(batch[0]);
    ASSIGN_OR_RETURN(const auto results,
                     RunOn(prediction, ToTensor(batch[1]),
                           [&](graph::Builder& b, graph::Output p, graph::Output y) {
                             const auto optional = [&](size_t i) {
                               return batch[i].is_null() ? graph::Output()
                                                         : Const(b, ToTensor(batch[i]));
                             };
                             return std::vector<graph::Output>{model::MetricSums(
                                 b, metric, model::Loss(), p, y, optional(2), optional(3))};
                           }));
    totals.resize(results[0].size());
    for (size_t i = 0; i < totals.size(); ++i) totals[i] += static_cast<double>(results[0][i]);
    examples += prediction.shape().dim(0);
  }
  return Json(model::MetricValue(metric, totals, examples));
}

// {"metric": name, or {"name", argument, …}, "batches": [[prediction, labels, mask or null, sample
// weights or null], …]} → the metric's value over all batches, or a list of its values
StatusOr<Json> ComputeMetric(const Json& request) {
  ASSIGN_OR_RETURN(const model::Metric metric, model::ReadMetric(JsonField(request["metric"])));
  Json values = Json::array();
  for (const model::Metric& each : model::PerThreshold(metric)) {
    ASSIGN_OR_RETURN(values.emplace_back(), ValueOf(each, request));
  }
  return values.size() == 1 ? values[0] : values;
}

// A model from Keras' JSON, with the values of its variables from a checkpoint.
struct Loaded {
  model::Model model;
  std::vector<model::TensorType> features;
  variables::VariableStore store{exec::CpuDevice().row_stride};
};

Shape ExampleOf(const Json& input) {
  const auto shape = input["shape"].get<std::vector<int64_t>>();
  return Shape({shape.begin() + 1, shape.end()});
}

// {"model": Keras' JSON as text, "prefix": checkpoint of its variables by name, "inputs":
// [{"values": [floats], "shape": [n, …]}, …], …}
StatusOr<std::unique_ptr<Loaded>> Load(const Json& request) {
  auto loaded = std::make_unique<Loaded>();
  ASSIGN_OR_RETURN(loaded->model,
                   model::ReadKerasJson(request["model"].get<std::string>(), "the model"));
  for (const Json& input : request["inputs"])
    loaded->features.push_back({DType::kFloat32, ExampleOf(input)});
  ASSIGN_OR_RETURN(const auto variables, model::Variables(loaded->model, loaded->features));
  ASSIGN_OR_RETURN(auto reader, io::BundleReader::Open(request["prefix"].get<std::string>()));
  for (const model::VariableSpec& spec : variables) {
    ASSIGN_OR_RETURN(const Tensor value, reader->Read(spec.name));
    ASSIGN_OR_RETURN(
        variables::Variable * variable,
        loaded->store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable));
    RETURN_IF_ERROR(variable->FromTensor(value));
  }
  return loaded;
}

std::vector<std::vector<float>> FloatsOf(const Json& inputs) {
  std::vector<std::vector<float>> values;
  for (const Json& input : inputs) values.push_back(input["values"].get<std::vector<float>>());
  return values;
}

// a request for Load → the outputs as flat lists
StatusOr<Json> Predict(const Json& request) {
  ASSIGN_OR_RETURN(auto loaded, Load(request));
  const model::BuildOptions options{.mode = model::Mode::kPredict,
                                    .batch_size = request["inputs"][0]["shape"][0].get<int64_t>(),
                                    .features = loaded->features};
  ASSIGN_OR_RETURN(const model::BuiltGraph built, model::Build(loaded->model, options));
  ASSIGN_OR_RETURN(auto program, exec::Compile(built.graph, loaded->store, exec::CpuDevice()));
  const auto values = FloatsOf(request["inputs"]);
  std::vector<exec::Feed> feeds;
  for (const std::vector<float>& input : values)
    feeds.push_back(exec::Feed::Of(std::span<const float>(input)));
  RETURN_IF_ERROR(program->Run(feeds));
  Json outputs = Json::array();
  for (int i = 0; i < static_cast<int>(program->fetches().size()); ++i) {
    const auto output = program->Fetch<float>(i);
    outputs.push_back(std::vector<float>(output.begin(), output.end()));
  }
  return outputs;
}

// The request of Load, with "labels": [{"values", "shape"}, …], "learning_rate": r or "optimizer":
// {kind, …}, and "steps": n → {"losses": before each step, "variables": by name, after n steps
// (default: 1) of the optimizer (default: plain SGD) on the sum of the outputs' mean squared
// errors}
StatusOr<Json> Train(const Json& request) {
  ASSIGN_OR_RETURN(auto loaded, Load(request));
  model::BuildOptions options{.mode = model::Mode::kTrain,
                              .batch_size = request["inputs"][0]["shape"][0].get<int64_t>(),
                              .features = loaded->features};
  for (const Json& labels : request["labels"]) {
    options.objectives.push_back({.loss = {.kind = model::LossKind::kMeanSquaredError},
                                  .labels = {DType::kFloat32, ExampleOf(labels)}});
  }
  Json sgd = {{"kind", "sgd"}, {"learning_rate", request.value("learning_rate", 0.0)}};
  ASSIGN_OR_RETURN(options.optimizer, ToOptimizer(request.value("optimizer", sgd)));
  ASSIGN_OR_RETURN(const model::BuiltGraph built, model::Build(loaded->model, options));
  ASSIGN_OR_RETURN(auto program, exec::Compile(built.graph, loaded->store, exec::CpuDevice()));
  auto values = FloatsOf(request["inputs"]);
  for (std::vector<float>& labels : FloatsOf(request["labels"])) values.push_back(labels);
  std::vector<exec::Feed> feeds;
  for (const std::vector<float>& value : values)
    feeds.push_back(exec::Feed::Of(std::span<const float>(value)));
  const int64_t seed = 1;
  int64_t step = 0;
  feeds.insert(feeds.end(), {exec::Feed::Of(step), exec::Feed::Of(seed)});
  Json losses = Json::array();
  for (; step < request.value("steps", 1); ++step) {
    RETURN_IF_ERROR(program->Run(feeds));
    losses.push_back(program->Fetch<float>(program->FindFetch(model::kLoss))[0]);
  }
  Json variables = Json::object();
  for (const model::VariableSpec& spec : built.variables) {
    const Tensor value = loaded->store.Find(spec.name)->ToTensor();
    const auto floats = value.data<float>();
    variables[spec.name] = std::vector<float>(floats.begin(), floats.end());
  }
  return Json{{"losses", std::move(losses)}, {"variables", std::move(variables)}};
}

// a request for Train → only the variables
StatusOr<Json> TrainStep(const Json& request) {
  ASSIGN_OR_RETURN(Json reply, Train(request));
  return std::move(reply["variables"]);
}

// {"model": Keras' JSON as text} → the same model as the runtime writes it
StatusOr<Json> Rewrite(const Json& request) {
  ASSIGN_OR_RETURN(const model::Model model,
                   model::ReadKerasJson(request["model"].get<std::string>(), "the model"));
  return model::WriteKerasJson(model);
}

int Main(const std::string& verb) {
  const std::map<std::string, StatusOr<Json> (*)(const Json&)> verbs = {
      {"write-checkpoint", WriteCheckpoint},
      {"read-checkpoint", ReadCheckpoint},
      {"read-dataset", ReadDataset},
      {"read-images", ReadImages},
      {"read-records", ReadRecords},
      {"write-records", WriteRecords},
      {"write-events", WriteEvents},
      {"apply-optimizer", ApplyOptimizer},
      {"loss", ComputeLoss},
      {"metric", ComputeMetric},
      {"predict", Predict},
      {"train", Train},
      {"train-step", TrainStep},
      {"rewrite", Rewrite},
      {"tokenize", Tokenize},
      {"look-up", LookUp},
      {"initial-values", InitialValues},
  };
  auto found = verbs.find(verb);
  if (found == verbs.end()) {
    std::cerr << "unknown verb " << verb << "\n";
    return 2;
  }
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  StatusOr<Json> request = ParseJson(text, "the request");
  StatusOr<Json> reply = request.ok() ? found->second(*request) : request;
  if (!reply.ok()) {
    std::cerr << reply.status() << "\n";
    return 1;
  }
  std::cout << PrintJson(*reply) << "\n";
  return 0;
}

}  // namespace
}  // namespace tfjob

int main(int argc, char** argv) {
  return tfjob::Main(argc > 1 ? argv[1] : "");
}
