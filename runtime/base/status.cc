#include "runtime/base/status.h"

#include <cerrno>
#include <system_error>

namespace tfjob {
namespace {

StatusCode CodeOf(int errno_value) {
  switch (errno_value) {
    case ENOENT:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
      return StatusCode::kPermissionDenied;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
      return StatusCode::kInvalidArgument;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return StatusCode::kResourceExhausted;
    case ETIMEDOUT:
      return StatusCode::kDeadlineExceeded;
    default:
      return StatusCode::kUnavailable;
  }
}

}  // namespace

Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  return Status(status.code(), StrCat(context, ": ", Message(status)));
}

Status ErrnoStatus(int errno_value, std::string_view what) {
  return Status(CodeOf(errno_value),
                StrCat(what, ": ", std::generic_category().message(errno_value)));
}

}  // namespace tfjob
