// Sums the parts of a validation that the tasks of a group have evaluated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/strategy/model/metric_totals.h"

namespace tfjob::strategy {

// The contribution of one task to a validation.
struct ValidationShare {
  bool complete = true;   // false: the task has not evaluated its whole part
  std::string agreement;  // see Validation
  MetricTotals totals;
};

// Not thread-safe.
class ValidationShares {
 public:
  // All ranks must call Exchange. `own` is null on a rank that contributes nothing. Returns the
  // communicator's error, or DataLoss if a rank has sent anything but a share.
  Status Exchange(collectives::Communicator& communicator, const ValidationShare* own);

  // Returns the sums of all shares, or nullopt if a share is incomplete. The sums are those of the
  // tree over the ranks in rank order (collectives/reduction.h), so all ranks get the same bits.
  // Returns FailedPrecondition if the shares' agreements differ; the message contains the names of
  // two tasks and their first difference. `names` has the name of each rank. If `expected` is not
  // null, the agreement of the shares must also equal it.
  StatusOr<std::optional<MetricTotals>> Sum(std::span<const std::string> names,
                                            const std::string* expected = nullptr) const;
  // Returns the agreement of the shares, which Sum has compared.
  const std::string& agreement() const;

 private:
  Status CheckAgreement(std::span<const std::string> names, const std::string* expected) const;

  std::vector<std::optional<ValidationShare>> shares_;  // by rank
};

}  // namespace tfjob::strategy
