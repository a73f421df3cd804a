#include "operator/control/call_errors.h"

namespace tfjob::control {

bool IsRefusal(const Status& error) {
  return absl::IsInvalidArgument(error) || absl::IsPermissionDenied(error) ||
         absl::IsInternal(error);
}

bool MayHaveBeenExecuted(const Status& error) {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) || absl::IsInternal(error);
}

bool IsTransient(const Status& error) {
  return MayHaveBeenExecuted(error) || absl::IsResourceExhausted(error) || absl::IsAborted(error);
}

bool IsGoneOrTaken(const Status& error) {
  return absl::IsNotFound(error) || absl::IsAborted(error);
}

Status WithoutConflict(const Status& error) {
  return absl::IsAborted(error) ? Unavailable(Message(error)) : error;
}

}  // namespace tfjob::control
