// Defines the project's only error type: Abseil's Status, with its constructors and its two macros.
//
// Choose the code as follows (docs/errors.md contains the complete table):
//   InvalidArgument     the input is wrong and will stay wrong: report it to the user
//   NotFound, AlreadyExists, PermissionDenied, Unauthenticated   as their names imply
//   Aborted             another writer was first (HTTP 409 Conflict): read again and decide again
//   FailedPrecondition  not now; wait for a change
//   Unavailable, DeadlineExceeded   the peer or the network: retry the call
//   ResourceExhausted   a limit: retry later, or ask for less
//   DataLoss            bytes do not match their checksum or their format
//   Cancelled           this process was asked to stop
//   Internal            a bug in this project
//
// A message names the culprit (task, host:port, file, JSON path) and states what was expected, what
// was found and what to change. An error is either logged or returned, never both; only loops log.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace tfjob {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using StatusOr = absl::StatusOr<T>;

inline Status OkStatus() {
  return absl::OkStatus();
}

namespace internal {
// absl::StrCat takes Abseil's own string_view; these overloads convert std::string_view to it.
inline absl::string_view Piece(std::string_view text) {
  return {text.data(), text.size()};
}
inline absl::string_view Piece(const std::string& text) {
  return {text.data(), text.size()};
}
inline absl::string_view Piece(const char* text) {
  return text;
}
template <typename T>
const T& Piece(const T& value) {
  return value;
}
}  // namespace internal

// Concatenates strings, numbers and characters.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  return absl::StrCat(internal::Piece(parts)...);
}

#define TFJOB_DEFINE_ERROR(Name, Code)                 \
  template <typename... Parts>                         \
  Status Name(const Parts&... parts) {                 \
    return Status(StatusCode::Code, StrCat(parts...)); \
  }
TFJOB_DEFINE_ERROR(InvalidArgument, kInvalidArgument)
TFJOB_DEFINE_ERROR(NotFound, kNotFound)
TFJOB_DEFINE_ERROR(AlreadyExists, kAlreadyExists)
TFJOB_DEFINE_ERROR(PermissionDenied, kPermissionDenied)
TFJOB_DEFINE_ERROR(Unauthenticated, kUnauthenticated)
TFJOB_DEFINE_ERROR(Aborted, kAborted)
TFJOB_DEFINE_ERROR(FailedPrecondition, kFailedPrecondition)
TFJOB_DEFINE_ERROR(Unavailable, kUnavailable)
TFJOB_DEFINE_ERROR(DeadlineExceeded, kDeadlineExceeded)
TFJOB_DEFINE_ERROR(ResourceExhausted, kResourceExhausted)
TFJOB_DEFINE_ERROR(OutOfRange, kOutOfRange)
TFJOB_DEFINE_ERROR(Unimplemented, kUnimplemented)
TFJOB_DEFINE_ERROR(DataLoss, kDataLoss)
TFJOB_DEFINE_ERROR(Cancelled, kCancelled)
TFJOB_DEFINE_ERROR(Internal, kInternal)
#undef TFJOB_DEFINE_ERROR

// Returns the error with `context` and a colon prepended to its message, or an OK status unchanged.
Status Annotate(const Status& status, std::string_view context);

// Converts an errno value to NotFound, PermissionDenied, ResourceExhausted and so on, or to
// Unavailable if no other code fits. The message has the form "open /x: No such file or directory".
Status ErrnoStatus(int errno_value, std::string_view what);

// Returns the message as a std::string_view, for logs and tests.
inline std::string_view Message(const Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace tfjob

#define TFJOB_CONCAT_INNER(a, b) a##b
#define TFJOB_CONCAT(a, b) TFJOB_CONCAT_INNER(a, b)

// If `expr` is an error, returns it from the enclosing function.
#define RETURN_IF_ERROR(expr)                              \
  do {                                                     \
    if (::tfjob::Status status_ = (expr); !status_.ok()) { \
      return status_;                                      \
    }                                                      \
  } while (false)

// ASSIGN_OR_RETURN(auto value, MakeValue()) assigns the value or, if MakeValue() fails, returns its
// error from the enclosing function.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(TFJOB_CONCAT(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(temporary, lhs, expr) \
  auto temporary = (expr);                          \
  if (!temporary.ok()) return temporary.status();   \
  lhs = std::move(temporary).value()
