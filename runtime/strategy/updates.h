// Applies contributions that another program has computed: one run of the optimizer on all
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
#include "runtime/strategy/model_definition.h"

namespace tfjob::strategy {

// Owned by one thread. Running allocates nothing.
class Updates {
 public:
  // A contribution to a variable, as ModelProgram returns it. Must not change during Run.
  struct Input {
    std::span<const std::byte> value;
    std::span<const int64_t> indices = {};  // row indices, for a gradient by rows
  };

  // Compiles the updates for the contributions of the training graph that `definition` describes.
  // The updates clip the gradients by `clipping`, unless the training graph has already done so.
  // Creates the optimizer's slots in `store`, which must outlive the updates.
  static StatusOr<std::unique_ptr<Updates>> Compile(const ModelDefinition& definition,
                                                    const optimizer::Clipping& clipping,
                                                    variables::VariableStore& store,
                                                    const exec::Device& device);

  const exec::Program& program() const { return *program_; }

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

}  // namespace tfjob::strategy
