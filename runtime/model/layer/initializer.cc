#include "runtime/model/layer/initializer.h"

#include <nlohmann/json.hpp>
#include <span>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/layer/arguments.h"

namespace tfjob::model {
namespace {

using InitializerKind = Initializer::Kind;
using ScalingMode = Initializer::Mode;
using Distribution = Initializer::Distribution;

// Describes a Keras class: its name, its short name, and the initializer that it specifies without
// arguments.
struct Class {
  std::string_view class_name;
  std::string_view name;
  Initializer value;
};

constexpr Initializer Scaling(double scale, ScalingMode mode, Distribution distribution) {
  return {.kind = InitializerKind::kVarianceScaling,
          .scale = scale,
          .mode = mode,
          .distribution = distribution};
}

const Class kClasses[] = {
    {"Zeros", "zeros", {.kind = InitializerKind::kZeros}},
    {"Ones", "ones", {.kind = InitializerKind::kOnes}},
    {"Constant", "constant", {.kind = InitializerKind::kConstant}},
    {"RandomNormal", "random_normal", {.kind = InitializerKind::kRandomNormal}},
    {"RandomUniform", "random_uniform", {.kind = InitializerKind::kRandomUniform}},
    {"TruncatedNormal", "truncated_normal", {.kind = InitializerKind::kTruncatedNormal}},
    {"GlorotUniform", "glorot_uniform", Scaling(1, ScalingMode::kFanAvg, Distribution::kUniform)},
    {"GlorotNormal", "glorot_normal",
     Scaling(1, ScalingMode::kFanAvg, Distribution::kTruncatedNormal)},
    {"HeUniform", "he_uniform", Scaling(2, ScalingMode::kFanIn, Distribution::kUniform)},
    {"HeNormal", "he_normal", Scaling(2, ScalingMode::kFanIn, Distribution::kTruncatedNormal)},
    {"LecunUniform", "lecun_uniform", Scaling(1, ScalingMode::kFanIn, Distribution::kUniform)},
    {"LecunNormal", "lecun_normal",
     Scaling(1, ScalingMode::kFanIn, Distribution::kTruncatedNormal)},
    {"VarianceScaling", "variance_scaling",
     Scaling(1, ScalingMode::kFanIn, Distribution::kTruncatedNormal)},
    {"Orthogonal", "orthogonal", {.kind = InitializerKind::kOrthogonal}},
    {"OrthogonalInitializer", "orthogonal", {.kind = InitializerKind::kOrthogonal}},
    {"Identity", "identity", {.kind = InitializerKind::kIdentity}},
    {"IdentityInitializer", "identity", {.kind = InitializerKind::kIdentity}},
};

constexpr std::string_view kModes[] = {"fan_in", "fan_out", "fan_avg"};
constexpr std::string_view kDistributions[] = {"uniform", "untruncated_normal", "truncated_normal"};

const Class* FindClass(std::string_view name) {
  for (const Class& entry : kClasses) {
    if (entry.class_name == name || entry.name == name) return &entry;
  }
  return nullptr;
}

template <typename Enum>
Status ReadEnum(Arguments& arguments, std::string_view argument,
                std::span<const std::string_view> names, Enum& into) {
  const JsonField field = arguments[argument];
  if (!field.present()) return OkStatus();
  const StatusOr<std::string> text = field.String();
  std::string expected = "one of";
  for (size_t i = 0; i < names.size(); ++i) {
    if (text.ok() && *text == names[i]) {
      into = static_cast<Enum>(i);
      return OkStatus();
    }
    expected += (i == 0 ? " " : ", ") + std::string(names[i]);
  }
  return arguments.Named(field.Mismatch(expected));
}

Status ReadScaling(Arguments& arguments, Initializer& value) {
  RETURN_IF_ERROR(arguments.Read("scale", value.scale));
  RETURN_IF_ERROR(ReadEnum(arguments, "mode", kModes, value.mode));
  RETURN_IF_ERROR(ReadEnum(arguments, "distribution", kDistributions, value.distribution));
  if (value.scale > 0) return OkStatus();
  return arguments.Named(arguments["scale"].Mismatch("a number above 0"));
}

Status ReadArguments(const Class& entry, Arguments& arguments, Initializer& value) {
  // Accept arguments that only some versions of Keras write.
  RETURN_IF_ERROR(arguments.Only("dtype", "\"float32\""));
  RETURN_IF_ERROR(arguments.OnlyNull({"input_axes", "output_axes"}));
  switch (entry.value.kind) {
    case InitializerKind::kZeros:
    case InitializerKind::kOnes:
      return OkStatus();
    case InitializerKind::kConstant:
      return arguments.Read("value", value.value);
    case InitializerKind::kRandomUniform:
      RETURN_IF_ERROR(arguments.Read("minval", value.minval));
      RETURN_IF_ERROR(arguments.Read("maxval", value.maxval));
      break;
    case InitializerKind::kRandomNormal:
    case InitializerKind::kTruncatedNormal:
      RETURN_IF_ERROR(arguments.Read("mean", value.mean));
      RETURN_IF_ERROR(arguments.Read("stddev", value.stddev));
      break;
    case InitializerKind::kVarianceScaling:
      if (entry.class_name == "VarianceScaling") RETURN_IF_ERROR(ReadScaling(arguments, value));
      break;
    case InitializerKind::kIdentity:
      return arguments.Read("gain", value.gain);
    case InitializerKind::kOrthogonal:
      RETURN_IF_ERROR(arguments.Read("gain", value.gain));
      break;
  }
  return arguments.Read("seed", value.seed);
}

Json Seed(const Initializer& value) {
  return value.seed ? Json(*value.seed) : Json();
}

Json WriteArguments(const Class& entry, const Initializer& value) {
  switch (value.kind) {
    case InitializerKind::kZeros:
    case InitializerKind::kOnes:
      return Json::object();
    case InitializerKind::kConstant:
      return {{"value", value.value}};
    case InitializerKind::kRandomUniform:
      return {{"minval", value.minval}, {"maxval", value.maxval}, {"seed", Seed(value)}};
    case InitializerKind::kRandomNormal:
    case InitializerKind::kTruncatedNormal:
      return {{"mean", value.mean}, {"stddev", value.stddev}, {"seed", Seed(value)}};
    case InitializerKind::kIdentity:
      return {{"gain", value.gain}};
    case InitializerKind::kOrthogonal:
      return {{"gain", value.gain}, {"seed", Seed(value)}};
    case InitializerKind::kVarianceScaling:
      break;
  }
  if (entry.class_name != "VarianceScaling") return {{"seed", Seed(value)}};
  return {{"scale", value.scale},
          {"mode", std::string(kModes[static_cast<size_t>(value.mode)])},
          {"distribution", std::string(kDistributions[static_cast<size_t>(value.distribution)])},
          {"seed", Seed(value)}};
}

// Returns the most specific class for this initializer, such as GlorotUniform rather than
// VarianceScaling.
const Class& ClassOf(const Initializer& value) {
  for (const Class& entry : kClasses) {
    if (entry.value.kind != value.kind) continue;
    const bool same = entry.value.scale == value.scale && entry.value.mode == value.mode &&
                      entry.value.distribution == value.distribution;
    if (value.kind != InitializerKind::kVarianceScaling || same) return entry;
  }
  return *FindClass("VarianceScaling");
}

}  // namespace

StatusOr<Initializer> ReadInitializer(const JsonField& field) {
  ASSIGN_OR_RETURN(ClassForm form, ReadClassForm(field, "an initializer"));
  const Class* entry = FindClass(form.class_name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const Class& known : kClasses) {
      if (names.empty() || names.back() != known.name) names.emplace_back(known.name);
    }
    return InvalidArgument(field.path(), ": initializer ", form.class_name, " is not supported",
                           DidYouMean(form.class_name, names));
  }
  Initializer value = entry->value;
  Arguments arguments(StrCat("initializer ", entry->class_name), form.arguments);
  RETURN_IF_ERROR(ReadArguments(*entry, arguments, value));
  RETURN_IF_ERROR(arguments.Finish());
  return value;
}

Json WriteInitializer(const Initializer& initializer) {
  const Class& entry = ClassOf(initializer);
  return {{"module", "keras.initializers"},
          {"class_name", std::string(entry.class_name)},
          {"config", WriteArguments(entry, initializer)},
          {"registered_name", nullptr}};
}

}  // namespace tfjob::model
