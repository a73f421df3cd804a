// Decides which of the things that strangers do are logged: one per source address and ten minutes,
// however many there are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/clock.h"

namespace tfjob {

// Pure. Remembers at most kMaxSources addresses; all others share one entry.
class SourceLog {
 public:
  static constexpr size_t kMaxSources = 256;
  static constexpr Duration kSilence = 10min;

  // Call for every such thing. If it is to be logged, returns how many others of this source were
  // not logged since the last one that was.
  std::optional<uint64_t> Note(const std::string& source, Duration now);

 private:
  struct Entry {
    Duration logged;
    uint64_t left_out = 0;
  };
  // Returns null if there is no room for another source.
  Entry* Find(const std::string& source, Duration now, bool& is_new);

  std::map<std::string, Entry> sources_;
  std::optional<Entry> others_;
};

}  // namespace tfjob
