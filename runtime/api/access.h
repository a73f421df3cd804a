// Lets the sources of this package access the private data of the API's types. Private to this
// package.
//
// Within the namespace api, the names Status, Tensor, Model and Strategy refer to the public types.
// The internal types of other packages are written as tfjob::Status, tfjob::Tensor, …
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/dataset.h"
#include "runtime/api/form.h"
#include "runtime/api/function.h"
#include "runtime/api/layer.h"
#include "runtime/api/model.h"
#include "runtime/api/optimizer.h"
#include "runtime/api/session.h"
#include "runtime/api/status.h"
#include "runtime/api/strategy.h"
#include "runtime/api/tensor.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/stop.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/data/source.h"
#include "runtime/model/model.h"
#include "runtime/rpc/credentials.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::api {

// Maps the names of variables to their values.
using VariableValues = std::map<std::string, tfjob::Tensor>;

struct LayerData {
  Json form;  // {class_name: …, config: …}, as ReadKerasJson (model/keras.h) reads it
  tfjob::Status error;
  // The values of the layer's variables, from the file from which the layer was read. The keys are
  // the variables' names without the layer's prefix. Null if no file provides the values; the
  // variables then have their initial values.
  std::shared_ptr<const VariableValues> values = nullptr;

  std::string class_name() const;
  std::string name() const;  // "" if the layer has no name of its own
};

// The key that marks an input in CallData::arguments: the object {kInputOfCall: i} represents input
// i of the call.
inline constexpr char kInputOfCall[] = "input of the call";

struct StepValue;  // step_data.h

// A call of a layer. A call without inputs is a model's Input.
struct CallData {
  std::shared_ptr<const LayerData> layer;  // null if `step` is set
  std::vector<Symbol> inputs;
  // The arguments in Keras' form, {args, kwargs}; null if the inputs are the only arguments.
  Json arguments = nullptr;
  // Set instead of `layer` for a value of a function's step that no layer computes.
  std::shared_ptr<const StepValue> step = nullptr;
};

struct ModelData {
  std::shared_ptr<const model::Model> model;  // null if the status is an error
  Status status;
  std::string name;
  // The values that replace initial values; may be null. If the shapes of the variables are not
  // known yet, `weights` names the file that contains the values; otherwise it is empty.
  std::shared_ptr<const VariableValues> values;
  std::string weights;

  // Returns the model as a layer of other models. The first call creates the layer. Thread-safe.
  const std::shared_ptr<const LayerData>& layer() const;

 private:
  mutable std::once_flag layer_made_;
  mutable std::shared_ptr<const LayerData> layer_;
};

struct Tensor::Data {
  tfjob::Tensor tensor;
};

// The inputs that a Dataset's operators need to open its examples.
struct DatasetContext {
  const model::Model& model;
  int threads;  // how many threads may call the program's functions
  int64_t seed;
};
using SourcePtr = std::shared_ptr<const tfjob::data::Source>;

struct DatasetData {
  // For operators: creates a source from the sources of `parts`. Null for files and arrays.
  std::function<StatusOr<SourcePtr>(const DatasetContext&, std::vector<SourcePtr>)> open = nullptr;
  std::vector<Dataset> parts = {};
  bool concatenation = false;  // the operator only concatenates the parts
  // The operator needs the labels, if there are any, even if only inputs are read, because a
  // function of the program may use them, or because a cache file stores them.
  bool needs_labels = false;
  bool zip = false;  // each part provides only the inputs and outputs that it names
  // For files: the keys of data.train in a training file. Null for arrays in memory.
  Json keys;
  // For arrays in memory: the array of each input and output, and the scale.
  config::SourceConfig source;
  std::map<std::string, tfjob::Tensor> arrays;  // empty if the examples are in files
  tfjob::Status error;
};

struct StrategyData {
  Status status;
  config::StrategyConfig config;
  cluster::TfConfig tf_config;
  cluster::JobIdentity job;
  rpc::Credentials credentials;
  Duration grace_period{30s};
  std::string lone_address;  // `lone_address` and `device` are as in train::TaskOptions
  std::string device;
};

class Workspace;  // workspace.h

struct SessionData {
  Strategy strategy;
  SessionOptions options;
  tfjob::Status error;
  std::shared_ptr<Workspace> workspace;  // shared by the session's functions
};

struct EstimatorData;
class Estimator;

struct Access {
  static Layer MakeLayer(Form form, const std::string& name, bool trainable,
                         const Named& activity_regularizer);
  static Layer MakeLayer(LayerData data);
  static Optimizer MakeOptimizer(const LearningRate& rate, Form form);
  static LearningRate MakeLearningRate(std::optional<double> initial, Form schedule);
  static Loss MakeLoss(Form form);
  static Model MakeModel(StatusOr<model::Model> model, const std::string& name,
                         std::shared_ptr<const VariableValues> values = nullptr,
                         const std::string& weights = "");
  static Symbol MakeSymbol(CallData call);
  static Dataset MakeDataset(DatasetData data);
  static Strategy MakeStrategy(StrategyData data);
  static Tensor MakeTensor(tfjob::Tensor tensor);
  static CompiledModel MakeCompiled(std::shared_ptr<CompiledData> data);
  static void RunStep(StepData& data, const StepBody& body, const std::vector<Symbol>& inputs);
  static Function MakeFunction(std::shared_ptr<FunctionData> data);
  static Batches MakeBatches(std::shared_ptr<BatchesData> data);
  static Estimator MakeEstimator(EstimatorData data);

  static const LayerData& Data(const Layer& layer) { return *layer.data_; }
  static const std::shared_ptr<const LayerData>& Shared(const Layer& layer) { return layer.data_; }
  static const FormData& Data(const Optimizer& optimizer) { return *optimizer.data_; }
  static const FormData& Data(const Loss& loss) { return *loss.data_; }
  static const ModelData& Data(const Model& model) { return *model.data_; }
  static const DatasetData& Data(const Dataset& dataset) { return *dataset.data_; }
  static const StrategyData& Data(const Strategy& strategy) { return *strategy.data_; }
  static CompiledData& Data(const CompiledModel& model) { return *model.data_; }
  static const std::shared_ptr<CompiledData>& Shared(const CompiledModel& model) {
    return model.data_;
  }
  static const EstimatorData& Data(const Estimator& estimator);
  static const CallData* Call(const Symbol& symbol) { return symbol.call_.get(); }
  static int Output(const Symbol& symbol) { return symbol.output_; }
  static const tfjob::Tensor& Data(const Tensor& tensor) { return tensor.data_->tensor; }
  static bool IsJobOver(const Status& status) { return status.job_over_; }
  static void SetJobOver(Status& status, bool over) { status.job_over_ = over; }
};

// Returns the types of the model's inputs if they determine the shapes of all variables, and
// otherwise nullopt. They determine the shapes if the model states the length of every axis, or if
// no variable depends on the lengths that the model leaves open.
std::optional<std::vector<model::TensorType>> KnownFeatures(const model::Model& model);

Status ToPublic(const tfjob::Status& status);
template <typename T>
Result<T> ToPublic(StatusOr<T> result) {
  if (!result.ok()) return ToPublic(result.status());
  return *std::move(result);
}
// Returns the error with a mark, which means that the task stops because its job has ended without
// it. If an error has this mark, Exit ends the process with code 0. ToPublic and FromPublic keep
// the mark.
tfjob::Status JobOver(tfjob::Status cancelled);
// Converts a public status to a tfjob::Status, which the other packages use.
tfjob::Status FromPublic(const Status& status);

// Returns a source that never requests a stop.
const StopSource& NoStop();

}  // namespace tfjob::api
