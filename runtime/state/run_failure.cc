#include "runtime/state/run_failure.h"

namespace tfjob::state {

Status RunFailure(std::string_view words) {
  return OutOfRange(PlainWords(words));
}

bool IsRunFailure(const Status& status) {
  return absl::IsOutOfRange(status);
}

std::string PlainWords(std::string_view words) {
  std::string plain(words.substr(0, kMaxFailureBytes));
  for (char& c : plain) {
    if (c < ' ' || c > '~') c = '?';
  }
  return plain;
}

}  // namespace tfjob::state
