// Defines layers that turn numbers into categories, and categories into vectors.
#pragma once

#include <string_view>

#include "runtime/model/layer.h"

namespace tfjob::model::layers {

// What becomes of the categories of an example: they stay numbers (kInt); each becomes a row with a
// one at its position, the last axis being dropped first if it has the size 1 (kOneHot); or all
// categories of the example, which then has one axis, become one vector, with a one per category
// that occurs (kMultiHot), or with their counts (kCount). A number that is no category, because it
// is negative or too large, leaves no trace in the vectors.
enum class Encoding { kInt, kOneHot, kMultiHot, kCount };

// Encodes integers below num_tokens. Fractions are cut off.
struct CategoryEncoding {
  static constexpr std::string_view kClass = "CategoryEncoding";
  int64_t num_tokens = 0;
  Encoding output_mode = Encoding::kMultiHot;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces each number by the number of boundaries that it reaches, int32.
struct Discretization {
  static constexpr std::string_view kClass = "Discretization";
  std::vector<double> bin_boundaries;
  Encoding output_mode = Encoding::kInt;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces each integer by its index in the vocabulary, int64, after the index of the mask token,
// if there is one, and the index of all integers that the vocabulary lacks.
struct IntegerLookup {
  static constexpr std::string_view kClass = "IntegerLookup";
  std::vector<int64_t> vocabulary;
  std::optional<int64_t> mask_token = {};  // only with kInt
  std::optional<int64_t> max_tokens = {};  // only stored: it limits what adapt() learns
  int64_t oov_token = -1;                  // only stored: it names unknown integers in Keras
  Encoding output_mode = Encoding::kInt;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
