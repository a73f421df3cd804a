#include "runtime/api/status.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "runtime/api/access.h"
#include "runtime/cluster/termination_message.h"

namespace tfjob::api {

const char* Name(StatusCode code) {
  constexpr const char* kNames[] = {"OK",
                                    "CANCELLED",
                                    "UNKNOWN",
                                    "INVALID_ARGUMENT",
                                    "DEADLINE_EXCEEDED",
                                    "NOT_FOUND",
                                    "ALREADY_EXISTS",
                                    "PERMISSION_DENIED",
                                    "RESOURCE_EXHAUSTED",
                                    "FAILED_PRECONDITION",
                                    "ABORTED",
                                    "OUT_OF_RANGE",
                                    "UNIMPLEMENTED",
                                    "INTERNAL",
                                    "UNAVAILABLE",
                                    "DATA_LOSS",
                                    "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN";
}

std::string Status::ToString() const {
  return ok() ? "OK" : StrCat(Name(code_), ": ", message_);
}

void Status::value() const {
  if (!ok()) Exit(*this);
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

namespace {

// Marks the status of a task whose job has ended without it.
constexpr char kJobOver[] = "tfjob/job-over";

int CodeOf(const Status& status) {
  if (status.code() != StatusCode::kCancelled) return ExitCode(FromPublic(status), NoStop());
  if (LastStopSignal() != 0) return 128 + LastStopSignal();
  return Access::IsJobOver(status) ? 0 : 1;
}

}  // namespace

void Exit(const Status& status) {
  std::cout.flush();
  const bool error = CodeOf(status) != 0;
  if (!status.ok())
    std::fprintf(stderr, "%s%s\n", error ? "error: " : "", status.message().c_str());
  if (error) cluster::WriteTerminationMessage(cluster::TerminationLog(), status.message());
  std::fflush(nullptr);
  // Run no destructors, because other threads may still be computing.
  std::_Exit(CodeOf(status));
}

tfjob::Status JobOver(tfjob::Status cancelled) {
  cancelled.SetPayload(kJobOver, absl::Cord("1"));
  return cancelled;
}

Status ToPublic(const tfjob::Status& status) {
  Status made(static_cast<StatusCode>(status.raw_code()), std::string(Message(status)));
  Access::SetJobOver(made, status.GetPayload(kJobOver).has_value());
  return made;
}

tfjob::Status FromPublic(const Status& status) {
  const bool known =
      status.code() >= StatusCode::kOk && status.code() <= StatusCode::kUnauthenticated;
  const StatusCode code = known ? status.code() : StatusCode::kUnknown;
  tfjob::Status made(static_cast<tfjob::StatusCode>(code), status.message());
  return Access::IsJobOver(status) ? JobOver(std::move(made)) : made;
}

const StopSource& NoStop() {
  static const StopSource* const kNever = new StopSource;
  return *kNever;
}

}  // namespace tfjob::api
