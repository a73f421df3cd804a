#include "operator/cli/verbs/command.h"

namespace tfjob::cli {
namespace {

int Run(const GetOptions& options, const Surroundings& around) {
  return Get(options, around);
}
int Run(const DescribeOptions& options, const Surroundings& around) {
  return DescribeJobs(options, around);
}
int Run(const LogsOptions& options, const Surroundings& around) {
  return Logs(options, around);
}
int Run(const ScaleOptions& options, const Surroundings& around) {
  return Scale(options, around);
}
int Run(const SuspendOptions& options, const Surroundings& around) {
  return Suspend(options, around);
}
int Run(const RestartOptions& options, const Surroundings& around) {
  return Restart(options, around);
}
int Run(const WaitOptions& options, const Surroundings& around) {
  return Wait(options, around);
}
int Run(const TopOptions& options, const Surroundings& around) {
  return Top(options, around);
}

}  // namespace

int RunCommand(const ClusterCommand& command, const Connect& connect, const StopSource& stop,
               view::Console& console) {
  const auto cluster = connect(command.cluster);
  if (!cluster.ok()) {
    view::PrintError(console, cluster.status());
    return view::kBadInput;
  }
  const Surroundings around{**cluster, console, stop};
  const int code = std::visit([&](const auto& verb) { return Run(verb, around); }, command.verb);
  return stop.requested() ? 128 + stop.signal() : code;
}

}  // namespace tfjob::cli
