// Defines the types of arguments that are not plain numbers.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tfjob::api {

class Model;

// The value of an argument: a flag, a number or a string.
class Value {
 public:
  using Held = std::variant<bool, int64_t, double, std::string>;

  Value(bool value) : held_(value) {}                // NOLINT: conversions are the purpose
  Value(int value) : held_(int64_t{value}) {}        // NOLINT
  Value(int64_t value) : held_(value) {}             // NOLINT
  Value(long long value) : held_(int64_t{value}) {}  // NOLINT
  Value(unsigned value) : held_(int64_t{value}) {}   // NOLINT
  Value(size_t value) : held_(static_cast<int64_t>(value)) {}  // NOLINT
  Value(double value) : held_(value) {}                        // NOLINT
  Value(const char* value) : held_(std::string(value)) {}      // NOLINT
  Value(std::string value) : held_(std::move(value)) {}        // NOLINT

  const Held& held() const { return held_; }

 private:
  Held held_;
};

// An initializer, a regularizer, a constraint or a metric: the name that Keras uses, with arguments
// if needed:
//
//   Dense{.units = 10, .kernel_initializer = "he_normal"}
//   Dense{.units = 10, .kernel_regularizer = {"l2", {{"l2", 1e-4}}}}
struct Named {
  Named() = default;
  Named(const char* name) : name(name) {}             // NOLINT: a name is enough
  Named(std::string name) : name(std::move(name)) {}  // NOLINT
  Named(std::string name, std::vector<std::pair<std::string, Value>> arguments)
      : name(std::move(name)), arguments(std::move(arguments)) {}

  std::string name;  // "" for Keras' default
  std::vector<std::pair<std::string, Value>> arguments;
  std::shared_ptr<const Model> model;  // set by CustomMetric
};

// An integer type. Floating-point types are excluded, because 0.5 would silently become 0.
template <typename T>
concept Integral = std::integral<T> && !std::same_as<T, bool>;

// An integer that may be unset: `.units = 10`.
class OptionalInteger : public std::optional<int64_t> {
 public:
  OptionalInteger() = default;
  template <Integral T>
  OptionalInteger(T value) : std::optional<int64_t>(value) {}  // NOLINT
  OptionalInteger(std::nullopt_t) {}                           // NOLINT
};

// A list of integers, or one integer that stands for all elements: `.kernel_size = 3` is the same
// as `.kernel_size = {3, 3}`.
class Integers {
 public:
  Integers() = default;
  template <Integral T>
  Integers(T all) : values_{static_cast<int64_t>(all)}, one_(true) {}    // NOLINT
  Integers(std::initializer_list<int64_t> values) : values_(values) {}   // NOLINT
  Integers(std::vector<int64_t> values) : values_(std::move(values)) {}  // NOLINT

  const std::vector<int64_t>& values() const { return values_; }
  bool one() const { return one_; }

 private:
  std::vector<int64_t> values_;
  bool one_ = false;
};

}  // namespace tfjob::api
