#include "operator/service/departure.h"

#include "operator/view/console.h"

namespace tfjob::service {
namespace {

// The limits for the time after the stop request. Unfinished calls for the lease are cancelled
// after kLeaseMayTake, and all other calls after kCallsMayTake. kEventsMayTake limits how long
// events are sent.
constexpr Duration kCallsMayTake = 1s;
constexpr Duration kLeaseMayTake = 1500ms;
constexpr Duration kEventsMayTake = 300ms;

int ExitCodeOf(int reason) {
  if (reason == kMisconfigured) return view::kBadInput;
  return reason > 0 ? view::kSucceeded : view::kFailed;
}

}  // namespace

Departure PlanDeparture(int reason) {
  const bool lost = reason == kLeaseLost;
  return {ExitCodeOf(reason),
          {{lost ? Duration(0) : kCallsMayTake, CancelCalls::kOfLoop},
           {lost ? Duration(0) : kLeaseMayTake, CancelCalls::kOfLease}},
          lost ? Duration(0) : kEventsMayTake};
}

}  // namespace tfjob::service
