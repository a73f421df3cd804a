#include "tests/bench/fit_api.h"

#include <tfjob/tfjob.h>

#include <memory>
#include <utility>

namespace tfjob::bench {
namespace {

// Notes the CPU time at the end of the first and of the last epoch.
class EpochTimes : public api::CallbackHooks {
 public:
  api::Status OnEpochEnd(api::FitControl&, int64_t epoch, const api::Metrics&) override {
    (epoch == 0 ? first_ : last_) = ProcessCpuSeconds();
    return {};
  }
  double Measured() const { return last_ - first_; }

 private:
  double first_ = 0, last_ = 0;
};

api::Model MakeModel(const FitOptions& options) {
  std::vector<api::Layer> layers = {api::Input{.shape = {28, 28}}, api::Flatten{}};
  for (const int64_t units : options.hidden)
    layers.push_back(api::Dense{.units = units, .activation = "relu"});
  layers.push_back(api::Dense{.units = 10});
  return api::Sequential(layers);
}

}  // namespace

double CpuSecondsOfFit(const FitOptions& options) {
  const api::Session session(api::Strategy::OneDevice(), {.threads = 1});
  const api::CompileOptions how = {.optimizer = api::SGD{.learning_rate = 0.1},
                                   .loss = api::SparseCategoricalCrossentropy{.from_logits = true}};
  api::CompiledModel trained = session.Compile(MakeModel(options), how).value();
  const api::Dataset train =
      api::data::Idx{.images = options.folder + "/train-images-idx3-ubyte.gz",
                     .labels = options.folder + "/train-labels-idx1-ubyte.gz",
                     .scale = 1.0 / 255};
  const auto times = std::make_shared<EpochTimes>();
  api::FitOptions fit{.batch_size = options.batch, .epochs = options.epochs};
  fit.callbacks = {times};
  fit.verbose = api::Verbose::kSilent;
  trained.Fit(train, fit).value();
  return times->Measured();
}

}  // namespace tfjob::bench
