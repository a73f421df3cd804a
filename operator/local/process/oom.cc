#include "operator/local/process/oom.h"

#include <cstdlib>
#include <utility>

#include "runtime/base/file.h"

namespace tfjob::process {

OomWatch::OomWatch(std::string path) : path_(std::move(path)), claimed_(Count()) {}

int64_t OomWatch::Count() const {
  const auto text = ReadFile(path_);
  if (!text.ok()) return 0;
  constexpr std::string_view kKey = "\noom_kill ";
  const size_t at = text->find(kKey);
  return at == std::string::npos ? 0 : strtoll(text->c_str() + at + kKey.size(), nullptr, 10);
}

bool OomWatch::Claim() {
  if (Count() <= claimed_) return false;
  ++claimed_;
  return true;
}

}  // namespace tfjob::process
