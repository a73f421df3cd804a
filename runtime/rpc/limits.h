// How much a peer may send at once.
#pragma once

#include <cstddef>

namespace tfjob::rpc {

// What a task accepts in one frame, header and table included, also of a peer that has not said who
// it is. Only texts (a job's definition, a ledger) come near it.
inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;

}  // namespace tfjob::rpc
