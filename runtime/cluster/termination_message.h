// Writes the termination message: a file with the reason why a program failed. Kubernetes and
// `tfjob run` copy it into the status of the container.
#pragma once

#include <string>
#include <string_view>

namespace tfjob::cluster {

// The beginning of the message of a task that has succeeded although other tasks were lost. The
// operator reports the rest as the event WorkerLost.
inline constexpr std::string_view kLossPrefix = "lost tasks: ";

// Returns the file for the message: $TFJOB_TERMINATION_LOG if that is set (by `tfjob run`, or by a
// pod template with a different terminationMessagePath); otherwise Kubernetes' default,
// /dev/termination-log.
std::string TerminationLog();

// Replaces the content of the file with the lines of `message`, joined with "; ". Truncates the
// result to 4,096 bytes, as the kubelet does. Does nothing if the file does not exist, as outside a
// container.
void WriteTerminationMessage(const std::string& file, std::string_view message);

}  // namespace tfjob::cluster
