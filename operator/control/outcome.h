// Describes how a reconcile, or a step of it, ended.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace tfjob::control {

enum class Next {
  kDone,       // the next step may run; after the last step, nothing is left to do
  kReadAgain,  // the known version of the job may be old: read the job and start over
  kJobIsGone,  // the job or its namespace is gone or being deleted: nothing is left to do
  kFailed,     // retry after a backoff
};

struct Outcome {
  Next next = Next::kDone;
  Status error;                                        // for kFailed; for kReadAgain, the reason
  std::optional<Duration> again_after = std::nullopt;  // reconcile again after at most this time
  uint64_t id = 0;                                     // identifies the reconcile in logs

  // Returns true if the job must be reconciled again after a backoff.
  bool NeedsRetry() const { return next == Next::kReadAgain || next == Next::kFailed; }
};

inline Outcome ReadAgain(std::string_view reason) {
  return {Next::kReadAgain, Aborted(reason)};
}

// Returns kDone or kFailed.
inline Outcome OutcomeOf(Status status) {
  return status.ok() ? Outcome{} : Outcome{Next::kFailed, std::move(status)};
}

// Keeps the first error.
inline void KeepFirst(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

}  // namespace tfjob::control
