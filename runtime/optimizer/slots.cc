// Implements the functions of optimizer.h that concern slots.
#include "runtime/optimizer/optimizer.h"

namespace tfjob::optimizer {
namespace {

std::vector<Slot> SlotsOfRmsprop(const Optimizer& o) {
  std::vector<Slot> slots = {{"velocity", "RMSProp"}};
  if (o.centered) slots.push_back({"average_gradient", "RMSProp_1"});
  if (o.momentum != 0) slots.push_back({"momentum", o.centered ? "RMSProp_2" : "RMSProp_1"});
  return slots;
}

std::vector<Slot> SlotsOfAdam(const Optimizer& o) {
  std::vector<Slot> slots = {{"momentum", "Adam"}, {"velocity", "Adam_1"}};
  if (o.amsgrad) slots.push_back({"velocity_hat", "velocity_hat"});
  return slots;
}

std::vector<Slot> SlotsOfKind(const Optimizer& o) {
  switch (o.kind) {
    case Kind::kSgd:
      if (o.momentum == 0) return {};
      return {{"momentum", "momentum"}};
    case Kind::kAdagrad:
      return {{"accumulator", "Adagrad", o.initial_accumulator_value}};
    case Kind::kAdam:
    case Kind::kAdamW:
      return SlotsOfAdam(o);
    case Kind::kNadam:
      return {{"momentum", "momentum"}, {"velocity", "velocity"}};
    case Kind::kAdamax:
      return {{"momentum", "momentum"}, {"norm", "norm"}};
    case Kind::kAdadelta:
      return {{"accumulated_grad", "Adadelta"}, {"accumulated_delta_var", "Adadelta_1"}};
    case Kind::kFtrl:
      return {{"accumulator", "Ftrl", o.initial_accumulator_value}, {"linear", "Ftrl_1"}};
    case Kind::kLion:
      return {{"momentum", "momentum"}};
    case Kind::kRmsprop:
      break;
  }
  return SlotsOfRmsprop(o);
}

// Returns the size of the result of SlotsOfKind, without allocating memory.
int CountOfKind(const Optimizer& o) {
  const int momentum = o.momentum != 0 ? 1 : 0;
  switch (o.kind) {
    case Kind::kSgd:
      return momentum;
    case Kind::kAdagrad:
    case Kind::kLion:
      return 1;
    case Kind::kAdam:
    case Kind::kAdamW:
      return o.amsgrad ? 3 : 2;
    case Kind::kRmsprop:
      return 1 + (o.centered ? 1 : 0) + momentum;
    case Kind::kNadam:
    case Kind::kAdamax:
    case Kind::kAdadelta:
    case Kind::kFtrl:
      break;
  }
  return 2;
}

}  // namespace

std::vector<Slot> Slots(const Optimizer& o) {
  std::vector<Slot> slots = SlotsOfKind(o);
  if (o.use_ema) slots.push_back({"average", "average", 0, /*starts_as_variable=*/true});
  if (o.gradient_accumulation_steps > 0)
    slots.push_back({"gradient_accumulator", "gradient_accumulator"});
  return slots;
}

int SlotCount(const Optimizer& o) {
  return CountOfKind(o) + (o.use_ema ? 1 : 0) + (o.gradient_accumulation_steps > 0 ? 1 : 0);
}

int AverageSlot(const Optimizer& o) {
  return o.use_ema ? CountOfKind(o) : -1;
}

}  // namespace tfjob::optimizer
