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
    : features_(features),
      tensors_(std::move(tensors)),
      taken_(features.size()),
      next_(features.size() + 1) {
  for (size_t i = 0; i < features.size(); ++i) {
    Tensor& tensor = tensors_[i];
    places_.push_back({.begin = tensor.bytes().data(),
                       .bytes = tensor.num_bytes() / static_cast<size_t>(tensor.shape().dim(0))});
    next_[i] = numbers_.emplace(features[i].name, i).first->second;
  }
  next_.back() = features.size();
}

void ExampleRow::Begin(int64_t example) {
  example_ = static_cast<size_t>(example);
  std::ranges::fill(taken_, uint8_t{0});
  count_ = 0;
  last_ = 0;
}

std::optional<size_t> ExampleRow::FindByName(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return std::nullopt;
  next_[last_] = found->second;
  last_ = found->second + 1;
  return found->second;
}

Status ExampleRow::Twice() {
  return InvalidArgument("the example has it twice");
}

Status ExampleRow::FillIn(absl::FunctionRef<std::string(const ExampleFeature&)> describe) {
  for (size_t i = 0; i < features_.size(); ++i) {
    const ExampleFeature& feature = features_[i];
    if (taken_[i] != 0) continue;
    if (!feature.variable && !feature.fill) {
      return InvalidArgument("feature ", feature.name, ": expected ", describe(feature),
                             ", but the example does not have this feature");
    }
    FillMissing(feature, Elements(i));
  }
  return OkStatus();
}

}  // namespace tfjob::data
