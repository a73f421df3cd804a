// Implements the benchmark case ps-train: a job with parameter servers and workers, which run as
// processes on this machine, trains a 784-512-512-10 network with SGD on Fashion-MNIST. Reports
// samples per second and per CPU-second, summed over all processes. Both are measured between two
// points in time while the job is running, so they do not include start-up and reading data. The
// programs for other frameworks in tests/bench/peers are measured in the same way.
//
//   ps_train [--workers 2] [--ps 1] [--batch 128] [--mode async|sync] [--seconds 15]
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/cluster/cluster.h"
#include "runtime/progress/client.h"
#include "tests/bench/report.h"

namespace tfjob {
namespace {

constexpr char kTraining[] = R"(model:
  layers:
    - Flatten:
    - Dense: {units: 512, activation: relu}
    - Dense: {units: 512, activation: relu}
    - Dense: {units: 10}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
metrics: [accuracy]
optimizer: {name: sgd, learning_rate: 0.1}
data:
  drop_remainder: true
  train:
    format: idx
    images: /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
    labels: /usr/share/datasets/fashion-mnist/train-labels-idx1-ubyte.gz
    scale: 1/255
max_steps: 1000000000
threads: 1
log_step_count_steps: 0
)";

struct Flags {
  std::string trainer;
  int workers = 2;
  int ps = 1;
  int batch = 128;
  std::string mode = "async";
  double seconds = 15;
  int base_port = 23310;
};

// Returns the user and system time of a process in seconds, from fields 14 and 15
// of /proc/<pid>/stat.
double CpuSeconds(pid_t pid) {
  const std::string stat = ReadFile(StrCat("/proc/", pid, "/stat")).value_or("");
  unsigned long user = 0, system = 0;
  const char* rest = stat.c_str() + stat.rfind(')') + 1;
  std::sscanf(rest, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double PeakMegabytes(pid_t pid) {
  const std::string status = ReadFile(StrCat("/proc/", pid, "/status")).value_or("");
  const size_t place = status.find("VmHWM:");
  return place == std::string::npos ? 0 : std::atof(status.c_str() + place + 6) / 1024;
}

class Cluster {
 public:
  explicit Cluster(const Flags& flags) : flags_(flags) {
    char folder[] = "/tmp/ps_train.XXXXXX";
    folder_ = mkdtemp(folder);
    if (!WriteFileAtomically(folder_ + "/training.yaml", kTraining).ok()) std::exit(1);
    cluster::TfConfig config;
    int port = flags.base_port;
    for (const auto& [name, count] :
         {std::pair{"ps", flags.ps}, std::pair{"worker", flags.workers}}) {
      cluster::Job job{.name = name};
      for (int i = 0; i < count; ++i) job.addresses[i] = StrCat("127.0.0.1:", port++);
      config.cluster.jobs.push_back(std::move(job));
    }
    for (const cluster::Job& job : config.cluster.jobs) {
      for (const auto& [index, address] : job.addresses) {
        config.task = {job.name, index};
        Start(cluster::Print(config));
      }
    }
    first_worker_ = config.cluster.address({"worker", 0});
  }

  ~Cluster() {
    for (pid_t pid : pids_) kill(pid, SIGKILL);
    for (pid_t pid : pids_) waitpid(pid, nullptr, 0);
  }

  struct Sample {
    double wall_s = 0, cpu_s = 0;
    progress::Progress progress;
  };

  // Waits until worker 0 reports a new step that is at least `step`, and then takes a sample.
  Sample At(int64_t step) {
    progress::ProgressClient client(first_worker_);
    while (true) {
      StatusOr<progress::Progress> progress = client.Fetch(1s);
      if (progress.ok() && progress->step >= step && progress->step != last_step_) {
        last_step_ = progress->step;  // the step has just changed, so the progress is current
        Sample sample{.wall_s = static_cast<double>(RealClock().Monotonic().count()) / 1e6,
                      .progress = *progress};
        for (pid_t pid : pids_) sample.cpu_s += CpuSeconds(pid);
        return sample;
      }
      if (progress.ok()) last_step_ = progress->step;
      for (pid_t pid : pids_) {
        if (waitpid(pid, nullptr, WNOHANG) == pid) std::exit(1);  // see the task's log
      }
      std::this_thread::sleep_for(2ms);
    }
  }

  double PeakMegabytesOfAll() const {
    double sum = 0;
    for (pid_t pid : pids_) sum += PeakMegabytes(pid);
    return sum;
  }

 private:
  void Start(const std::string& tf_config) {
    std::vector<std::string> environment = EnvironmentBlock();
    environment.push_back("TF_CONFIG=" + tf_config);
    std::vector<std::string> arguments = {
        flags_.trainer,
        "--config",
        folder_ + "/training.yaml",
        "--set",
        StrCat("batch_size=", flags_.batch),
        "--set",
        "strategy={name: parameter_server, mode: " + flags_.mode + "}",
        "--log-level",
        "warning"};
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    for (std::string& entry : environment) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    pid_t pid = 0;
    if (posix_spawn(&pid, flags_.trainer.c_str(), nullptr, nullptr, argv.data(), envp.data()) !=
        0) {
      std::fprintf(stderr, "cannot run %s\n", flags_.trainer.c_str());
      std::exit(1);
    }
    pids_.push_back(pid);
  }

  const Flags flags_;
  std::string folder_;
  std::string first_worker_;
  std::vector<pid_t> pids_;
  int64_t last_step_ = -1;
};

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains with parameter servers as processes and prints one JSON line");
  app.add_option("--trainer", flags.trainer,
                 "tfjob-trainer; by default the one built beside this program");
  app.add_option("--workers", flags.workers);
  app.add_option("--ps", flags.ps);
  app.add_option("--batch", flags.batch);
  app.add_option("--mode", flags.mode)->check(CLI::IsMember({"async", "sync"}));
  app.add_option("--seconds", flags.seconds);
  CLI11_PARSE(app, argc, argv);

  if (flags.trainer.empty()) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    flags.trainer = self.substr(0, self.rfind("/tests/")) + "/runtime/cmd/tfjob-trainer";
  }
  Cluster cluster(flags);
  const Cluster::Sample start = cluster.At(50);
  Cluster::Sample end = start;
  while (end.wall_s - start.wall_s < flags.seconds) end = cluster.At(end.progress.step + 1);

  const double wall = end.wall_s - start.wall_s, cpu = end.cpu_s - start.cpu_s;
  const int gradients = flags.mode == "sync" ? flags.workers : 1;
  const double samples =
      static_cast<double>((end.progress.step - start.progress.step) * flags.batch * gradients);
  bench::Report("ps-train")
      .Add("mode", flags.mode)
      .Add("workers", flags.workers)
      .Add("ps", flags.ps)
      .Add("batch", flags.batch)
      .Add("steps", end.progress.step - start.progress.step)
      .Add("samples_per_s", samples / wall)
      .Add("samples_per_cpu_s", samples / cpu)
      .Add("final_loss", end.progress.loss.value_or(-1))
      .Print({.wall_s = wall, .cpu_s = cpu}, cluster.PeakMegabytesOfAll());
  return 0;
}

}  // namespace
}  // namespace tfjob

int main(int argc, char** argv) {
  return tfjob::Main(argc, argv);
}
