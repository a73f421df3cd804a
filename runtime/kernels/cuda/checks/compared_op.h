// Computes an op on the CPU, and compares the results of another device with those of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/base/status.h"
#include "runtime/kernels/cuda/checks/comparison.h"
#include "runtime/kernels/kernel.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::kernels::cuda {

// Calls body(offset, bytes) for each row of the operand. Both numbers are in bytes, and do not
// include the padding.
void ForRows(const Operand& operand, const std::function<void(size_t, size_t)>& body);

// Owned by one thread. `comparison` must outlive this object.
class ComparedOp {
 public:
  // Chooses the layouts of the operands. The seed determines these layouts, and the values of the
  // inputs.
  ComparedOp(const Comparison& comparison, uint64_t seed);

  const KernelRequest& request() const { return request_; }
  // Draws further random numbers, such as those for addresses.
  PhiloxStream& random() { return random_; }

  // Fills the inputs, and computes the expected outputs. Returns the kernel's error, if it refuses
  // its inputs.
  Status RunOnCpu();
  // Returns the values of an input, with its padding.
  const std::byte* input(size_t i) const { return inputs_[i]->data(); }

  // Returns the index of the input whose memory the output always uses (InPlace::kAlways), or -1 if
  // there is none.
  int UpdatedInput(size_t output) const;

  // Checks that the output is as expected, within the comparison's tolerance. Otherwise, returns
  // Internal with the position of the first wrong element.
  Status CheckOutput(size_t i, const std::byte* actual) const;
  // Checks that the output still contains the bits of the input whose memory it uses.
  Status CheckUnchanged(size_t i, const std::byte* actual) const;

 private:
  Operand Layout(const RandomOperand& operand);
  void FillInputs();

  const Comparison& comparison_;
  PhiloxStream random_;
  KernelRequest request_;
  std::vector<std::unique_ptr<Buffer>> inputs_, expected_;
};

}  // namespace tfjob::kernels::cuda
