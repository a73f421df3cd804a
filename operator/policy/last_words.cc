#include "operator/policy/last_words.h"

#include <utility>

#include "operator/api/names.h"
#include "operator/objects/last_line.h"
#include "runtime/cluster/termination_message.h"

namespace tfjob::policy {
namespace {

using objects::ContainerStatus;

bool HasFailed(const ContainerStatus& container) {
  return container.state == ContainerStatus::State::kTerminated && container.exit_code != 0;
}

}  // namespace

std::string LastWords(const ContainerStatus& container) {
  if (HasFailed(container)) return objects::LastLine(container.message);
  return container.last_exit_code != 0 ? objects::LastLine(container.last_message) : "";
}

std::string LastWords(const objects::Pod& pod) {
  if (const ContainerStatus* main = pod.container(api::kContainerName)) {
    if (std::string words = LastWords(*main); !words.empty()) return words;
  }
  for (const ContainerStatus& container : pod.containers) {
    const std::string words = LastWords(container);
    if (words.empty()) continue;
    const int32_t code = HasFailed(container) ? container.exit_code : container.last_exit_code;
    return StrCat("the container ", container.name, " exited with code ", code, ": ", words);
  }
  return "";
}

std::string LossesOf(const objects::Pod& pod) {
  const ContainerStatus* main = pod.container(api::kContainerName);
  if (main == nullptr || main->state != ContainerStatus::State::kTerminated ||
      main->exit_code != 0 || !main->message.starts_with(cluster::kLossPrefix)) {
    return "";
  }
  return objects::LastLine(std::string_view(main->message).substr(cluster::kLossPrefix.size()));
}

std::string LastWordsSentence(const objects::Pod& pod) {
  const std::string words = LastWords(pod);
  return words.empty() ? "" : StrCat(" Pod ", pod.metadata.name, ": ", words);
}

std::string LastWordsSentence(const Replicas& replicas) {
  std::string of_others;  // the first sentence about a pod whose phase is not Failed
  for (const ReplicaGroup& group : replicas.groups) {
    for (const Replica& replica : group.replicas) {
      if (replica.pod == nullptr) continue;
      std::string sentence = LastWordsSentence(*replica.pod);
      if (sentence.empty()) continue;
      if (replica.pod->phase == objects::PodPhase::kFailed) return sentence;
      if (of_others.empty()) of_others = std::move(sentence);
    }
  }
  return of_others;
}

}  // namespace tfjob::policy
