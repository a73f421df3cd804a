#include "runtime/ps/server/refusal_log.h"

#include "runtime/base/log.h"

namespace tfjob::ps {
namespace {

constexpr Logger kServerLog("ps");

bool IsAgainstTheProtocol(StatusCode code) {
  return code == StatusCode::kInvalidArgument || code == StatusCode::kPermissionDenied ||
         code == StatusCode::kUnimplemented;
}

}  // namespace

void RefusalLog::Note(const rpc::Identity& peer, const std::string& address, const Status& why) {
  if (!IsAgainstTheProtocol(why.code())) return;
  const std::string source = address.substr(0, address.rfind(':'));  // without the port
  MutexLock lock(mutex_);
  const auto left_out = sources_.Note(source, RealClock().Monotonic());
  if (!left_out) return;
  kServerLog.Warning(
      "refused what a peer sent",
      {{"from", source}, {"as", rpc::TaskName(peer)}, {"why", why}, {"not_logged", *left_out}});
}

}  // namespace tfjob::ps
