// Puts arguments into Keras' order. The tables of layers and keys have a different order. C++
// requires designated initializers to be in the order of declaration, so this order cannot change
// later. tests/interop compares the result with Keras.
#include <algorithm>
#include <utility>

#include "runtime/api/generate/generate.h"

namespace tfjob::api {
namespace {

// Returns lists of arguments. If a class has several of the arguments in a list, these arguments
// directly follow each other, in the order of the list.
const std::vector<std::vector<std::string_view>>& Sequences() {
  static const auto* const kSequences = new std::vector<std::vector<std::string_view>>{
      {"depthwise_initializer", "pointwise_initializer", "kernel_initializer",
       "recurrent_initializer", "bias_initializer",      "unit_forget_bias",
       "depthwise_regularizer", "pointwise_regularizer", "kernel_regularizer",
       "recurrent_regularizer", "bias_regularizer",      "beta_regularizer",
       "gamma_regularizer",     "activity_regularizer",  "depthwise_constraint",
       "pointwise_constraint",  "kernel_constraint",     "recurrent_constraint",
       "bias_constraint",       "beta_constraint",       "gamma_constraint"},
      {"rho", "momentum"},
      {"epsilon", "centered"},
      {"epsilon", "amsgrad"},
      {"learning_rate_power", "initial_accumulator_value"},
      {"clipnorm", "clipvalue", "global_clipnorm", "use_ema", "ema_momentum",
       "ema_overwrite_frequency", "gradient_accumulation_steps"},
      {"apply_class_balancing", "alpha", "gamma", "from_logits", "label_smoothing"}};
  return *kSequences;
}

// Moves an argument of a class to the position after the argument `after`, or to the front if
// `after` is "".
struct Move {
  std::string_view class_name, name, after;
};

constexpr Move kMoves[] = {
    {"AdamW", "weight_decay", ""},
    {"BatchNormalization", "synchronized", "gamma_constraint"},
    {"Bidirectional", "backward_layer", "merge_mode"},
    {"DepthwiseConv1D", "depth_multiplier", "padding"},
    {"DepthwiseConv2D", "depth_multiplier", "padding"},
    {"Dice", "axis", "reduction"},
    {"GRU", "reset_after", "go_backwards"},
    {"GRUCell", "reset_after", "recurrent_dropout"},
    {"IntegerLookup", "mask_token", "max_tokens"},
    {"IntegerLookup", "vocabulary", "oov_token"},
    {"MultiHeadAttention", "use_gate", "bias_constraint"},
    {"RandomRotation", "seed", "interpolation"},
    {"RandomShear", "interpolation", "y_factor"},
    {"RandomTranslation", "seed", "interpolation"},
    {"RandomZoom", "seed", "interpolation"},
    {"SimpleRNN", "seed", "go_backwards"},
    {"Tversky", "axis", "reduction"},
};

void Gather(const std::vector<std::string_view>& names, std::vector<GeneratedField>& fields) {
  const auto rank = [&names](const GeneratedField& field) {
    return std::ranges::find(names, field.name) - names.begin();
  };
  const auto listed = [&](const GeneratedField& field) {
    return rank(field) < static_cast<std::ptrdiff_t>(names.size());
  };
  const auto first = std::ranges::find_if(fields, listed);
  const auto end = std::stable_partition(first, fields.end(), listed);
  std::stable_sort(first, end, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

void MoveAfter(const Move& move, std::vector<GeneratedField>& fields) {
  const auto found = std::ranges::find(fields, move.name, &GeneratedField::name);
  if (found == fields.end()) return;
  GeneratedField field = std::move(*found);
  fields.erase(found);
  auto place = fields.begin();
  if (!move.after.empty()) {
    place = std::ranges::find(fields, move.after, &GeneratedField::name);
    if (place != fields.end()) ++place;
  }
  fields.insert(place, std::move(field));
}

}  // namespace

void OrderAsKeras(std::string_view class_name, std::vector<GeneratedField>& fields) {
  for (const auto& names : Sequences()) Gather(names, fields);
  for (const Move& move : kMoves) {
    if (move.class_name == class_name) MoveAfter(move, fields);
  }
}

}  // namespace tfjob::api
