#include "runtime/model/keras/weights.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/base/did_you_mean.h"

namespace tfjob::keras {
namespace {

bool Matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool MatchesAny(std::span<const std::string> patterns, const std::string& name) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return Matches(pattern, name); });
}

Status CheckPatterns(const Weights& weights, std::span<const model::VariableSpec> variables,
                     std::span<const std::string> skip) {
  for (const std::string& pattern : skip) {
    const bool used =
        std::ranges::any_of(
            variables, [&](const auto& variable) { return Matches(pattern, variable.name); }) ||
        std::ranges::any_of(weights.entries,
                            [&](const auto& entry) { return Matches(pattern, entry.first); });
    if (used) continue;
    std::vector<std::string> names;
    for (const model::VariableSpec& variable : variables) names.push_back(variable.name);
    return InvalidArgument("the pattern \"", pattern, "\" of weights to skip matches no variable",
                           DidYouMean(pattern, names));
  }
  return OkStatus();
}

// Returns the names of the tensors in the file that do not belong to a variable and do not match a
// pattern.
std::vector<std::string> Unexpected(const Weights& weights,
                                    std::span<const model::VariableSpec> variables,
                                    std::span<const std::string> skip) {
  std::set<std::string_view> known;
  for (const model::VariableSpec& variable : variables) known.insert(variable.name);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : weights.entries) {
    if (!known.contains(name) && !MatchesAny(skip, name)) names.push_back(name);
  }
  return names;
}

// Returns whether the variable counts something, and the file has the count in fewer bits: Keras'
// type of counts depends on its backend.
bool IsNarrowCount(DType stored, const model::VariableSpec& variable) {
  return stored == DType::kInt32 && variable.dtype == DType::kInt64;
}

StatusOr<Tensor> ReadValue(const Weights& weights, const model::VariableSpec& variable) {
  ASSIGN_OR_RETURN(Tensor value, weights.read(variable.name));
  if (!IsNarrowCount(value.dtype(), variable)) return value;
  Tensor wide(variable.dtype, value.shape());
  std::ranges::copy(value.data<int32_t>(), wide.data<int64_t>().begin());
  return wide;
}

Status CheckVariable(const Weights& weights, const model::VariableSpec& variable,
                     std::span<const std::string> unexpected) {
  const auto found = weights.entries.find(variable.name);
  if (found == weights.entries.end()) {
    return InvalidArgument(weights.file, " has no weights for ", variable.name,
                           unexpected.empty() ? "" : DidYouMean(variable.name, unexpected));
  }
  const StoredTensor& stored = found->second;
  if (!stored.dtype)
    return weights.read(variable.name).status();  // the reason why `read` rejects the tensor
  const bool same = *stored.dtype == variable.dtype || IsNarrowCount(*stored.dtype, variable);
  if (same && stored.shape == variable.shape) return OkStatus();
  return InvalidArgument(weights.file, ": ", variable.name, " is ", Name(*stored.dtype),
                         stored.shape.ToString(), " there, but ", Name(variable.dtype),
                         variable.shape.ToString(), " in the model");
}

}  // namespace

StatusOr<std::vector<std::optional<StoredValue>>> OpenValues(
    const Weights& weights, std::span<const model::VariableSpec> variables,
    std::span<const std::string> skip, std::span<const int> streamed) {
  RETURN_IF_ERROR(CheckPatterns(weights, variables, skip));
  const std::vector<std::string> unexpected = Unexpected(weights, variables, skip);
  for (const model::VariableSpec& variable : variables) {
    if (MatchesAny(skip, variable.name)) continue;
    RETURN_IF_ERROR(CheckVariable(weights, variable, unexpected));
  }
  if (!unexpected.empty() && !weights.contains_others) {
    std::vector<std::string> names;
    for (const model::VariableSpec& variable : variables) names.push_back(variable.name);
    return InvalidArgument(weights.file, " has weights for ", unexpected[0],
                           ", which the model does not have", DidYouMean(unexpected[0], names));
  }
  std::vector<std::optional<StoredValue>> values;
  for (size_t v = 0; v < variables.size(); ++v) {
    values.emplace_back();
    const model::VariableSpec& variable = variables[v];
    if (MatchesAny(skip, variable.name)) continue;
    const bool stream = std::ranges::binary_search(streamed, static_cast<int>(v));
    StoredValue& value = values.back().emplace();
    if (stream && weights.entries.at(variable.name).dtype == variable.dtype) {
      ASSIGN_OR_RETURN(value.pieces, weights.open(variable.name));
    } else {
      ASSIGN_OR_RETURN(value.whole, ReadValue(weights, variable));
    }
  }
  return values;
}

StatusOr<std::vector<std::optional<Tensor>>> ReadValues(
    const Weights& weights, std::span<const model::VariableSpec> variables,
    std::span<const std::string> skip) {
  ASSIGN_OR_RETURN(auto stored, OpenValues(weights, variables, skip, {}));
  std::vector<std::optional<Tensor>> values;
  for (std::optional<StoredValue>& value : stored) {
    values.emplace_back();
    if (value) values.back() = std::move(value->whole);
  }
  return values;
}

}  // namespace tfjob::keras
