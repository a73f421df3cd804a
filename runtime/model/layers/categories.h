// Defines layers that turn numbers into categories, and categories into vectors.
#pragma once

#include <string_view>

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// How the categories of an example are encoded:
//   kInt       as numbers
//   kOneHot    each as a row with a one at its position. If the last axis has size 1, it is dropped
//              first
//   kMultiHot  all as one vector, with a one for each category that occurs
//   kCount     all as one vector of counts, one per category
// With kMultiHot and kCount, examples have one axis. A number that is not a category, because it is
// negative or too large, adds nothing to rows and vectors.
enum class Encoding { kInt, kOneHot, kMultiHot, kCount };

// Encodes integers below num_tokens. Truncates numbers with a fraction.
struct CategoryEncoding {
  static constexpr std::string_view kClass = "CategoryEncoding";
  static constexpr bool kComputesInFloat32 = true;
  int64_t num_tokens = 0;
  Encoding output_mode = Encoding::kMultiHot;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces each number with the number of boundaries that do not exceed it, as an int32.
struct Discretization {
  static constexpr std::string_view kClass = "Discretization";
  static constexpr bool kComputesInFloat32 = true;
  std::vector<double> bin_boundaries;
  Encoding output_mode = Encoding::kInt;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces each integer with an index, an int64. If there is a mask token, it has index 0. The next
// index stands for all integers that the vocabulary lacks. The integers of the vocabulary follow.
struct IntegerLookup {
  static constexpr std::string_view kClass = "IntegerLookup";
  static constexpr bool kComputesInFloat32 = true;
  std::vector<int64_t> vocabulary;
  std::optional<int64_t> mask_token = {};  // only with kInt
  std::optional<int64_t> max_tokens = {};  // only stored: it limits what adapt() learns
  int64_t oov_token = -1;                  // only stored: in Keras, it stands for unknown integers
  Encoding output_mode = Encoding::kInt;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
