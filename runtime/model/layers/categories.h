// Defines layers that turn numbers into categories, and categories into vectors.
#pragma once

#include <string_view>

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Specifies how the categories of an example are encoded:
//   kInt       as numbers
//   kOneHot    each as a row with a one at its position. If the last axis has size 1, it is dropped
//              first
//   kMultiHot  all as one vector, with a one for each category that occurs
//   kCount     all as one vector of counts, one per category
// With kMultiHot and kCount, examples have one axis. A number that is negative or too large is not
// a category, and is ignored in rows and vectors.
enum class Encoding { kInt, kOneHot, kMultiHot, kCount };

// Encodes integers from 0 to num_tokens - 1. Truncates fractional numbers.
struct CategoryEncoding {
  static constexpr std::string_view kClass = "CategoryEncoding";
  static constexpr bool kComputesInFloat32 = true;
  int64_t num_tokens = 0;
  Encoding output_mode = Encoding::kMultiHot;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces each number with an int32, the number of boundaries that are less than or equal to the
// original number.
struct Discretization {
  static constexpr std::string_view kClass = "Discretization";
  static constexpr bool kComputesInFloat32 = true;
  std::vector<double> bin_boundaries;
  Encoding output_mode = Encoding::kInt;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Replaces each integer with an int64 index. The mask token, if there is one, has index 0. The next
// index is for all integers that are not in the vocabulary. The indices of the vocabulary's
// integers follow.
struct IntegerLookup {
  static constexpr std::string_view kClass = "IntegerLookup";
  static constexpr bool kComputesInFloat32 = true;
  std::vector<int64_t> vocabulary;
  std::optional<int64_t> mask_token = {};  // only supported with kInt
  std::optional<int64_t> max_tokens = {};  // stored but not used
  int64_t oov_token = -1;                  // stored but not used
  Encoding output_mode = Encoding::kInt;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(const LayerCall& call) const;
};

}  // namespace tfjob::model::layers
