#include "runtime/state/run_failure.h"

namespace tfjob::state {
namespace {

constexpr char kRunFailureUrl[] = "tfjob/run_failure";

}  // namespace

Status RunFailure(std::string_view words) {
  Status status = OutOfRange(PlainWords(words));
  status.SetPayload(kRunFailureUrl, absl::Cord());
  return status;
}

bool IsRunFailure(const Status& status) {
  return !status.ok() && status.GetPayload(kRunFailureUrl).has_value();
}

std::string PlainWords(std::string_view words) {
  std::string plain(words.substr(0, kMaxFailureBytes));
  for (char& c : plain) {
    if (c < ' ' || c > '~') c = '?';
  }
  return plain;
}

}  // namespace tfjob::state
