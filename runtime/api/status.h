// Defines how the functions of this library report errors. None of them throws an exception.
//
//   Result<CompiledModel> compiled = session.Compile(model, options);
//   if (!compiled.ok()) std::cerr << compiled.status().message() << "\n";
//
// A program that cannot continue after an error calls value(), which prints the error and ends the
// process:
//
//   CompiledModel compiled = session.Compile(model, options).value();
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>

namespace tfjob::api {

struct Access;

// The values are those of gRPC's codes.
enum class StatusCode {
  kOk = 0,
  kCancelled = 1,  // the process was asked to stop, or its job has ended
  kUnknown = 2,
  kInvalidArgument = 3,  // the input is invalid; a retry does not help
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,   // a limit is reached, for example a full disk
  kFailedPrecondition = 9,  // not possible in the current state
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,  // not supported by this library
  kInternal = 13,       // a bug in this library
  kUnavailable = 14,    // a problem with another task or the network
  kDataLoss = 15,       // damaged data
  kUnauthenticated = 16,
};

// Returns the name of the code, such as "INVALID_ARGUMENT".
const char* Name(StatusCode code);

// OK, or an error with a message that says what is wrong, what was expected and what to change.
class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const& { return message_; }
  std::string message() && { return std::move(message_); }
  // Returns "OK", or "INVALID_ARGUMENT: " and the message.
  std::string ToString() const;
  // Ends the process (Exit) if this is an error.
  void value() const;

 private:
  friend struct Access;

  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  bool job_over_ = false;  // kCancelled because the job has ended without this task
};

std::ostream& operator<<(std::ostream& out, const Status& status);

// Writes the error to standard error and, in a container, to the termination message. Then ends the
// process immediately: flushes the standard streams, but runs no destructors.
//
// The exit codes are those of tfjob-trainer. The operator of a TFJob decides from the code whether
// a retry may help: 138 for an error that may be temporary, 2 for an invalid argument, 128 plus the
// signal's number if a signal asked the process to stop, and 1 for other errors. The code is 0 for
// an OK status, and for the kCancelled that Fit returns in a task whose job has ended without it,
// because a retry is not needed. A program that handles signals itself should also choose the exit
// code after a signal itself, such as 143 after SIGTERM.
[[noreturn]] void Exit(const Status& status);

// A value, or the error that explains why there is no value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}       // NOLINT: a value is a result
  Result(Status error) : status_(std::move(error)) {  // NOLINT: an error is a result
    if (status_.ok()) status_ = Status(StatusCode::kInternal, "a Result needs a value or an error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  // Return the value, or end the process (Exit) if this is an error. A temporary Result returns the
  // value itself rather than a reference, so `for (auto& x : Weights().value())` is safe. Other
  // types of this library also avoid returning references into temporary objects.
  T& value() & { return Checked(); }
  const T& value() const& { return const_cast<Result*>(this)->Checked(); }
  T value() && { return std::move(Checked()); }
  T& operator*() & { return Checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->Checked(); }
  T operator*() && { return std::move(Checked()); }
  T* operator->() & { return &Checked(); }
  const T* operator->() const& { return &const_cast<Result*>(this)->Checked(); }
  // Deleted, because the pointer would outlive the temporary Result: write Fit(…).value().epoch.
  const T* operator->() const&& = delete;

 private:
  T& Checked() {
    if (!value_) Exit(status_);
    return *value_;
  }

  Status status_;
  std::optional<T> value_;
};

}  // namespace tfjob::api
