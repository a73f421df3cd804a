#include "runtime/rpc/identity.h"

#include "runtime/base/clock.h"

namespace tfjob::rpc {
namespace {

std::string Describe(const Identity& identity, int32_t version) {
  return StrCat(TaskName(identity), " of job '", identity.job_uid, "' attempt ", identity.attempt,
                ", protocol ", version);
}

}  // namespace

std::string TaskName(const Identity& identity) {
  return StrCat(identity.task_type, " ", identity.task_index);
}

Status CheckPeer(const Identity& self, const Identity& peer, int32_t peer_version) {
  const char* cure = nullptr;
  if (peer.job_uid != self.job_uid) {
    cure = "another job's task has this address; give the jobs different ports";
  } else if (peer.attempt != self.attempt) {
    cure = "one of them is left over from another attempt and must exit";
  } else if (peer_version != kProtocolVersion) {
    cure = "run the same version of the trainer in all tasks";
  } else if (peer.run != self.run) {
    return Unavailable(TaskName(self), " takes part in run ", self.run, " of the job, and ",
                       TaskName(peer), " in run ", peer.run);
  } else {
    return OkStatus();
  }
  return FailedPrecondition("refused: this is ", Describe(self, kProtocolVersion),
                            ", the caller is ", Describe(peer, peer_version), ": ", cure);
}

int64_t NewIncarnation() {
  return RealClock().Now().time_since_epoch().count();
}

}  // namespace tfjob::rpc
