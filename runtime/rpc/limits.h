// Limits how much a peer may send at once.
#pragma once

#include <cstddef>

namespace tfjob::rpc {

// The largest frame that a task accepts, including header and table, even from a peer that has not
// identified itself yet. Only texts (a job's definition, a ledger) come near this size.
inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;

}  // namespace tfjob::rpc
