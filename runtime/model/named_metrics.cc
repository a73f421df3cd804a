#include "runtime/model/named_metrics.h"

#include <map>
#include <string>
#include <utility>

namespace tfjob::model {
namespace {

// Assigns unique names.
class UniqueNames {
 public:
  bool Take(const std::string& name) { return uses_.try_emplace(name, 1).second; }

  // Returns the name itself or, if it is already in use, the name with the first unused number
  // appended.
  std::string TakeSimilar(const std::string& name) {
    if (Take(name)) return name;
    int& uses = uses_.at(name);
    for (;;) {
      std::string numbered = StrCat(name, "_", uses++);
      if (Take(numbered)) return numbered;
    }
  }

 private:
  std::map<std::string, int> uses_;
};

std::string GivenOrOwnName(const Metric& metric) {
  return metric.given_name.empty() ? std::string(Name(metric)) : metric.given_name;
}

std::string TakeName(UniqueNames& names, const std::string& prefix, const std::string& name,
                     bool weighted) {
  if (weighted && names.Take(prefix + name)) return prefix + name;
  return names.TakeSimilar(StrCat(prefix, weighted ? "weighted_" : "", name));
}

std::string PrefixOf(const Model& model, size_t output) {
  return model.outputs.size() == 1 ? "" : StrCat(OutputNames(model)[output], "_");
}

}  // namespace

bool IsMeasured(const Objective& objective) {
  return !objective.metrics.empty() || !objective.weighted_metrics.empty();
}

std::vector<MetricFetch> LossesOfOutputs(const Model& model, const BuildOptions& options) {
  std::vector<MetricFetch> losses;
  const size_t outputs = options.objectives.size();
  for (size_t i = 0; i < outputs && outputs > 1; ++i) {
    const std::string prefix = PrefixOf(model, i);
    // Treat the loss as kAccuracy, because both are means and therefore computed in the same way.
    losses.push_back(
        {.name = prefix + kLoss, .fetch = prefix + kLossSum, .metric = Metric::kAccuracy});
  }
  return losses;
}

std::vector<NamedMetric> NamedMetricsOf(const Model& model, const BuildOptions& options) {
  UniqueNames names;
  names.Take(kLoss);
  for (const MetricFetch& loss : LossesOfOutputs(model, options)) names.Take(loss.name);
  std::vector<NamedMetric> named;
  for (const bool weighted : {false, true}) {
    for (size_t i = 0; i < options.objectives.size(); ++i) {
      const Objective& o = options.objectives[i];
      for (const Metric& whole : weighted ? o.weighted_metrics : o.metrics) {
        for (const Metric& metric : PerThreshold(whole)) {
          const std::string name =
              TakeName(names, PrefixOf(model, i), GivenOrOwnName(metric), weighted);
          const bool masked = o.masked || InheritsIgnoreClass(metric, o.loss);
          const int64_t sums = SumsOf(metric, o.labels.shape.num_elements(), masked,
                                      weighted && o.sample_weights.has_value());
          named.push_back({i, weighted, {name, name + "_sum", metric, sums}});
        }
      }
    }
  }
  return named;
}

}  // namespace tfjob::model
