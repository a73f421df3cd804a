#include "runtime/data/records/example_row.h"

#include <algorithm>
#include <utility>

namespace tfjob::data {
namespace {

template <typename T>
void FillWith(double value, std::span<std::byte> to) {
  auto* elements = reinterpret_cast<T*>(to.data());
  std::fill_n(elements, to.size() / sizeof(T), static_cast<T>(value));
}

}  // namespace

std::string CountText(const ExampleFeature& feature) {
  const int64_t count = feature.shape.num_elements();
  return StrCat(feature.variable ? "at most " : "", count,
                feature.vocabulary != nullptr ? " string" : " value",
                feature.variable || count != 1 ? "s" : "");
}

void FillMissing(const ExampleFeature& feature, std::span<std::byte> elements) {
  const double value = feature.fill.value_or(0);
  if (feature.raw) {
    std::ranges::fill(elements, std::byte{0});
  } else if (feature.dtype == DType::kFloat32) {
    FillWith<float>(value, elements);
  } else {
    FillWith<int64_t>(value, elements);
  }
}

ExampleRow::ExampleRow(const std::vector<ExampleFeature>& features, std::vector<Tensor> tensors)
    : features_(features), tensors_(std::move(tensors)), taken_(features.size()) {
  for (size_t i = 0; i < features.size(); ++i) numbers_.emplace(features[i].name, i);
}

void ExampleRow::Begin(int64_t example) {
  example_ = static_cast<size_t>(example);
  std::fill(taken_.begin(), taken_.end(), false);
}

std::optional<size_t> ExampleRow::Find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

StatusOr<std::span<std::byte>> ExampleRow::Take(size_t number) {
  if (taken_[number]) return InvalidArgument("the example has it twice");
  taken_[number] = true;
  return Elements(number);
}

Status ExampleRow::End(absl::FunctionRef<std::string(const ExampleFeature&)> describe) {
  for (size_t i = 0; i < features_.size(); ++i) {
    const ExampleFeature& feature = features_[i];
    if (taken_[i]) continue;
    if (!feature.variable && !feature.fill) {
      return InvalidArgument("feature ", feature.name, ": expected ", describe(feature),
                             ", but the example does not have this feature");
    }
    FillMissing(feature, Elements(i));
  }
  return OkStatus();
}

std::span<std::byte> ExampleRow::Elements(size_t number) {
  Tensor& tensor = tensors_[number];
  const size_t bytes = tensor.num_bytes() / static_cast<size_t>(tensor.shape().dim(0));
  return tensor.bytes().subspan(example_ * bytes, bytes);
}

}  // namespace tfjob::data
