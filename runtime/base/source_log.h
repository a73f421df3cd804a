// Rate-limits log lines about unknown peers: at most one line per source address every ten minutes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/clock.h"

namespace tfjob {

// Not thread-safe. The caller passes in the time. Remembers at most kMaxSources addresses; all
// other addresses share one entry.
class SourceLog {
 public:
  static constexpr size_t kMaxSources = 256;
  static constexpr Duration kSilence = 10min;

  // Counts an event. If the event should be logged, returns the number of events from this source
  // that were not logged since the last logged one; otherwise, returns nullopt.
  std::optional<uint64_t> Note(const std::string& source, Duration now);

 private:
  struct Entry {
    Duration logged;
    uint64_t left_out = 0;
  };
  // Returns the entry of a source, or null if there is no room for another source.
  Entry* Find(const std::string& source, Duration now, bool& is_new);

  std::map<std::string, Entry> sources_;
  std::optional<Entry> others_;
};

}  // namespace tfjob
