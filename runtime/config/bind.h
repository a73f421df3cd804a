// Binds keys to members of TrainingConfig, for the sources that define keys.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/config/keys.h"

namespace tfjob::config {

// Returns the binding of a nested member: Bind<&TrainingConfig::data, &DataConfig::shuffle>().
template <auto... members>
Binding Bind() {
  using C = TrainingConfig;
  using T = std::remove_reference_t<decltype((std::declval<C&>().*....*members))>;
  if constexpr (std::is_enum_v<T>) {
    return Choice{[](C& config, int value) { (config.*....*members) = static_cast<T>(value); },
                  [](const C& config) { return static_cast<int>((config.*....*members)); }};
  } else {
    return Ref<T>{[](C& config) -> T& { return (config.*....*members); },
                  [](const C& config) -> const T& { return (config.*....*members); }};
  }
}

// Adds the keys of the `optimizer` section (optimizer_keys.cc).
void AddOptimizerKeys(std::vector<Key>& keys);
// Adds the keys of the `data` section (data_keys.cc).
void AddDataKeys(std::vector<Key>& keys);
// Adds the keys of the `strategy` section (strategy_keys.cc).
void AddStrategyKeys(std::vector<Key>& keys);

}  // namespace tfjob::config
