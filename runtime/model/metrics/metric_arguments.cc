// Implements ReadMetric, and thereby determines which arguments each metric has.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/metrics/metric.h"

namespace tfjob::model {
namespace {

constexpr size_t kLongestMetricName = 200;

Status ReadProbability(const JsonField& value, double& into) {
  ASSIGN_OR_RETURN(into, value.Double());
  if (into >= 0 && into <= 1) return OkStatus();
  return value.Mismatch("a number from 0 to 1");
}

Status ReadInteger(const JsonField& value, int64_t least, int64_t most, int64_t& into) {
  ASSIGN_OR_RETURN(into, value.Int());
  if (into >= least && into <= most) return OkStatus();
  return value.Mismatch(StrCat("an integer from ", least, " to ", most));
}

Status ReadSmoothing(const JsonField& value, Metric& metric) {
  return ReadProbability(value, metric.label_smoothing);
}

Status ReadThreshold(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(metric.threshold, value.Double());
  return std::isfinite(metric.threshold) ? OkStatus() : value.Mismatch("a finite number");
}

// Reads a single threshold. Keras would also accept a list, and then return one value per
// threshold.
Status ReadOneThreshold(const JsonField& value, Metric& metric) {
  if (value.present() && value.value()->is_array() && value.value()->size() == 1)
    return ReadProbability(value[size_t{0}], metric.threshold);
  if (value.present() && value.value()->is_array())
    return value.Mismatch("one threshold: with several, the metric would have several values");
  return ReadProbability(value, metric.threshold);
}

Status ReadK(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 1, 1 << 30, metric.k);
}

Status ReadClassId(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 0, 1 << 30, metric.class_id);
}

// Reads the number of thresholds, which is limited because each batch has two sums per threshold.
Status ReadNumThresholds(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 2, 100000, metric.num_thresholds);
}

Status ReadFromLogits(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(metric.from_logits, value.Bool());
  return OkStatus();
}

Status ReadCurve(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(const std::string name, value.String());
  metric.curve = name == "PR" ? Metric::Curve::kPr : Metric::Curve::kRoc;
  return name == "PR" || name == "ROC" ? OkStatus() : value.Mismatch("ROC or PR");
}

Status ReadSummation(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(const std::string name, value.String());
  using enum Metric::Summation;
  metric.summation_method = name == "minoring"   ? kMinoring
                            : name == "majoring" ? kMajoring
                                                 : kInterpolation;
  if (name == "minoring" || name == "majoring" || name == "interpolation") return OkStatus();
  return value.Mismatch("interpolation, minoring or majoring");
}

struct Argument {
  std::string_view name;
  bool (*belongs)(const Metric& metric);
  Status (*read)(const JsonField& value, Metric& metric);
};

bool IsCrossentropy(const Metric& metric) {
  if (metric.kind != Metric::kLoss) return false;
  return metric.loss == LossKind::kBinaryCrossentropy ||
         metric.loss == LossKind::kCategoricalCrossentropy ||
         metric.loss == LossKind::kSparseCategoricalCrossentropy;
}

const Argument kArguments[] = {
    {"threshold", [](const Metric& m) { return m == Metric::kBinaryAccuracy; }, ReadThreshold},
    {"k",
     [](const Metric& m) {
       return m == Metric::kTopKCategoricalAccuracy || m == Metric::kSparseTopKCategoricalAccuracy;
     },
     ReadK},
    {"thresholds",
     [](const Metric& m) {
       return m.kind >= Metric::kPrecision && m.kind <= Metric::kFalseNegatives &&
              m.kind != Metric::kAuc;
     },
     ReadOneThreshold},
    {"class_id",
     [](const Metric& m) { return m.kind == Metric::kPrecision || m.kind == Metric::kRecall; },
     ReadClassId},
    {"num_thresholds", [](const Metric& m) { return m.kind == Metric::kAuc; }, ReadNumThresholds},
    {"curve", [](const Metric& m) { return m.kind == Metric::kAuc; }, ReadCurve},
    {"summation_method", [](const Metric& m) { return m.kind == Metric::kAuc; }, ReadSummation},
    {"from_logits", [](const Metric& m) { return m.kind == Metric::kAuc || IsCrossentropy(m); },
     ReadFromLogits},
    {"label_smoothing",
     [](const Metric& m) {
       return IsCrossentropy(m) && m.loss != LossKind::kSparseCategoricalCrossentropy;
     },
     ReadSmoothing},
};

// Reads the name that the user chose. Checks that the name can be used in log lines, and as a tag
// in TensorBoard.
Status ReadGivenName(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(metric.given_name, value.String());
  const auto printable = [](unsigned char c) { return c >= ' ' && c != 0x7f; };
  if (!metric.given_name.empty() && metric.given_name.size() <= kLongestMetricName &&
      std::ranges::all_of(metric.given_name, printable))
    return OkStatus();
  return Annotate(
      value.Mismatch(StrCat("a name of 1 to ", kLongestMetricName, " printable characters")),
      StrCat("metric ", Name(metric)));
}

Status ReadArgument(const Metric& whole, std::string_view name, const JsonField& value,
                    Metric& metric) {
  if (name == "as") return ReadGivenName(value, metric);
  std::vector<std::string> known = {"as"};
  for (const Argument& argument : kArguments) {
    if (!argument.belongs(whole)) continue;
    if (argument.name == name)
      return Annotate(argument.read(value, metric), StrCat("metric ", Name(whole)));
    known.emplace_back(argument.name);
  }
  return InvalidArgument(value.path(), ": argument ", name, " of metric ", Name(whole),
                         " is not supported", DidYouMean(name, known));
}

}  // namespace

StatusOr<Metric> ReadMetric(const JsonField& field) {
  if (!field.IsObject()) {
    ASSIGN_OR_RETURN(const std::string name, field.String());
    StatusOr<Metric> metric = ParseMetric(name);
    if (metric.ok()) return metric;
    return Annotate(metric.status(), field.path());
  }
  ASSIGN_OR_RETURN(const std::string name, field["name"].String());
  const StatusOr<Metric> plain = ParseMetric(name);
  if (!plain.ok()) return Annotate(plain.status(), field.path());
  Metric metric = *plain;
  ASSIGN_OR_RETURN(const auto members, field.Members());
  for (const auto& [argument, value] : members) {
    if (argument != "name") RETURN_IF_ERROR(ReadArgument(*plain, argument, value, metric));
  }
  return metric;
}

}  // namespace tfjob::model
