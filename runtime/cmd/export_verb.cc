// Implements `tfjob-trainer export`, which writes a model and its weights in another format.
#include <optional>

#include "runtime/cmd/model_source.h"
#include "runtime/cmd/verb.h"
#include "runtime/model/keras/write.h"
#include "runtime/train/job/compiled_model.h"

namespace tfjob::cmd {
namespace {

class ExportVerb : public Verb {
 public:
  std::string name() const override { return "export"; }
  std::string help() const override { return "Writes a model and its weights in another format"; }

  void AddFlags(CLI::App& app) override {
    source_.AddFlags(app, /*with_weights=*/true);
    app.add_option("--to", to_,
                   "The file to write: .keras, .h5 (a whole model), .weights.h5 or .safetensors")
        ->required();
  }

  Status Run(const StopSource&, std::ostream&) override {
    ASSIGN_OR_RETURN(const LoadedModel loaded, LoadModel(source_, /*with_data=*/true));
    ASSIGN_OR_RETURN(const std::vector<model::TensorType> features, FeaturesOf(loaded));
    ASSIGN_OR_RETURN(const std::vector<model::VariableSpec> variables,
                     model::Variables(loaded.model, features));
    ASSIGN_OR_RETURN(const std::vector<Tensor> values, LoadValues(loaded, variables));
    keras::WholeModel whole{loaded.model, variables, values};
    std::optional<train::CompiledRun> run;
    if (loaded.config) {
      ASSIGN_OR_RETURN(
          run, train::CompileForKeras(*loaded.config, loaded.model, features, loaded.weights));
    }
    if (run)
      whole.compiled.emplace(keras::CompiledModel{*run->compile_config, run->optimizer,
                                                  run->state ? &*run->state : nullptr});
    return keras::Write(to_, whole);
  }

 private:
  ModelSource source_;
  std::string to_;
};

}  // namespace

std::unique_ptr<Verb> MakeExportVerb() {
  return std::make_unique<ExportVerb>();
}

}  // namespace tfjob::cmd
