// Defines the types of the optimizer, the learning rate and the loss that a model is compiled with.
// optimizers.h and losses.h declare the classes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tfjob::api {

struct FormData;

// A learning rate: a number, or a schedule, which changes the rate with the step:
//   Adam{.learning_rate = 1e-3}
//   Adam{.learning_rate = CosineDecay{.initial_learning_rate = 1e-3, .decay_steps = 1000}}
class LearningRate {
 public:
  LearningRate() = default;                   // the optimizer's default
  LearningRate(double rate) : rate_(rate) {}  // NOLINT: a number is a learning rate

 private:
  friend struct Access;
  std::optional<double> rate_;
  std::shared_ptr<const FormData> schedule_;
};

// An optimizer of any class. Immutable and cheap to copy.
class Optimizer {
 public:
  // Moving an Optimizer copies it, so a moved-from Optimizer can still be used.
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer() : Optimizer("rmsprop") {}  // Keras' default
  Optimizer(const char* name)
      : Optimizer(std::string(name)) {}  // NOLINT: "adam" has Keras' defaults
  Optimizer(const std::string& name);    // NOLINT
  Optimizer(std::nullptr_t) = delete;

 private:
  friend struct Access;
  explicit Optimizer(std::shared_ptr<const FormData> data) : data_(std::move(data)) {}

  std::shared_ptr<const FormData> data_;
};

// A loss of any class. Immutable and cheap to copy.
class Loss {
 public:
  Loss() = default;                                    // no loss
  Loss(const char* name) : Loss(std::string(name)) {}  // NOLINT: "huber" has Keras' defaults
  Loss(const std::string& name);                       // NOLINT
  Loss(std::nullptr_t) = delete;

  bool present() const { return data_ != nullptr; }

 private:
  friend struct Access;
  explicit Loss(std::shared_ptr<const FormData> data) : data_(std::move(data)) {}

  std::shared_ptr<const FormData> data_;
};

}  // namespace tfjob::api
