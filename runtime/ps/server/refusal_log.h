// Logs violations of the protocol by peers. A genuine task causes such an entry only if its
// definition exceeds this server's memory. In all other cases, the peer is a task that an attacker
// controls or, if the job has no key, a stranger. Private to this package.
#pragma once

#include <string>

#include "runtime/base/mutex.h"
#include "runtime/base/source_log.h"
#include "runtime/base/status.h"
#include "runtime/rpc/identity.h"

namespace tfjob::ps {

// Thread-safe. Logs one refusal per source address every ten minutes.
class RefusalLog {
 public:
  // Does nothing if `why` is OK, or an error that tasks encounter while other tasks restart.
  void Note(const rpc::Identity& peer, const std::string& address, const Status& why);

 private:
  Mutex mutex_;
  SourceLog sources_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::ps
