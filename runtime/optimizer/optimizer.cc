#include "runtime/optimizer/optimizer.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "runtime/base/did_you_mean.h"
#include "runtime/optimizer/hyper_parameter.h"

namespace tfjob::optimizer {
namespace {

using internal::HyperParameter;
using internal::Range;

// Lists the names of the kinds, in the order of Kind.
constexpr std::string_view kNames[] = {"SGD",   "Adagrad", "Adam",     "RMSprop", "AdamW",
                                       "Nadam", "Adamax",  "Adadelta", "Ftrl",    "Lion"};
static_assert(std::size(kNames) == kKindCount);

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

struct Allowed {
  bool (*holds)(double value);
  std::string_view text;
};

// Lists the allowed values, in the order of Range. A momentum or decay factor of 1 is not allowed,
// because old values would never fade.
const Allowed kAllowed[] = {
    {[](double) { return true; }, ""},
    {[](double value) { return std::isfinite(value) && value >= 0; }, "a finite number, 0 or more"},
    {[](double value) { return value >= 0 && value < 1; }, "at least 0 and below 1"},
    {[](double value) { return value >= 0 && value <= 1; }, "between 0 and 1"},
    {[](double value) { return std::isfinite(value) && value <= 0; }, "a finite number, 0 or less"},
};

Status Check(const Optimizer& o, const HyperParameter& parameter) {
  const double value =
      std::visit([&](auto member) { return static_cast<double>(o.*member); }, parameter.member);
  const Allowed& allowed = kAllowed[static_cast<size_t>(parameter.range)];
  if (allowed.holds(value)) return OkStatus();
  return InvalidArgument("optimizer: ", parameter.name, " is ", value, ": it must be ",
                         allowed.text);
}

bool IsSet(const Optimizer& o, const HyperParameter& parameter) {
  const Optimizer unset;
  return std::visit([&](auto member) { return o.*member != unset.*member; }, parameter.member);
}

bool IsWritten(const Optimizer& o, const HyperParameter& parameter) {
  return !parameter.only_if_set || IsSet(o, parameter);
}

}  // namespace

// Stops after 1000 factors, because 1 - 0.96^i / 2 is rounded to 1 for much smaller i.
double NadamProduct(double beta_1, int64_t updates) {
  double product = std::pow(beta_1, static_cast<double>(updates)), power = 1;
  for (int i = 1; i <= 1000 && i <= updates; ++i) {
    power *= 0.96;
    product *= 1 - 0.5 * power;
  }
  return product;
}

StatusOr<Kind> ParseKind(std::string_view name) {
  std::vector<std::string> known;
  for (int i = 0; i < kKindCount; ++i) {
    if (Lower(kNames[i]) == Lower(name)) return static_cast<Kind>(i);
    known.emplace_back(kNames[i]);
  }
  return InvalidArgument("there is no optimizer \"", name, "\"", DidYouMean(name, known));
}

std::string_view Name(Kind kind) {
  return kNames[static_cast<size_t>(kind)];
}

Optimizer Optimizer::Default(Kind kind) {
  Optimizer optimizer;
  optimizer.kind = kind;
  optimizer.learning_rate = kind == Kind::kSgd ? 0.01 : 0.001;
  if (kind == Kind::kAdadelta) optimizer.rho = 0.95;
  if (kind == Kind::kLion) optimizer.beta_2 = 0.99;
  if (kind == Kind::kAdamW) optimizer.weight_decay = 0.004;
  return optimizer;
}

namespace {

bool Matches(const RE2& pattern, std::string_view text) {
  return pattern.ok() && RE2::PartialMatch({text.data(), text.size()}, pattern);
}

Status CheckPatterns(const std::vector<std::string>& patterns) {
  for (const std::string& text : patterns) {
    const RE2 pattern(text, RE2::Quiet);
    if (pattern.ok()) continue;
    return InvalidArgument("optimizer: exclude_from_weight_decay: ", text,
                           " is no regular expression: ", pattern.error());
  }
  return OkStatus();
}

}  // namespace

Status Validate(const Optimizer& o) {
  for (const HyperParameter& parameter : internal::HyperParameters()) {
    if (internal::Uses(o, parameter)) RETURN_IF_ERROR(Check(o, parameter));
  }
  RETURN_IF_ERROR(Annotate(Validate(o.schedule), "optimizer"));
  RETURN_IF_ERROR(CheckPatterns(o.exclude_from_weight_decay));
  if (o.kind == Kind::kSgd && o.nesterov && o.momentum == 0) {
    return InvalidArgument("optimizer: nesterov needs a momentum above 0");
  }
  if (o.kind == Kind::kFtrl && o.learning_rate == 0) {
    return InvalidArgument("optimizer: learning_rate is 0: Ftrl needs a number above 0");
  }
  if (o.gradient_accumulation_steps == 1) {
    return InvalidArgument(
        "optimizer: gradient_accumulation_steps is 1: it must be 2 or more, or 0 for none");
  }
  if (o.lazy && (o.use_ema || o.gradient_accumulation_steps > 0)) {
    return InvalidArgument("optimizer: lazy is true, but ",
                           o.use_ema ? "use_ema" : "gradient_accumulation_steps",
                           " changes all rows of a variable: set only one of the two");
  }
  return OkStatus();
}

Optimizer ForVariable(const Optimizer& optimizer, std::string_view variable) {
  Optimizer own = optimizer;
  const std::string_view last = variable.substr(variable.rfind('/') + 1);
  for (const std::string& text : optimizer.exclude_from_weight_decay) {
    const RE2 pattern(text, RE2::Quiet);
    if (Matches(pattern, variable) || Matches(pattern, last)) own.weight_decay = 0;
  }
  own.exclude_from_weight_decay.clear();
  return own;
}

bool KeepsRows(const Optimizer& o) {
  if (o.lazy) return true;
  const bool rests = o.kind == Kind::kAdagrad || (o.kind == Kind::kSgd && o.momentum == 0);
  return rests && o.weight_decay == 0 && !o.use_ema && o.gradient_accumulation_steps == 0;
}

Attributes ToAttributes(const Optimizer& o) {
  Attributes attributes{{"kind", std::string(Name(o.kind))}};
  for (const HyperParameter& parameter : internal::HyperParameters()) {
    if (!internal::Uses(o, parameter) || !IsWritten(o, parameter)) continue;
    std::visit([&](auto member) { attributes.Set(parameter.name, o.*member); }, parameter.member);
  }
  if (o.schedule.decay != Decay::kNone) {
    attributes.Set("learning_rate_schedule", PrintJson(ToJson(o.schedule)));
  }
  return attributes;
}

StatusOr<Optimizer> FromAttributes(const Attributes& attributes) {
  ASSIGN_OR_RETURN(Kind kind, ParseKind(attributes.Get<std::string>("kind", "")));
  Optimizer o = Optimizer::Default(kind);
  o.weight_decay = 0;  // ToAttributes omits a weight decay of 0
  for (const HyperParameter& parameter : internal::HyperParameters()) {
    std::visit([&](auto member) { o.*member = attributes.Get(parameter.name, o.*member); },
               parameter.member);
  }
  if (const auto* schedule = attributes.Find<std::string>("learning_rate_schedule")) {
    ASSIGN_OR_RETURN(const Json json, ParseJson(*schedule, "learning_rate_schedule"));
    ASSIGN_OR_RETURN(o.schedule, ParseSchedule(JsonField(json)));
  }
  RETURN_IF_ERROR(Validate(o));
  return o;
}

Json ToJson(const Optimizer& o) {
  Json json = {{"kind", std::string(Name(o.kind))}, {"learning_rate_schedule", ToJson(o.schedule)}};
  if (!o.exclude_from_weight_decay.empty())
    json["exclude_from_weight_decay"] = o.exclude_from_weight_decay;
  for (const HyperParameter& parameter : internal::HyperParameters()) {
    if (!IsWritten(o, parameter)) continue;
    std::visit([&](auto member) { json[std::string(parameter.name)] = o.*member; },
               parameter.member);
  }
  return json;
}

namespace {

Status Read(const JsonField& field, double& into) {
  ASSIGN_OR_RETURN(into, field.Double());
  return OkStatus();
}
Status Read(const JsonField& field, bool& into) {
  ASSIGN_OR_RETURN(into, field.Bool());
  return OkStatus();
}
Status Read(const JsonField& field, int64_t& into) {
  ASSIGN_OR_RETURN(into, field.Int());
  return OkStatus();
}

}  // namespace

StatusOr<Optimizer> ParseOptimizer(const JsonField& json) {
  Optimizer o;
  ASSIGN_OR_RETURN(const std::string kind, json["kind"].String());
  ASSIGN_OR_RETURN(o.kind, ParseKind(kind));
  ASSIGN_OR_RETURN(o.schedule, ParseSchedule(json["learning_rate_schedule"]));
  ASSIGN_OR_RETURN(const auto excluded, json["exclude_from_weight_decay"].Elements());
  for (const JsonField& text : excluded) {
    ASSIGN_OR_RETURN(o.exclude_from_weight_decay.emplace_back(), text.String());
  }
  for (const HyperParameter& parameter : internal::HyperParameters()) {
    if (parameter.only_if_set && !json[parameter.name].present()) continue;
    RETURN_IF_ERROR(std::visit([&](auto member) { return Read(json[parameter.name], o.*member); },
                               parameter.member));
  }
  RETURN_IF_ERROR(Validate(o));
  return o;
}

}  // namespace tfjob::optimizer
