// Implements ReadMetric, and thereby determines which arguments each metric has.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/metrics/metric.h"
#include "runtime/model/metrics/metric_counts.h"

namespace tfjob::model {
namespace {

constexpr size_t kLongestMetricName = 200;
constexpr size_t kMostThresholds = 100000;  // of a curve: each batch has two sums per threshold
constexpr size_t kMostValues = 1000;        // of a metric with one value per threshold
constexpr int64_t kMostOfTopK = 1000;       // the graph has ops for each of the k
constexpr int64_t kMostClasses = 100000;    // each batch has three sums per class

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
  return std::isfinite(*metric.threshold) ? OkStatus() : value.Mismatch("a finite number");
}

Status ReadThresholdOfScores(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(metric.threshold, value.Double());
  const bool fits = *metric.threshold > 0 && *metric.threshold <= 1;
  return fits ? OkStatus() : value.Mismatch("a number above 0 and at most 1");
}

// Reads one threshold or a list of them, whose number is limited because each of them makes the
// metric compute more sums.
Status ReadThresholds(const JsonField& value, size_t most, std::vector<double>& into) {
  if (!value.present() || !value.value()->is_array())
    return ReadProbability(value, into.emplace_back());
  ASSIGN_OR_RETURN(const auto elements, value.Elements());
  if (elements.empty() || elements.size() > most)
    return value.Mismatch(StrCat("a number, or a list of 1 to ", most, " numbers"));
  for (const JsonField& element : elements)
    RETURN_IF_ERROR(ReadProbability(element, into.emplace_back()));
  return OkStatus();
}

Status ReadThresholdsOfCounts(const JsonField& value, Metric& metric) {
  return ReadThresholds(value, kMostValues, metric.thresholds);
}

// Reads the thresholds of kAuc. As in Keras, sorts them, and adds both ends to their number.
Status ReadThresholdsOfAuc(const JsonField& value, Metric& metric) {
  RETURN_IF_ERROR(ReadThresholds(value, kMostThresholds - 2, metric.thresholds));
  std::ranges::sort(metric.thresholds);
  return OkStatus();
}

Status ReadTopK(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 1, kMostOfTopK, metric.top_k);
}

Status ReadK(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 1, 1 << 30, metric.k);
}

Status ReadClassId(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 0, 1 << 30, metric.class_id);
}

Status ReadNumThresholds(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 2, kMostThresholds, metric.num_thresholds);
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

Status ReadTarget(const JsonField& value, Metric& metric) {
  return ReadProbability(value, metric.target.emplace());
}

Status ReadPoints(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 1, kMostThresholds, metric.num_thresholds);
}

Status ReadAverage(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(const std::string name, value.String());
  using enum Metric::Average;
  metric.average = name == "micro"      ? kMicro
                   : name == "macro"    ? kMacro
                   : name == "weighted" ? kWeighted
                                        : kUnset;
  return metric.average == kUnset ? value.Mismatch("micro, macro or weighted") : OkStatus();
}

Status ReadBeta(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(metric.beta, value.Double());
  const bool fits = std::isfinite(metric.beta) && metric.beta > 0;
  return fits ? OkStatus() : value.Mismatch("a finite number above 0");
}

Status ReadNumClasses(const JsonField& value, Metric& metric) {
  return ReadInteger(value, 1, kMostClasses, metric.num_classes);
}

Status ReadTargetClasses(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(const auto elements, value.Elements());
  if (elements.empty() || elements.size() > kMostClasses)
    return value.Mismatch(StrCat("a list of 1 to ", kMostClasses, " classes"));
  for (const JsonField& element : elements) {
    RETURN_IF_ERROR(
        ReadInteger(element, 0, kMostClasses - 1, metric.target_class_ids.emplace_back()));
  }
  return OkStatus();
}

Status ReadIgnoreClass(const JsonField& value, Metric& metric) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return ReadInteger(value, -kMost, kMost, metric.ignore_class.emplace());
}

Status ReadSparseLabels(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(metric.sparse_y_true, value.Bool());
  return OkStatus();
}

Status ReadSparsePredictions(const JsonField& value, Metric& metric) {
  ASSIGN_OR_RETURN(metric.sparse_y_pred, value.Bool());
  return OkStatus();
}

// Reads the same argument of a metric whose labels are one-hot rows, like its predictions.
Status ReadOnlyRows(const JsonField& value, Metric&) {
  ASSIGN_OR_RETURN(const bool sparse, value.Bool());
  return sparse ? value.Mismatch("false: labels and predictions have the same shape") : OkStatus();
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

template <Metric::Kind... kKinds>
bool IsOneOf(const Metric& metric) {
  return ((metric.kind == kKinds) || ...);
}
constexpr auto kOfOneHotRows = IsOneOf<Metric::kOneHotIoU, Metric::kOneHotMeanIoU>;
constexpr auto kOfNumbersOrRows = IsOneOf<Metric::kIoU, Metric::kMeanIoU>;
constexpr auto kOfManyClasses =
    IsOneOf<Metric::kIoU, Metric::kMeanIoU, Metric::kOneHotIoU, Metric::kOneHotMeanIoU>;
constexpr auto kOfSomeClasses = IsOneOf<Metric::kIoU, Metric::kBinaryIoU, Metric::kOneHotIoU>;

const Argument kArguments[] = {
    {"threshold", IsOneOf<Metric::kBinaryAccuracy, Metric::kBinaryIoU>, ReadThreshold},
    {"threshold", counts::IsFScore, ReadThresholdOfScores},
    {"average", counts::IsFScore, ReadAverage},
    {"beta", IsOneOf<Metric::kFBetaScore>, ReadBeta},
    {"recall", IsOneOf<Metric::kPrecisionAtRecall>, ReadTarget},
    {"precision", IsOneOf<Metric::kRecallAtPrecision>, ReadTarget},
    {"specificity", IsOneOf<Metric::kSensitivityAtSpecificity>, ReadTarget},
    {"sensitivity", IsOneOf<Metric::kSpecificityAtSensitivity>, ReadTarget},
    {"num_thresholds", counts::IsPointOfCurve, ReadPoints},
    {"class_id", counts::IsPointOfCurve, ReadClassId},
    {"num_classes", kOfManyClasses, ReadNumClasses},
    {"target_class_ids", kOfSomeClasses, ReadTargetClasses},
    {"ignore_class", kOfManyClasses, ReadIgnoreClass},
    {"sparse_y_true", kOfNumbersOrRows, ReadSparseLabels},
    {"sparse_y_pred", kOfNumbersOrRows, ReadSparsePredictions},
    {"sparse_y_pred", kOfOneHotRows, ReadOnlyRows},
    {"model", [](const Metric& m) { return m.kind == Metric::kCustom; },
     [](const JsonField&, Metric&) { return OkStatus(); }},
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
     ReadThresholdsOfCounts},
    {"thresholds", [](const Metric& m) { return m.kind == Metric::kAuc; }, ReadThresholdsOfAuc},
    {"top_k",
     [](const Metric& m) { return m.kind == Metric::kPrecision || m.kind == Metric::kRecall; },
     ReadTopK},
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

Status Needs(const Metric& metric, std::string_view argument) {
  return InvalidArgument("metric ", Name(metric), " needs the argument ", argument);
}

// Returns the argument of a point of a curve whose value is Metric::target.
std::string_view TargetName(const Metric& metric) {
  const std::string_view name = Name(metric);
  constexpr std::string_view kAt = "_at_";
  return name.substr(name.find(kAt) + kAt.size());
}

Status CheckClasses(const Metric& metric) {
  if (kOfManyClasses(metric) && metric.num_classes == 0) return Needs(metric, "num_classes");
  const bool some = metric.kind == Metric::kIoU || metric.kind == Metric::kOneHotIoU;
  if (some && metric.target_class_ids.empty()) return Needs(metric, "target_class_ids");
  const int64_t classes = metric.kind == Metric::kBinaryIoU ? 2 : metric.num_classes;
  for (const int64_t id : metric.target_class_ids) {
    if (id >= classes) {
      return InvalidArgument("metric ", Name(metric), ": target_class_ids contains ", id,
                             ", but there are ", classes, " classes, from 0");
    }
  }
  if (!metric.sparse_y_true && metric.sparse_y_pred) {
    return InvalidArgument("metric ", Name(metric), ": sparse_y_true is false, but sparse_y_pred ",
                           "is true: labels that are one-hot rows need predictions of this form; ",
                           "set sparse_y_pred to false");
  }
  return OkStatus();
}

// Returns an error if an argument without a default is missing, or if arguments do not fit
// together.
Status CheckArguments(const Metric& metric) {
  if (counts::IsFScore(metric) && metric.average == Metric::Average::kUnset) {
    return InvalidArgument("metric ", Name(metric), " needs the argument average: micro, macro or ",
                           "weighted; Keras' default, a value for each class, is not supported");
  }
  if (counts::IsPointOfCurve(metric) && !metric.target) return Needs(metric, TargetName(metric));
  return counts::IsIntersectionOverUnion(metric) ? CheckClasses(metric) : OkStatus();
}

}  // namespace

StatusOr<Metric> ReadMetric(const JsonField& field) {
  if (!field.IsObject()) {
    ASSIGN_OR_RETURN(const std::string name, field.String());
    StatusOr<Metric> metric = ParseMetric(name);
    if (!metric.ok()) return Annotate(metric.status(), field.path());
    RETURN_IF_ERROR(Annotate(CheckArguments(*metric), field.path()));
    return metric;
  }
  ASSIGN_OR_RETURN(const std::string name, field["name"].String());
  const StatusOr<Metric> plain = ParseMetric(name);
  if (!plain.ok()) return Annotate(plain.status(), field.path());
  Metric metric = *plain;
  ASSIGN_OR_RETURN(const auto members, field.Members());
  for (const auto& [argument, value] : members) {
    if (argument != "name") RETURN_IF_ERROR(ReadArgument(*plain, argument, value, metric));
  }
  RETURN_IF_ERROR(Annotate(CheckArguments(metric), field.path()));
  return metric;
}

}  // namespace tfjob::model
