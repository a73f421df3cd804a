#include "operator/control/native_api.h"

#include "operator/control/log.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::control {
namespace {

constexpr Duration kAnswerLasts = 10min;
// How long an answer remains valid if it was an error, if it named no supported version, or after
// Doubt().
constexpr Duration kDoubtLasts = 30s;

}  // namespace

StatusOr<std::string> NativeApi::Version() {
  if (discovery_ == nullptr) return std::string();
  MutexLock lock(mutex_);
  const Duration now = clock_.Monotonic();
  if (version_ && now < asked_at_ + (doubted_ ? kDoubtLasts : kAnswerLasts)) return *version_;
  StatusOr<std::string> answer = discovery_->ApiVersion(objects::Kind::kWorkload);
  if (answer.ok()) answer = discovery_->ApiVersion(objects::Kind::kNativePodGroup);
  // Kubernetes 1.35 has Workloads but no PodGroups. Its API version is not supported, but is
  // returned so that a message to users can name it.
  if (answer.status().code() == StatusCode::kNotFound) {
    answer = discovery_->ApiVersion(objects::Kind::kWorkload);
  }
  if (answer.status().code() == StatusCode::kNotFound) answer = std::string();
  asked_at_ = now;
  doubted_ = policy::NativeVersionOf(answer.value_or("")) == policy::NativeVersion::kNone;
  if (!answer.ok()) {
    if (!version_) return answer;
    kLog.Warning("cannot tell whether the server has Workloads", {{"error", answer.status()}});
    return *version_;
  }
  if (version_ != *answer) {
    kLog.Info("native gang scheduling", {{"api", answer->empty() ? "none" : *answer}});
  }
  version_ = *answer;
  return *version_;
}

void NativeApi::Doubt() {
  MutexLock lock(mutex_);
  doubted_ = true;
}

}  // namespace tfjob::control
