// Describes the right to write checkpoints to a folder, if this right can pass from one process to
// another.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/base/status.h"

namespace tfjob::io {

// By default, only one process ever writes to the folder.
struct WriteRight {
  // The term of the right, which increases whenever the right passes to another process. A folder
  // records the term of its newest checkpoint, and refuses checkpoints of earlier terms. 0: the
  // folder does not record terms.
  int64_t term = 0;
  // If set, returns an error once this process is no longer allowed to write. Any thread may call
  // it.
  std::function<Status()> check;

  Status Check() const { return check ? check() : OkStatus(); }
};

}  // namespace tfjob::io
