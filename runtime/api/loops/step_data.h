// Defines the data that a Step records, and converts the data to a steps::Definition. Private to
// this package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/compiled_state.h"
#include "runtime/api/function.h"
#include "runtime/api/loops/workspace.h"
#include "runtime/steps/definition.h"

namespace tfjob::api {

// A value of a step that no layer computes, such as a variable or a gradient.
struct StepValue {
  std::string name;  // of the function that returned it, for error messages
  steps::Emit emit;
  int64_t owner = 0;  // the `number` of the StepData that the value belongs to
};

struct StepData {
  int64_t number = NextNumber();  // unique in the process
  std::shared_ptr<const SessionData> session;
  tfjob::Status error;  // the first one
  std::vector<std::shared_ptr<CompiledData>> models;
  steps::Definition definition;
  // Values that become nodes even if no result depends on them, in the order in which the step has
  // created them. These are calls of models, which may change statistics, and penalties, which
  // depend on earlier calls.
  std::vector<Symbol> roots;
  struct Application {
    size_t model = 0;
    std::vector<Symbol> gradients;
  };
  std::vector<Application> applications;
  struct Returned {
    std::string name;
    Symbol value;
    steps::Reduction reduction = steps::Reduction::kNone;
    bool over_examples = false;
  };
  std::vector<Returned> returned;

  void Fail(tfjob::Status status) { error.Update(std::move(status)); }
  // Returns a new value of this step.
  Symbol Make(const std::string& name, std::vector<Symbol> inputs, steps::Emit emit) const;
  // Returns the model's index in `models`, adding it first if necessary. If the model cannot be
  // used, records an error that starts with `function`, and returns 0.
  size_t NumberOf(const CompiledModel& model, const char* function);
  // Returns a value for each trainable variable of the model, or none if the variables are unknown.
  // After an error, the step uses these values instead of the variables.
  std::vector<Symbol> PlaceholdersFor(const CompiledData* model) const;
  // Adds a result, whose name must be new.
  void AddResult(Returned result);
  // Completes `definition` with everything that the step has recorded.
  tfjob::Status Finish();
  static int64_t NextNumber();
};

struct FunctionData {
  std::shared_ptr<Workspace> workspace;
  std::string name;     // for error messages: "function 0 (x float32[1]) of model a"
  uint64_t digest = 0;  // of the step; 0 if this task runs it alone
  std::vector<std::shared_ptr<CompiledData>> models;
  std::unique_ptr<steps::StepRunner> runner;
};

// Appends values, and the calls that they depend on, to a definition.
class StepWriter {
 public:
  // All symbols passed to Write must belong to the step `owner`.
  StepWriter(const StepData& owner, steps::Definition& definition)
      : owner_(owner), definition_(definition) {}

  StatusOr<steps::Value> Write(const Symbol& symbol);

 private:
  tfjob::Status WriteCall(const CallData& call);

  const StepData& owner_;
  steps::Definition& definition_;
  std::map<const CallData*, int> nodes_;
};

}  // namespace tfjob::api
