#include "runtime/selftest/model_check.h"

#include <cmath>
#include <deque>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/philox.h"
#include "runtime/exec/program.h"
#include "runtime/model/apply_layer.h"
#include "runtime/tensor/tensor.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::selftest {
namespace {

using model::VariableSpec;

constexpr uint64_t kSeed = 1;  // of the initial values

// Returns values for a feed: small integers, which are valid ids and classes, or pixels below 1.
Tensor FeedOf(const exec::Port& port, int step) {
  Tensor feed(port.type.dtype, port.type.shape);
  PhiloxStream random(PhiloxKey(static_cast<uint64_t>(step), port.name));
  const uint32_t bound = port.name == "segments" || port.name == model::kLabels ? 2 : 24;
  const auto fill = [&](auto values) {
    for (auto& value : values)
      value = static_cast<std::remove_reference_t<decltype(value)>>(random.Below(bound));
  };
  if (port.type.dtype == DType::kInt32) fill(feed.data<int32_t>());
  if (port.type.dtype == DType::kInt64) fill(feed.data<int64_t>());
  if (port.type.dtype == DType::kFloat32) fill(feed.data<float>());
  if (port.type.dtype == DType::kFloat32 && port.type.shape.rank() > 2) {
    for (float& pixel : feed.data<float>()) pixel /= static_cast<float>(bound);
  }
  if (port.name == model::kStep) feed.data<int64_t>()[0] = step;
  if (port.name == model::kLossScale) feed.data<float>()[0] = 1024;
  return feed;
}

Tensor InitialOf(const VariableSpec& spec) {
  return InitialValue(spec.initializer, spec.dtype, spec.shape, kSeed, spec.name);
}

Status CreateVariables(const model::BuiltGraph& built, variables::VariableStore& store) {
  for (const VariableSpec& spec : built.variables) {
    ASSIGN_OR_RETURN(auto* const variable,
                     store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable));
    RETURN_IF_ERROR(variable->FromTensor(InitialOf(spec)));
  }
  return OkStatus();
}

// Runs a program with up to `at_once` steps in progress.
class Trainer {
 public:
  Trainer(exec::Program& program, size_t at_once) : program_(program), at_once_(at_once) {}

  Status Run(int steps, Trained& trained) {
    for (int step = 0; step < steps; ++step) {
      if (tickets_.size() == at_once_) RETURN_IF_ERROR(End(trained));
      RETURN_IF_ERROR(Start(step));
    }
    while (!tickets_.empty()) RETURN_IF_ERROR(End(trained));
    return OkStatus();
  }

 private:
  Status Start(int step) {
    std::vector<Tensor>& values = values_.emplace_back();
    for (const exec::Port& port : program_.feeds()) values.push_back(FeedOf(port, step));
    std::vector<exec::Feed> feeds;
    for (const Tensor& value : values) feeds.push_back(exec::Feed::Of(value));
    ASSIGN_OR_RETURN(exec::Ticket ticket, program_.Start(feeds));
    tickets_.push_back(std::move(ticket));
    return OkStatus();
  }

  Status End(Trained& trained) {
    const Status ended = tickets_.front().Wait();
    tickets_.pop_front();
    values_.pop_front();
    RETURN_IF_ERROR(ended);
    const auto number = [this](std::string_view fetch) {
      return program_.Fetch<float>(program_.FindFetch(fetch))[0];
    };
    trained.losses.push_back(number(model::kLossSum));
    trained.hits.push_back(number("accuracy_sum"));
    return OkStatus();
  }

  exec::Program& program_;
  const size_t at_once_;
  std::deque<std::vector<Tensor>> values_;  // of the steps in progress
  std::deque<exec::Ticket> tickets_;
};

double Norm(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

double Distance(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return Norm(a);
}

// Returns whether a variable changes too little to be compared. The key bias of an attention layer
// adds the same number to all scores of a query, so the softmax does not depend on the bias. In
// nmt-small, all scores of the attention are almost equal at first, so the variables for its
// queries and keys have tiny gradients.
bool ChangesTooLittle(const std::string& name) {
  return name.ends_with("key/bias") || name == "attention/key/kernel" ||
         name == "attention/query/kernel";
}

Status CompareChanges(const std::string& name, const std::vector<float>& actual,
                      const std::vector<float>& expected, double tolerance) {
  const double root = std::sqrt(static_cast<double>(expected.size()));
  const double change = Norm(expected) / root;
  const double difference = Distance(actual, expected) / root;
  if (!ChangesTooLittle(name) && !(change > 2e-6))
    return Internal(name, " changes only by ", change);
  if (difference < tolerance * change + 2e-7) return OkStatus();
  return Internal(name, " changes by ", change, ", and differs by ", difference);
}

StatusOr<std::string> CompareWithCpu(const ExampleModel& example, const exec::Device& device,
                                     int steps) {
  ASSIGN_OR_RETURN(const model::Model model, ReadExampleModel(example.name));
  ASSIGN_OR_RETURN(const model::BuiltGraph built, BuildExampleModel(example, model));
  ASSIGN_OR_RETURN(const Trained expected, Train(built, exec::CpuDevice(), steps));
  ASSIGN_OR_RETURN(const Trained actual, Train(built, device, steps));
  // Differences grow with the number of steps.
  const double growth = std::max(1.0, steps / 3.0);
  RETURN_IF_ERROR(
      CompareTrained(actual, expected, {.losses = 1e-4 * growth, .changes = 1e-3 * growth}));
  ASSIGN_OR_RETURN(const Trained overlapped, Train(built, device, steps, Steps::kOverlapped));
  if (overlapped != actual) return Internal("overlapping steps give other results");
  return absl::StrFormat("loss %.4f to %.4f", actual.losses.front(), actual.losses.back());
}

}  // namespace

StatusOr<Trained> Train(const model::BuiltGraph& built, const exec::Device& device, int count,
                        Steps steps) {
  Trained trained;
  variables::VariableStore store(device.row_stride, device.runtime);
  RETURN_IF_ERROR(CreateVariables(built, store));
  ASSIGN_OR_RETURN(const auto program, exec::Compile(built.graph, store, device));
  Trainer trainer(*program, steps == Steps::kOverlapped ? exec::kMaxRuns : 1);
  RETURN_IF_ERROR(trainer.Run(count, trained));
  trained.arena_bytes = program->arena_bytes();
  for (const VariableSpec& spec : built.variables) {
    const Tensor value = store.Find(spec.name)->ToTensor();
    if (value.dtype() != DType::kFloat32) continue;
    const Tensor initial = InitialOf(spec);
    std::vector<float>& changes = trained.changes[spec.name];
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const auto at = static_cast<size_t>(i);
      changes.push_back(value.data<float>()[at] - initial.data<float>()[at]);
    }
  }
  return trained;
}

Status CompareTrained(const Trained& actual, const Trained& expected, const Tolerance& tolerance) {
  if (actual.losses.size() != expected.losses.size())
    return Internal(actual.losses.size(), " steps instead of ", expected.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    const float loss = actual.losses[i], right = expected.losses[i];
    if (!(std::abs(loss - right) <= tolerance.losses * std::abs(right)))
      return Internal("step ", i, ": a loss of ", loss, " instead of ", right);
    if (i < tolerance.equal_hits && actual.hits[i] != expected.hits[i])
      return Internal("step ", i, ": ", actual.hits[i], " hits instead of ", expected.hits[i]);
  }
  for (const auto& [name, changes] : expected.changes) {
    const auto found = actual.changes.find(name);
    if (found == actual.changes.end()) return Internal("there is no variable ", name);
    RETURN_IF_ERROR(CompareChanges(name, found->second, changes, tolerance.changes));
  }
  return OkStatus();
}

Finding CheckModel(const ExampleModel& example, const exec::Device& device, int steps) {
  const StatusOr<std::string> compared = CompareWithCpu(example, device, steps);
  return {std::string(example.name), StrCat(steps, " training steps"),
          compared.ok() ? Verdict::kRight : Verdict::kWrong,
          compared.ok() ? *compared : std::string(Message(compared.status()))};
}

}  // namespace tfjob::selftest
