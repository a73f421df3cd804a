#include "runtime/optimizer/optimizer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/json.h"

namespace tfjob::optimizer {
namespace {

constexpr Kind kKinds[] = {Kind::kSgd, Kind::kAdagrad, Kind::kAdam, Kind::kRmsprop};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Status AtLeastZero(std::string_view name, double value) {
  if (std::isfinite(value) && value >= 0) return OkStatus();
  return InvalidArgument("optimizer: ", name, " is ", value,
                         ": it must be a finite number, 0 or more");
}

// Checks a momentum or a decay factor (beta, rho). With a factor of 1, old values would never fade.
Status BelowOne(std::string_view name, double value) {
  if (value >= 0 && value < 1) return OkStatus();
  return InvalidArgument("optimizer: ", name, " is ", value, ": it must be at least 0 and below 1");
}

}  // namespace

StatusOr<Kind> ParseKind(std::string_view name) {
  for (Kind kind : kKinds) {
    if (Lower(Name(kind)) == Lower(name)) return kind;
  }
  return InvalidArgument("there is no optimizer \"", name, "\": use SGD, Adagrad, Adam or RMSprop");
}

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kSgd:
      return "SGD";
    case Kind::kAdagrad:
      return "Adagrad";
    case Kind::kAdam:
      return "Adam";
    case Kind::kRmsprop:
      return "RMSprop";
  }
  return "";
}

Optimizer Optimizer::Default(Kind kind) {
  Optimizer optimizer;
  optimizer.kind = kind;
  optimizer.learning_rate = kind == Kind::kSgd ? 0.01 : 0.001;
  return optimizer;
}

Status Validate(const Optimizer& o) {
  RETURN_IF_ERROR(AtLeastZero("learning_rate", o.learning_rate));
  RETURN_IF_ERROR(Annotate(Validate(o.schedule), "optimizer"));
  if (o.kind == Kind::kSgd || o.kind == Kind::kRmsprop) {
    RETURN_IF_ERROR(BelowOne("momentum", o.momentum));
  }
  if (o.kind == Kind::kSgd && o.nesterov && o.momentum == 0) {
    return InvalidArgument("optimizer: nesterov needs a momentum above 0");
  }
  if (o.kind != Kind::kSgd) RETURN_IF_ERROR(AtLeastZero("epsilon", o.epsilon));
  if (o.kind == Kind::kAdagrad) {
    RETURN_IF_ERROR(AtLeastZero("initial_accumulator_value", o.initial_accumulator_value));
  }
  if (o.kind == Kind::kAdam) {
    RETURN_IF_ERROR(BelowOne("beta_1", o.beta_1));
    RETURN_IF_ERROR(BelowOne("beta_2", o.beta_2));
  }
  return o.kind == Kind::kRmsprop ? BelowOne("rho", o.rho) : OkStatus();
}

std::vector<Slot> Slots(const Optimizer& o) {
  switch (o.kind) {
    case Kind::kSgd:
      if (o.momentum == 0) return {};
      return {{"momentum", "momentum", 0}};
    case Kind::kAdagrad:
      return {{"accumulator", "Adagrad", o.initial_accumulator_value}};
    case Kind::kAdam:
      return {{"momentum", "Adam", 0}, {"velocity", "Adam_1", 0}};
    case Kind::kRmsprop:
      break;
  }
  std::vector<Slot> slots = {{"velocity", "RMSProp", 0}};
  if (o.centered) slots.push_back({"average_gradient", "RMSProp_1", 0});
  if (o.momentum != 0) {
    slots.push_back({"momentum", o.centered ? "RMSProp_2" : "RMSProp_1", 0});
  }
  return slots;
}

Attributes ToAttributes(const Optimizer& o) {
  Attributes attributes{{"kind", std::string(Name(o.kind))}, {"learning_rate", o.learning_rate}};
  if (o.schedule.decay != Decay::kNone) {
    attributes.Set("learning_rate_schedule", PrintJson(ToJson(o.schedule)));
  }
  const bool rmsprop = o.kind == Kind::kRmsprop;
  if (o.kind == Kind::kSgd || rmsprop) attributes.Set("momentum", o.momentum);
  if (o.kind == Kind::kSgd) attributes.Set("nesterov", o.nesterov);
  if (o.kind == Kind::kAdagrad) {
    attributes.Set("initial_accumulator_value", o.initial_accumulator_value);
  }
  if (o.kind == Kind::kAdam) {
    attributes.Set("beta_1", o.beta_1);
    attributes.Set("beta_2", o.beta_2);
  }
  if (rmsprop) {
    attributes.Set("rho", o.rho);
    attributes.Set("centered", o.centered);
  }
  if (o.kind != Kind::kSgd) attributes.Set("epsilon", o.epsilon);
  return attributes;
}

StatusOr<Optimizer> FromAttributes(const Attributes& attributes) {
  ASSIGN_OR_RETURN(Kind kind, ParseKind(attributes.Get<std::string>("kind", "")));
  Optimizer o = Optimizer::Default(kind);
  o.learning_rate = attributes.Get("learning_rate", o.learning_rate);
  if (const auto* schedule = attributes.Find<std::string>("learning_rate_schedule")) {
    ASSIGN_OR_RETURN(const Json json, ParseJson(*schedule, "learning_rate_schedule"));
    ASSIGN_OR_RETURN(o.schedule, ParseSchedule(JsonField(json)));
  }
  o.momentum = attributes.Get("momentum", o.momentum);
  o.nesterov = attributes.Get("nesterov", o.nesterov);
  o.initial_accumulator_value =
      attributes.Get("initial_accumulator_value", o.initial_accumulator_value);
  o.beta_1 = attributes.Get("beta_1", o.beta_1);
  o.beta_2 = attributes.Get("beta_2", o.beta_2);
  o.rho = attributes.Get("rho", o.rho);
  o.centered = attributes.Get("centered", o.centered);
  o.epsilon = attributes.Get("epsilon", o.epsilon);
  RETURN_IF_ERROR(Validate(o));
  return o;
}

}  // namespace tfjob::optimizer
