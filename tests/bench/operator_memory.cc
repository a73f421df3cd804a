// Starts tfjob-operator with an API server that contains very many finished TFJobs. Measures the
// time from the start of the operator until it is ready, and its peak memory, including the peak
// during the first list.
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "operator/kube/doubles/test_server.h"
#include "operator/serve/http_get.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using kube::TestConnection;
using kube::TestRequest;

constexpr Duration kMostPatience = 120s;

struct Flags {
  std::string program;
  int jobs = 20'000;
  size_t bytes = 4096;
  bool pages = false;
  double at_most_mb = 0;    // 0: no limit
  double ready_within = 0;  // in seconds; 0: no limit
};

// Generates finished TFJobs of approximately a given size, in the form that the server stores.
class JobTexts {
 public:
  explicit JobTexts(size_t bytes) {
    const size_t rest = Make(0).size();
    for (int i = 100; rest + environment_.size() < bytes; ++i) {
      environment_ += StrCat(R"(,{"name":"SETTING_)", i, R"(","value":"value-)", i, R"("})");
    }
  }

  std::string Make(int job) const {
    const std::string name = StrCat("mnist-", 100'000 + job);
    const auto condition = [&](const char* type, const char* status) {
      return StrCat(R"({"type":")", type, R"(","status":")", status, R"(","reason":"TFJob)", type,
                    R"(","message":"TFJob team-a/)", name, " is ", type,
                    R"(.","lastUpdateTime":"2026-11-21T09:30:00Z",)",
                    R"("lastTransitionTime":"2026-11-21T09:30:00Z"})");
    };
    return StrCat(
        R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":")", name,
        R"(","namespace":"team-a","uid":"7f0c5d4e-38a2-4b6f-9d1e-)", 100'000'000'000 + job,
        R"(","resourceVersion":")", 1000 + job,
        R"(","generation":1,"creationTimestamp":"2026-11-21T09:00:00Z","labels":{"app":"mnist"},)",
        R"("managedFields":[{"manager":"kubectl","operation":"Update","fieldsType":"FieldsV1",)",
        R"("fieldsV1":{"f:spec":{"f:tfReplicaSpecs":{"f:Worker":{"f:template":{}}}}}}]},)",
        R"("spec":{"runPolicy":{"cleanPodPolicy":"All"},"tfReplicaSpecs":{"Worker":{"replicas":4,)",
        R"("restartPolicy":"OnFailure","template":{"spec":{"containers":[{"name":"tensorflow",)",
        R"("image":"example.com/mnist:1.0","command":["python","/opt/train.py"],"env":[)",
        R"({"name":"A","value":"b"})", environment_,
        R"(],"resources":{"limits":{"cpu":"2"}}}]}}}}},)",
        R"("status":{"startTime":"2026-11-21T09:00:01Z","completionTime":"2026-11-21T09:30:00Z",)",
        R"("replicaStatuses":{"Worker":{"succeeded":4}},"conditions":[)",
        condition("Created", "True"), ",", condition("Running", "False"), ",",
        condition("Succeeded", "True"), "]}}");
  }

 private:
  std::string environment_;  // additional entries in the container's environment
};

// Implements an API server that contains only these TFJobs.
class JobServer {
 public:
  explicit JobServer(const Flags& flags) : flags_(flags), texts_(flags.bytes) {
    kube::TestServer::Options options;
    options.tls = false;
    server_ = std::make_unique<kube::TestServer>(
        options, [this](const TestRequest& request, TestConnection& connection) {
          Answer(request, connection);
        });
  }

  std::string url() const { return server_->url(); }
  int writes() const { return writes_; }

 private:
  // Returns the number after `name=` in the query, or `otherwise` if there is none.
  static int Number(const std::string& target, const std::string& name, int otherwise) {
    const size_t at = target.find(name + "=");
    return at == std::string::npos ? otherwise : std::atoi(target.c_str() + at + name.size() + 1);
  }

  void Answer(const TestRequest& request, TestConnection& connection) {
    const bool jobs = request.target.find("/tfjobs") != std::string::npos;
    if (request.method != "GET") {
      ++writes_;
      return connection.Reply(200, request.body);
    }
    if (request.target.find("watch=1") == std::string::npos) return List(request, jobs, connection);
    const bool initial = request.target.find("sendInitialEvents") != std::string::npos;
    if (initial && flags_.pages) {
      return connection.Reply(422, R"({"kind":"Status","message":"no sendInitialEvents"})");
    }
    connection.StartChunks();
    if (initial) Stream(jobs, connection);
    connection.AwaitEnd();
  }

  void List(const TestRequest& request, bool jobs, TestConnection& connection) {
    const int begin = Number(request.target, "continue", 0);
    const int end =
        jobs ? std::min(flags_.jobs, begin + Number(request.target, "limit", 1 << 30)) : begin;
    std::string body = StrCat(R"({"metadata":{"resourceVersion":"9999999")");
    if (jobs && end < flags_.jobs) body += StrCat(R"(,"continue":")", end, "\"");
    body += R"(},"items":[)";
    for (int i = begin; i < end; ++i) body += StrCat(i == begin ? "" : ",", texts_.Make(i));
    connection.Reply(200, body + "]}");
  }

  void Stream(bool jobs, TestConnection& connection) {
    for (int i = 0; jobs && i < flags_.jobs; ++i) {
      connection.Chunk(StrCat(R"({"type":"ADDED","object":)", texts_.Make(i), "}\n"));
    }
    connection.Chunk(
        R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9999999","annotations":)"
        R"({"k8s.io/initial-events-end":"true"}}}})"
        "\n");
  }

  const Flags flags_;
  const JobTexts texts_;
  std::atomic<int> writes_ = 0;
  std::unique_ptr<kube::TestServer> server_;
};

// Returns a port that was free when this function checked.
uint16_t FreePort() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(probe, reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  close(probe);
  return ntohs(address.sin_port);
}

// Runs the operator as a process.
class OperatorProcess {
 public:
  OperatorProcess(const std::string& program, const std::string& server)
      : port_(FreePort()), kubeconfig_(StrCat("/tmp/operator-memory-", getpid())) {
    const Json config = {
        {"apiVersion", "v1"},
        {"kind", "Config"},
        {"current-context", "a"},
        {"clusters", {{{"name", "a"}, {"cluster", {{"server", server}}}}}},
        {"contexts", {{{"name", "a"}, {"context", {{"cluster", "a"}, {"namespace", "ns"}}}}}}};
    WriteFileAtomically(kubeconfig_, PrintJson(config)).IgnoreError();
    std::vector<std::string> arguments = {
        program, "--kubeconfig=" + kubeconfig_, "--metrics-bind-address=0",
        StrCat("--health-probe-bind-address=127.0.0.1:", port_), "--log-level=warning"};
    std::vector<std::string> environment = EnvironmentBlock();
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    for (std::string& entry : environment) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    if (posix_spawn(&pid_, program.c_str(), nullptr, nullptr, argv.data(), envp.data()) != 0) {
      pid_ = 0;
    }
  }
  ~OperatorProcess() {
    if (pid_ != 0) {
      kill(pid_, SIGTERM);
      waitpid(pid_, nullptr, 0);
    }
    unlink(kubeconfig_.c_str());
  }

  bool started() const { return pid_ != 0; }
  bool IsReady() const {
    return serve::HttpGet(port_, "/readyz").find(" 200 ") != std::string::npos;
  }
  // Returns a value of /proc/PID/status, such as "VmHWM: 1234 kB", in megabytes.
  double Megabytes(const std::string& name) const {
    std::ifstream file(StrCat("/proc/", pid_, "/status"));
    for (std::string word; file >> word;) {
      double kilobytes = 0;
      if (word == name + ":" && file >> kilobytes) return kilobytes / 1024;
    }
    return 0;
  }
  double CpuSeconds() const {
    std::ifstream file(StrCat("/proc/", pid_, "/stat"));
    std::string word;
    double ticks = 0;
    for (int field = 1; file >> word; ++field) {
      if (field == 14 || field == 15) ticks += std::atof(word.c_str());
    }
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  const uint16_t port_;
  const std::string kubeconfig_;
  pid_t pid_ = 0;
};

// Waits until the operator has used almost no CPU time for a second.
void AwaitQuiet(const OperatorProcess& process, Duration deadline) {
  double before = -1;
  for (double now = process.CpuSeconds(); now - before > 0.02 && RealClock().Monotonic() < deadline;
       now = process.CpuSeconds()) {
    before = now;
    std::this_thread::sleep_for(1s);  // the observed interval
  }
}

int Run(const Flags& flags) {
  JobServer server(flags);
  const Duration begin = RealClock().Monotonic();
  const OperatorProcess process(flags.program, server.url());
  const auto seconds = [&] {
    return std::chrono::duration<double>(RealClock().Monotonic() - begin).count();
  };
  if (!process.started()) {
    std::fprintf(stderr, "cannot run %s\n", flags.program.c_str());
    return 1;
  }
  bool ready = false;
  while (!(ready = process.IsReady()) && RealClock().Monotonic() < begin + kMostPatience) {
    std::this_thread::sleep_for(10ms);
  }
  const double ready_s = seconds();
  const double ready_mb = process.Megabytes("VmHWM");
  AwaitQuiet(process, begin + 2 * kMostPatience);
  Report report("operator-memory");
  report.Add("jobs", flags.jobs).Add("job_bytes", static_cast<int64_t>(flags.bytes));
  report.Add("list", flags.pages ? "pages" : "stream").Add("ready", ready ? "yes" : "no");
  report.Add("ready_s", ready_s).Add("peak_at_ready_mb", ready_mb);
  report.Add("resident_mb", process.Megabytes("VmRSS")).Add("writes", server.writes());
  const double peak_mb = process.Megabytes("VmHWM");
  report.Print({seconds(), process.CpuSeconds()}, peak_mb);
  const bool late = flags.ready_within > 0 && ready_s > flags.ready_within;
  const bool large = flags.at_most_mb > 0 && peak_mb > flags.at_most_mb;
  if (late) std::fprintf(stderr, "ready after %.1f s, not %g\n", ready_s, flags.ready_within);
  if (large) std::fprintf(stderr, "a peak of %.1f MB, not %g\n", peak_mb, flags.at_most_mb);
  return ready && !late && !large ? 0 : 1;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::Flags flags;
  CLI::App app("Starts the operator over finished TFJobs and prints one JSON line");
  app.add_option("--operator", flags.program,
                 "tfjob-operator; by default the one built beside this program");
  app.add_option("--jobs", flags.jobs, "how many TFJobs")->check(CLI::PositiveNumber);
  app.add_option("--bytes", flags.bytes, "of each job");
  app.add_option("--at-most-mb", flags.at_most_mb, "fail if the peak is higher");
  app.add_option("--ready-within", flags.ready_within, "fail if it takes more seconds");
  app.add_flag("--pages", flags.pages, "the server has no streaming lists");
  CLI11_PARSE(app, argc, argv);
  if (flags.program.empty()) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    flags.program = self.substr(0, self.rfind("/tests/")) + "/operator/service/tfjob-operator";
  }
  return tfjob::bench::Run(flags);
}
