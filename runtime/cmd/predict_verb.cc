// Implements `tfjob-trainer predict`, which computes a model's outputs for files of examples.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_pool.h"
#include "runtime/cmd/model_source.h"
#include "runtime/cmd/verb.h"
#include "runtime/inference/arrays.h"
#include "runtime/inference/predictor.h"

namespace tfjob::cmd {
namespace {

constexpr Logger kLog("predict");

// Reads the arrays of one --input, which is FILE or NAME=FILE. The file of a named input must
// contain either a single array, or an array with this name.
Status AddInput(const std::string& flag, io::NamedTensors& arrays) {
  const size_t equals = flag.find('=');
  const bool named = equals != std::string::npos;
  const std::string name = named ? flag.substr(0, equals) : "";
  const std::string path = named ? flag.substr(equals + 1) : flag;
  ASSIGN_OR_RETURN(io::NamedTensors read, inference::ReadArrays(path));
  if (!named) {
    if (read.size() == 1) read[0].first = "";
    std::ranges::move(read, std::back_inserter(arrays));
    return OkStatus();
  }
  const auto same = std::ranges::find(read, name, [](const auto& array) { return array.first; });
  if (same == read.end() && read.size() != 1) {
    return InvalidArgument("--input ", flag, ": the file has ", read.size(),
                           " arrays, and none is called ", name);
  }
  arrays.emplace_back(name, same == read.end() ? read[0].second : same->second);
  return OkStatus();
}

class PredictVerb : public Verb {
 public:
  std::string name() const override { return "predict"; }
  std::string help() const override { return "Computes a model's outputs for files of examples"; }

  void AddFlags(CLI::App& app) override {
    source_.AddFlags(app, /*with_weights=*/true);
    app.add_option("--input", inputs_,
                   "NAME=FILE, once per input: .npy, .npz, .safetensors or .csv. A model with one "
                   "input needs no NAME; nor does a file of arrays with the inputs' names")
        ->required();
    app.add_option("--output", output_,
                   "The file of the outputs: .npy or .csv for one output; .npz or .safetensors")
        ->required();
    app.add_option("--batch-size", batch_size_, "Number of examples computed at once")
        ->capture_default_str()
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
    app.add_option("--threads", threads_, "Number of threads; 0: one per available processor")
        ->capture_default_str()
        ->check(CLI::Range(0, 4096));
  }

  Status Run(const StopSource& stop, std::ostream&) override {
    ASSIGN_OR_RETURN(const LoadedModel loaded, LoadModel(source_, /*with_data=*/false));
    RETURN_IF_ERROR(
        Annotate(inference::CheckArraysPath(output_, loaded.model.outputs.size()), "--output"));
    ASSIGN_OR_RETURN(const float scale, ScaleOf(loaded));
    if (loaded.config && loaded.config->data.augment != nullptr) {
      kLog.Warning(
          "neither data.train.scale nor data.augment is applied; the inputs must be what the "
          "layers of data.augment return");
    }
    io::NamedTensors arrays;
    for (const std::string& input : inputs_) RETURN_IF_ERROR(AddInput(input, arrays));
    ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                     inference::OrderInputs(loaded.model, arrays));
    ASSIGN_OR_RETURN(const std::vector<model::TensorType> features,
                     inference::FeaturesOf(loaded.model, inputs));
    ASSIGN_OR_RETURN(const std::vector<model::VariableSpec> variables,
                     model::Variables(loaded.model, features));
    ASSIGN_OR_RETURN(const std::vector<Tensor> values, LoadValues(loaded, variables));
    ThreadPool pool("compute", std::max(threads_ > 0 ? threads_ : AvailableProcessors(), 1) - 1);
    ASSIGN_OR_RETURN(
        const auto predictor,
        inference::Predictor::Create(loaded.model, features, values, exec::CpuDevice(&pool)));
    kLog.Info("predicting",
              {{"examples", inputs[0].shape().rank() > 0 ? inputs[0].shape().dim(0) : 0},
               {"batch_size", batch_size_}});
    ASSIGN_OR_RETURN(const io::NamedTensors outputs,
                     predictor->Run(inputs, {.batch_size = batch_size_, .scale = scale}, stop));
    return inference::WriteArrays(output_, outputs);
  }

 private:
  ModelSource source_;
  std::vector<std::string> inputs_;
  std::string output_;
  int64_t batch_size_ = 32;
  int threads_ = 0;
};

}  // namespace

std::unique_ptr<Verb> MakePredictVerb() {
  return std::make_unique<PredictVerb>();
}

}  // namespace tfjob::cmd
