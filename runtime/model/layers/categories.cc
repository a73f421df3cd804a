#include "runtime/model/layers/categories.h"

#include <algorithm>
#include <array>

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

// Limits the number of elements of a table, which is a constant in the graph.
constexpr int64_t kLongestTable = int64_t{1} << 20;
constexpr int64_t kFarthest = int64_t{1} << 62;  // below this limit, differences do not overflow
constexpr std::array<std::string_view, 4> kEncodings = {"int", "one_hot", "multi_hot", "count"};

// Returns the type of the encoded categories. `count` is the number of categories.
StatusOr<TensorType> EncodedType(Encoding encoding, int64_t count, const Shape& in, DType integer) {
  if (encoding == Encoding::kInt) return TensorType{integer, in};
  std::vector<int64_t> dims = in.dims();
  if (encoding == Encoding::kOneHot) {
    if (!dims.empty() && dims.back() == 1) dims.pop_back();
    dims.push_back(count);
    return TensorType{DType::kFloat32, Shape(std::move(dims))};
  }
  if (dims.size() == 1) return TensorType{DType::kFloat32, {count}};
  return InvalidArgument("output_mode ", kEncodings[static_cast<size_t>(encoding)],
                         " expects examples of one axis, got ", in.ToString());
}

Output Numbers(Builder& b, int64_t count, DType dtype) {
  Tensor numbers(DType::kInt64, {count});
  for (int64_t i = 0; i < count; ++i) numbers.data<int64_t>()[static_cast<size_t>(i)] = i;
  return Cast(b, Const(b, std::move(numbers)), dtype);
}

// Encodes `categories`, which are int32 or int64 [batch, …].
Output Encoded(const LayerCall& call, Output categories, Encoding encoding, int64_t count) {
  Builder& b = call.b;
  if (encoding == Encoding::kInt || !b.ok()) return categories;
  std::vector<int64_t> dims = b.shape(categories).dims();
  if (encoding == Encoding::kOneHot && dims.size() > 1 && dims.back() == 1) dims.pop_back();
  dims.push_back(1);
  const Output column = graph::Reshape(b, categories, Shape(std::move(dims)));
  const Output hot =
      Cast(b, Equal(b, column, Numbers(b, count, b.dtype(categories))), DType::kFloat32);
  if (encoding == Encoding::kOneHot) return hot;
  return encoding == Encoding::kCount ? Sum(b, hot, {1}) : Max(b, hot, {1});
}

}  // namespace

void CategoryEncoding::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer(
      "num_tokens", num_tokens,
      {.least = 1, .most = kLongestTable, .expected = kPositive.expected, .required = true});
  visitor.Choice("output_mode", output_mode, kEncodings);
  visitor.Retired("sparse", "false");
}

StatusOr<std::vector<TensorType>> CategoryEncoding::OutputTypes(
    std::span<const TensorType> in) const {
  RETURN_IF_ERROR(ExpectOneInput(in, /*any_dtype=*/true));
  if (output_mode == Encoding::kInt)
    return InvalidArgument("output_mode: expected one of one_hot, multi_hot, count, got int");
  ASSIGN_OR_RETURN(TensorType type, EncodedType(output_mode, num_tokens, in[0].shape, {}));
  return std::vector{std::move(type)};
}

Output CategoryEncoding::Apply(const LayerCall& call) const {
  return Encoded(call, Cast(call.b, call.x(), DType::kInt64), output_mode, num_tokens);
}

void Discretization::Arguments(ArgumentVisitor& visitor) {
  visitor.Numbers("bin_boundaries", bin_boundaries);
  visitor.Choice("output_mode", output_mode, kEncodings);
  visitor.Only("sparse", "false");
  // These arguments affect only how adapt() chooses the boundaries.
  visitor.Ignored("num_bins");
  visitor.Ignored("epsilon");
}

StatusOr<std::vector<TensorType>> Discretization::OutputTypes(
    std::span<const TensorType> in) const {
  RETURN_IF_ERROR(ExpectOneInput(in, /*any_dtype=*/true));
  if (bin_boundaries.empty())
    return InvalidArgument("expected bin_boundaries: give them to the layer, or adapt it");
  if (!std::ranges::is_sorted(bin_boundaries))
    return InvalidArgument("expected bin_boundaries in ascending order");
  const auto count = static_cast<int64_t>(bin_boundaries.size()) + 1;
  ASSIGN_OR_RETURN(TensorType type, EncodedType(output_mode, count, in[0].shape, DType::kInt32));
  return std::vector{std::move(type)};
}

Output Discretization::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  Tensor boundaries(DType::kFloat32, {static_cast<int64_t>(bin_boundaries.size())});
  std::ranges::transform(bin_boundaries, boundaries.data<float>().begin(),
                         [](double boundary) { return static_cast<float>(boundary); });
  std::vector<int64_t> dims = b.shape(call.x()).dims();
  dims.push_back(1);
  const Output column =
      Cast(b, graph::Reshape(b, call.x(), Shape(std::move(dims))), DType::kFloat32);
  const Output reached = GreaterEqual(b, column, Const(b, std::move(boundaries)));
  const Output bins = Cast(b, Sum(b, Cast(b, reached, DType::kFloat32), {-1}), DType::kInt32);
  return Encoded(call, bins, output_mode, static_cast<int64_t>(bin_boundaries.size()) + 1);
}

void IntegerLookup::Arguments(ArgumentVisitor& visitor) {
  visitor.Integers("vocabulary", vocabulary, {});
  visitor.Optional("mask_token", mask_token);
  visitor.Optional("max_tokens", max_tokens);
  visitor.Integer("oov_token", oov_token, {});
  visitor.Choice("output_mode", output_mode, kEncodings);
  visitor.Only("num_oov_indices", "1");
  visitor.Only("invert", "false");
  visitor.Only("sparse", "false");
  visitor.Only("pad_to_max_tokens", "false");
  visitor.Only("vocabulary_dtype", "\"int64\"");
  visitor.Only("idf_weights", "null");
  visitor.Ignored("vocabulary_size");
  // These arguments affect only layers that distribute unknown integers over several indices.
  visitor.Ignored("oov_method");
  visitor.Ignored("salt");
}

StatusOr<std::vector<TensorType>> IntegerLookup::OutputTypes(std::span<const TensorType> in) const {
  RETURN_IF_ERROR(ExpectOneInput(in, /*any_dtype=*/true));
  if (vocabulary.empty()) {
    return InvalidArgument(
        "expected a vocabulary; that of a layer that was adapted is not supported, so give it to ",
        "the layer as an argument");
  }
  std::vector<int64_t> sorted = vocabulary;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return InvalidArgument("the vocabulary contains ", *twice, " twice");
  for (const int64_t token : {oov_token, mask_token.value_or(oov_token)}) {
    if (!std::ranges::binary_search(sorted, token)) continue;
    return InvalidArgument("the vocabulary contains ", token,
                           ", which is also the oov_token or the mask_token; leave it out");
  }
  const bool far = sorted.front() <= -kFarthest || sorted.back() >= kFarthest;
  if (far || sorted.back() - sorted.front() >= kLongestTable) {
    return InvalidArgument("expected a vocabulary within a range of ", kLongestTable,
                           " integers, got integers from ", sorted.front(), " to ", sorted.back());
  }
  if (mask_token && output_mode != Encoding::kInt)
    return InvalidArgument("mask_token is only supported with output_mode int");
  const auto count = static_cast<int64_t>(vocabulary.size()) + 1;
  ASSIGN_OR_RETURN(TensorType type, EncodedType(output_mode, count, in[0].shape, DType::kInt64));
  return std::vector{std::move(type)};
}

// Looks up each integer in a table with one element per integer from the smallest to the greatest
// one in the vocabulary. An additional first element is for all smaller integers, and an additional
// last element for all greater ones.
Output IntegerLookup::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  const auto [least, most] = std::ranges::minmax(vocabulary);
  const int64_t size = most - least + 3, unknown = mask_token ? 1 : 0;
  Tensor table(DType::kInt64, {size});
  std::ranges::fill(table.data<int64_t>(), unknown);
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    table.data<int64_t>()[static_cast<size_t>(vocabulary[i] - least + 1)] =
        unknown + 1 + static_cast<int64_t>(i);
  }
  const auto number = [&](int64_t value) { return Const(b, Tensor::Of<int64_t>({}, {value})); };
  const Output x = Cast(b, call.x(), DType::kInt64);
  const Output within =
      graph::Minimum(b, graph::Maximum(b, x, number(least - 1)), number(most + 1));
  Output index = Gather(b, Const(b, std::move(table)), Sub(b, within, number(least - 1)));
  if (mask_token) index = Select(b, Equal(b, x, number(*mask_token)), number(0), index);
  return Encoded(call, index, output_mode, static_cast<int64_t>(vocabulary.size()) + 1);
}

}  // namespace tfjob::model::layers
