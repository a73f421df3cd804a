// Which watches of a client do not work, since when and why: what a leader asks that must not keep its lease while it is
// blind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {

// A watch without a list, or whose changes cannot be had.
struct WatchTrouble {
  client::Kind kind = client::Kind::kPod;
  std::string name_space;  // "": all
  Duration lasting{0};     // since it worked or made progress last, or began
  Status why;              // of the last try; Unavailable: there was none that ended
};

// Thread-safe.
class WatchHealth {
 public:
  explicit WatchHealth(Clock& clock = RealClock()) : clock_(clock) {}

  // A watch begins, in trouble until it works. Gives its number.
  int64_t Begin(client::Kind kind, const std::string& name_space);
  void End(int64_t watch);
  // Its list is complete, or a stream of changes from there on has been opened.
  void Works(int64_t watch);
  void Fails(int64_t watch, const Status& why);
  // Something of it has come, not yet all: its trouble begins anew.
  void Progresses(int64_t watch);

  // Of those that do not work.
  std::vector<WatchTrouble> Troubles();

 private:
  struct Watch {
    client::Kind kind;
    std::string name_space;
    bool works = false;
    Duration since{0};  // in trouble
    Status why;
  };

  Clock& clock_;
  Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Watch> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::kube
