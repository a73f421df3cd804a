// Records which watches of a client are not working, since when, and why. A leader checks this
// record and gives up its lease if it cannot see changes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {

// Describes a watch that has no list yet or cannot receive changes.
struct WatchTrouble {
  objects::Kind kind = objects::Kind::kPod;
  std::string name_space;  // "": all
  Duration lasting{0};     // the time since it last worked, made progress, or began
  Status why;              // the last error; Unavailable if no attempt has ended yet
};

// Records the state of each watch. Thread-safe.
class WatchHealth {
 public:
  explicit WatchHealth(Clock& clock = RealClock()) : clock_(clock) {}

  // Registers a watch, which counts as not working until Works() is called. Returns the watch's
  // number.
  int64_t Begin(objects::Kind kind, const std::string& name_space);
  void End(int64_t watch);
  // Reports that the watch has received its complete list, or has opened a stream of later changes.
  void Works(int64_t watch);
  void Fails(int64_t watch, const Status& why);
  // Reports that a part of the list has arrived. This resets WatchTrouble::lasting to zero.
  void Progresses(int64_t watch);

  // Returns one entry for each watch that is not working.
  std::vector<WatchTrouble> Troubles();

 private:
  struct Watch {
    objects::Kind kind;
    std::string name_space;
    bool works = false;
    Duration since{0};  // start of the trouble
    Status why;
  };

  Clock& clock_;
  Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Watch> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::kube
