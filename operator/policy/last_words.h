// Finds the explanation that a container gave for its failure: the last line of its termination
// message (terminationMessagePath, or the end of the log with FallbackToLogsOnError).
#pragma once

#include <string>

#include "operator/objects/pod.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// Returns the container's explanation of its last failure; "" if it wrote no explanation or has not
// failed.
std::string LastWords(const objects::ContainerStatus& container);

// Returns the last words of the pod's container `tensorflow`. If it has none, returns those of
// another container, with that container's name: "the container data exited with code 1: no such
// bucket". Returns "" if no container has last words.
std::string LastWords(const objects::Pod& pod);

// Returns what the pod's container `tensorflow`, which has exited with code 0, has written about
// tasks that its run has lost (cluster::kLossPrefix); "" if it has lost none.
std::string LossesOf(const objects::Pod& pod);

// Return a sentence for a condition, " Pod mnist-worker-0: <last words>"; "" if no pod has last
// words. For replicas, the sentence quotes the first failed pod with last words or, if there is
// none, the first pod with last words.
std::string LastWordsSentence(const Replicas& replicas);
std::string LastWordsSentence(const objects::Pod& pod);

}  // namespace tfjob::policy
