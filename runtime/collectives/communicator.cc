#include "runtime/collectives/communicator.h"

#include <algorithm>

namespace tfjob::collectives {

Slice SliceOf(int64_t count, int rank, int ranks) {
  const int64_t size = count / ranks, larger = count % ranks;
  return {rank * size + std::min<int64_t>(rank, larger), size + (rank < larger ? 1 : 0)};
}

}  // namespace tfjob::collectives
