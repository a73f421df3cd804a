// Implements the program tfjob-trainer, which runs one task of a job. This file contains the flags,
// the wiring and the exit codes. TF_CONFIG determines the role of the task.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/stop.h"
#include "runtime/base/version.h"
#include "runtime/cluster/termination_message.h"
#include "runtime/cmd/config_file.h"
#include "runtime/cmd/print.h"
#include "runtime/cmd/verb.h"
#include "runtime/config/training_config.h"
#include "runtime/exec/device.h"
#include "runtime/selftest/selftest.h"
#include "runtime/train/job/group_tasks.h"
#include "runtime/train/task.h"
#include "runtime/wire/job_key.h"

namespace tfjob {
namespace {

constexpr Logger kLog("trainer");

struct Flags {
  std::string config = "/etc/tfjob/training.yaml";
  std::vector<std::string> set;
  std::string print;
  std::string machines;
  std::string profile, profile_file;
  std::string self_test;
  std::string log_level = "info";
  std::string log_format = "text";
};

// Exits the process if a stop has been requested and the work does not finish in time.
class StopGuard {
 public:
  // Returns the time within which the work must finish. Called on another thread once a stop has
  // been requested.
  using Budget = std::function<Duration()>;

  StopGuard(const StopSource& stop, Budget budget, std::function<void()> log_exit)
      : stop_(stop),
        budget_(std::move(budget)),
        log_exit_(std::move(log_exit)),
        thread_([this] { Watch(); }) {}
  ~StopGuard() {
    ended_ = true;
    changed_.Set();
    thread_.join();
  }

 private:
  void Watch() {
    while (!stop_.WaitFor(24h, changed_)) {
      if (ended_) return;
    }
    const Duration end = RealClock().Monotonic() + budget_();
    while (!ended_ && RealClock().Monotonic() < end)
      changed_.WaitFor(end - RealClock().Monotonic());
    if (ended_) return;
    log_exit_();
    _exit(128 + stop_.signal());
  }

  const StopSource& stop_;
  const Budget budget_;
  const std::function<void()> log_exit_;
  std::atomic<bool> ended_ = false;
  Event changed_;
  std::thread thread_;
};

// Reports an error, and returns the exit code.
int Report(const Status& status, const StopSource& stop) {
  if (!status.ok() && !(stop.requested() && absl::IsCancelled(status))) {
    kLog.Error("failed", {{"error", status}});
    cluster::WriteTerminationMessage(cluster::TerminationLog(), Message(status));
  }
  return ExitCode(status, stop);
}

Status Run(const Flags& flags, StopSource& stop) {
  train::TaskOptions options{.lone_address = GetEnv("TFJOB_ADDRESS").value_or("")};
  if (const std::optional<std::string> device = GetEnv("TFJOB_DEVICE")) {
    RETURN_IF_ERROR(Annotate(exec::DeviceByName(*device).status(), "TFJOB_DEVICE"));
    options.device = *device;
  }
  ASSIGN_OR_RETURN(options.credentials.key, wire::TakeJobKey());
  ASSIGN_OR_RETURN(options.tf_config, cluster::TfConfigFromEnvironment());
  ASSIGN_OR_RETURN(options.job, cluster::JobIdentityFromEnvironment());
  ASSIGN_OR_RETURN(options.grace_period, cluster::GracePeriodFromEnvironment());
  if (flags.print == "cluster" && flags.machines.empty()) {
    std::cout << cmd::PrintCluster(options.tf_config);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(options.config, cmd::ReadConfig(flags.config, flags.set));
  ASSIGN_OR_RETURN(options.tf_config,
                   train::WithGroupTasks(options.config.strategy, options.tf_config));
  if (!flags.print.empty()) {
    ASSIGN_OR_RETURN(std::string text, cmd::PrintStage(flags.print, options.config,
                                                       options.tf_config, flags.machines));
    std::cout << text;
    return OkStatus();
  }
  if (!flags.profile.empty()) {
    StatusOr<train::ProfileOptions> profile = train::ParseProfiledSteps(flags.profile);
    RETURN_IF_ERROR(Annotate(profile.status(), "--profile"));
    options.profile = *std::move(profile);
    if (options.config.model_dir.empty() && flags.profile_file.empty()) {
      return InvalidArgument("--profile: set --profile-file, because there is no model_dir");
    }
    options.profile.file = flags.profile_file;
  }
  StopOnSignals(stop);
  train::TaskContext context(std::move(options), stop, RealClock());
  const StopGuard guard(
      stop,
      [&] {  // a task that only waits for other tasks needs at most 1 s
        const Duration budget = context.stop_budget().process;
        const bool waits = context.board().state() == progress::State::kWaiting;
        return waits ? std::min<Duration>(1s, budget) : budget;
      },
      [&] {
        kLog.Warning("exiting at once: the task did not end in time",
                     {{"state", Name(context.board().state())},
                      {"grace_period", FormatDuration(context.grace_period())}});
      });
  return train::RunTask(context);
}

// Runs a self-test, and returns the exit code.
int RunSelfTest(const std::string& name, const StopSource& stop) {
  const StatusOr<int> code = selftest::RunSelfTest(name, std::cout);
  return code.ok() ? *code : Report(Annotate(code.status(), "--selftest"), stop);
}

Status RunVerb(cmd::Verb& verb, StopSource& stop) {
  StopOnSignals(stop);
  const StopGuard guard(
      stop, [] { return Duration(1s); },
      [] { kLog.Warning("exiting at once: the subcommand did not end in time", {}); });
  const Status ran = verb.Run(stop, std::cout);
  std::cout.flush();
  if (ran.ok() && !std::cout) return ResourceExhausted("standard output cannot be written");
  return ran;
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--config", flags.config, "The training file (docs/training-file.md)")
      ->capture_default_str();
  app.add_option("--set", flags.set, "Overrides a key of the training file: --set batch_size=64");
  CLI::Option* const print =
      app.add_option(
             "--print", flags.print,
             "Prints a stage and exits: cluster, config, data, model, graph, graph_def, placement, "
             "program or collectives")
          ->check(CLI::IsMember({"cluster", "config", "data", "model", "graph", "graph_def",
                                 "placement", "program", "collectives"}));
  app.add_option("--machines", flags.machines,
                 "For --print=collectives: the machines of the training tasks, in rank order. "
                 "a*4,b*2: four tasks on one machine, then two on another")
      ->needs(print);
  CLI::Option* const profile = app.add_option(
      "--profile", flags.profile,
      "Records these steps, such as 10..20, and logs the ops that took the most time. See "
      "docs/guides/profiling.md");
  app.add_option("--profile-file", flags.profile_file,
                 "The trace that --profile writes. Default: <model_dir>/profile/<task>.json")
      ->needs(profile);
  app.add_option("--selftest", flags.self_test,
                 "cuda: instead of training, compares a GPU of this machine with the CPU, measures "
                 "its speed and prints a table. cuda/FAMILY: a part of it. See docs/gpu.md");
  app.add_option("--log-level", flags.log_level, "debug, info, warning, error or off")
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Runs one task of a TFJob: reads TF_CONFIG, takes its role (chief, worker, ps or evaluator) "
      "and trains. The subcommands use a model without training it.",
      "tfjob-trainer");
  AddFlags(app, flags);
  const std::vector<std::unique_ptr<cmd::Verb>> verbs = cmd::Verbs();
  cmd::Verb* chosen = nullptr;
  for (const auto& verb : verbs) {
    CLI::App* const sub = app.add_subcommand(verb->name(), verb->help());
    verb->AddFlags(*sub);
    sub->callback([&chosen, &verb] { chosen = verb.get(); });
  }
  // Flags before a subcommand belong to training; subcommands do not accept them.
  const auto check_flags = [&] {
    for (const char* flag : {"--config", "--set", "--print", "--profile", "--selftest"}) {
      if (chosen == nullptr || app.count(flag) == 0) continue;
      throw CLI::ValidationError(
          flag, StrCat("belongs to training; the flags of ", chosen->name(),
                       " follow its name: see tfjob-trainer ", chosen->name(), " --help"));
    }
  };
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", StrCat("tfjob-trainer ", kVersion));
  try {
    app.parse(argc, argv);
    check_flags();
  } catch (const CLI::Success& help) {  // --help, --version
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "tfjob-trainer: " << error.what() << "\nRun with --help for all flags.\n";
    cluster::WriteTerminationMessage(cluster::TerminationLog(), error.what());
    return 2;
  }
  static StopSource stop;  // used by the signal handlers
  StatusOr<LogLevel> level = ParseLogLevel(flags.log_level);
  if (!level.ok()) return Report(level.status(), stop);
  ConfigureLogging(*level, flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  if (app.count("--selftest") > 0) return RunSelfTest(flags.self_test, stop);
  return Report(chosen == nullptr ? Run(flags, stop) : RunVerb(*chosen, stop), stop);
}

}  // namespace
}  // namespace tfjob

int main(int argc, char** argv) {
  return tfjob::Main(argc, argv);
}
