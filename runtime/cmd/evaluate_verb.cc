// Implements `tfjob-trainer evaluate`, which computes the loss and the metrics over a training
// file's evaluation data.
#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/thread_pool.h"
#include "runtime/cmd/config_file.h"
#include "runtime/cmd/verb.h"
#include "runtime/data/source.h"
#include "runtime/exec/device.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/job/job_inputs.h"
#include "runtime/train/model_dir/checkpoint.h"

namespace tfjob::cmd {
namespace {

// Returns the state in the file that --weights names or, if the flag is not given, in the last
// checkpoint in model_dir.
StatusOr<state::Snapshot> StateOf(const config::TrainingConfig& config, bool given,
                                  const strategy::ModelDefinition& definition) {
  if (given) return train::StartState(config, definition);
  if (config.model_dir.empty()) {
    return InvalidArgument("the training file has no model_dir; give the weights with --weights");
  }
  ASSIGN_OR_RETURN(std::optional<state::Snapshot> saved,
                   train::LoadLatestCheckpoint(config.model_dir, definition.state));
  if (saved) return *std::move(saved);
  return NotFound(config.model_dir, " has no checkpoint; give the weights with --weights");
}

class EvaluateVerb : public Verb {
 public:
  std::string name() const override { return "evaluate"; }
  std::string help() const override {
    return "Computes loss and metrics over a training file's evaluation data";
  }

  void AddFlags(CLI::App& app) override {
    app.add_option("--model", config_, "The training file")->required();
    app.add_option("--weights", weights_,
                   "The weights: a .safetensors, .keras or .h5 file, a checkpoint's prefix, or a "
                   "folder with checkpoints. Default: the last checkpoint in model_dir");
    app.add_option("--set", set_, "Overrides a key of the training file: --set eval.batch_size=64");
  }

  Status Run(const StopSource& stop, std::ostream& output) override {
    ASSIGN_OR_RETURN(config::TrainingConfig config, ReadConfig(config_, set_));
    if (!weights_.empty()) {
      config.model.weights = weights_;
      config.model.weights_skip.clear();
    }
    if (!config.data.eval.present())
      return InvalidArgument(config_, ": data.eval: expected evaluation data, but it is missing");
    ASSIGN_OR_RETURN(const model::Model model, train::ReadModel(config.model));
    ASSIGN_OR_RETURN(auto dataset, train::DataOf({}, config, train::Split::kEval, model));
    ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                     train::DefineModel(config, train::Split::kEval, *dataset, 1, model));
    ASSIGN_OR_RETURN(const state::Snapshot snapshot,
                     StateOf(config, !weights_.empty(), definition));
    const auto threads =
        static_cast<int>(config.threads > 0 ? config.threads : AvailableProcessors());
    ThreadPool pool("compute", std::max(threads, 1) - 1);
    ASSIGN_OR_RETURN(
        const auto evaluation,
        train::Evaluation::Create(config, definition, std::move(dataset), exec::CpuDevice(&pool)));
    ASSIGN_OR_RETURN(const strategy::MetricTotals totals, evaluation->Run(snapshot, stop));
    output << StrCat("examples ", totals.examples, "\n");
    for (const auto& [name, value] : train::NamedValues(definition, totals))
      output << StrCat(name, " ", value, "\n");
    return OkStatus();
  }

 private:
  std::string config_, weights_;
  std::vector<std::string> set_;
};

}  // namespace

std::unique_ptr<Verb> MakeEvaluateVerb() {
  return std::make_unique<EvaluateVerb>();
}

}  // namespace tfjob::cmd
