// Applies contributions that another program has computed: runs one step of the optimizer on all
// variables, in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/exec/program.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/strategy/model/model_definition.h"

namespace tfjob::strategy {

// Owned by one thread. Run allocates no memory.
class Updates {
 public:
  // A contribution to a variable, as ModelProgram returns it. Must not change during Run.
  struct Input {
    std::span<const std::byte> value;
    std::span<const int64_t> indices = {};  // row indices, for a gradient by rows
    bool on_device = false;                 // the value is in the device's memory (exec::Feed)
  };

  // Compiles the updates for the contributions of the training graph that `definition` describes.
  // The updates clip the gradients by `clipping`, unless the training graph has already done so.
  // Creates the optimizer's slots in `store`, which must outlive the updates.
  static StatusOr<std::unique_ptr<Updates>> Compile(const ModelDefinition& definition,
                                                    const optimizer::Clipping& clipping,
                                                    variables::VariableStore& store,
                                                    const exec::Device& device);

  const exec::Program& program() const { return *program_; }
  // Returns the number of rows that Run expects in the gradient of variable v, including rows with
  // index -1; 0 if the variable has no gradient by rows.
  int64_t rows_of(int v) const;

  // Applies the contributions. `input_of(v)` returns the contribution to variable v. `step` is the
  // number of updates before this one.
  Status Run(int64_t step, absl::FunctionRef<Input(int)> input_of);

 private:
  Updates() = default;

  std::unique_ptr<exec::Program> program_;
  std::vector<exec::Feed> feeds_;
  std::vector<int> feed_of_variable_;     // -1 if the variable does not change
  std::vector<int> indices_of_variable_;  // -1 if the variable has no gradient by rows
  int64_t step_ = 0;
};

// Caches updates for gradients by rows that were summed over several ranks. Such gradients have a
// different number of rows in each step, whereas the shapes of a program are fixed. The norm of a
// gradient may depend on how many zeros follow it, so all ranks must use the same program for a
// step. The number of rows that a program expects therefore depends only on the rows of the step,
// not on earlier steps.
//
// Caches the most recently used programs. With clipping or gradient accumulation, each program
// allocates memory for whole tables.
class UpdatesByRows {
 public:
  // Compiles the updates for a small number of rows, which also creates the slots. The arguments
  // are the same as for Updates::Compile, and must outlive the object.
  static StatusOr<std::unique_ptr<UpdatesByRows>> Compile(const ModelDefinition& definition,
                                                          const optimizer::Clipping& clipping,
                                                          variables::VariableStore& store,
                                                          const exec::Device& device);

  // Returns the updates for a step in which the gradient of variable v has rows(v) rows. Compiles
  // them unless they are cached. The pointer is valid until the next call. Calls rows(v) only for
  // variables with gradients by rows.
  StatusOr<Updates*> For(absl::FunctionRef<int64_t(int)> rows);
  // Returns the variables that updates write, in write order.
  const std::vector<variables::Variable*>& written() const { return written_; }
  // Returns the number of cached programs.
  size_t size() const { return recent_.size(); }

 private:
  struct Entry {
    int64_t examples = 0;  // a power of two; the program expects the rows of this many examples
    std::unique_ptr<Updates> updates;
  };

  UpdatesByRows(const ModelDefinition& definition, const optimizer::Clipping& clipping,
                variables::VariableStore& store, const exec::Device& device)
      : definition_(definition), clipping_(clipping), store_(store), device_(device) {}
  StatusOr<Updates*> ForExamples(int64_t examples);

  const ModelDefinition& definition_;
  const optimizer::Clipping& clipping_;
  variables::VariableStore& store_;
  const exec::Device& device_;
  std::vector<Entry> recent_;             // the most recently used first
  std::vector<int64_t> rows_of_example_;  // rows of each variable's gradient per example
  std::vector<variables::Variable*> written_;
};

}  // namespace tfjob::strategy
