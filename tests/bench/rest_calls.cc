// Measures the cost of a call of the REST client. Creates pods over TLS on a server that runs in
// another process and responds immediately.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube/client/kube_client.h"
#include "operator/kube/doubles/test_certificates.h"
#include "operator/kube/doubles/test_server.h"
#include "runtime/base/log.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

struct Load {
  int calls = 10000;
  int callers = 16;
};

Json Pod(int index) {
  const Json env = {{"name", "TF_CONFIG"}, {"value", std::string(600, 'x')}};
  const Json container = {{"name", "tensorflow"},
                          {"image", "example.com/models/mnist:1.0"},
                          {"command", {"python", "/opt/model/train.py", "--data_dir=/data"}},
                          {"env", Json::array({env})}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", StrCat("mnist-worker-", index)},
            {"namespace", "team-a"},
            {"labels",
             {{"training.kubeflow.org/job-name", "mnist"},
              {"training.kubeflow.org/replica-type", "worker"}}}}},
          {"spec", {{"containers", Json::array({container})}}}};
}

// Returns a pod of the size that a real server returns, including defaults and managed fields.
std::string PodAnswer() {
  Json pod = Pod(0);
  pod["metadata"]["uid"] = "7f0c5d4e-38a2-4b6f-9d1e-000000000001";
  pod["metadata"]["resourceVersion"] = "1";
  pod["metadata"]["managedFields"] = Json::array({{{"fieldsV1", std::string(1500, 'y')}}});
  pod["spec"]["defaults"] = std::string(600, 'z');
  pod["status"] = {{"phase", "Pending"}};
  return PrintJson(pod);
}

// Runs in a separate process: writes the server's URL to `out`, and serves until the process is
// killed.
[[noreturn]] void Serve(const kube::CertificatePair& certificate, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  kube::TestServer::Options options;
  options.certificate = {certificate.certificate, certificate.key};
  const std::string answer = PodAnswer();
  const kube::TestServer server(
      options, [&answer](const kube::TestRequest&, kube::TestConnection& connection) {
        connection.Reply(201, answer);
      });
  const std::string url = server.url() + "\n";
  if (write(out, url.data(), url.size()) < 0) _exit(1);
  while (true) pause();
}

std::string ReadLine(int in) {
  std::string line;
  for (char c = 0; read(in, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Measure(const Load& load, kube::KubeClient& client) {
  std::vector<std::thread> callers;
  std::atomic<int> next = 0;
  std::atomic<int> failed = 0;
  // Open the connections before the measured part.
  if (!client.Create(objects::Kind::kPod, Pod(0)).ok()) return 1;
  const double cpu_before = OwnCpuSeconds();
  const Stopwatch stopwatch;
  for (int i = 0; i < load.callers; ++i) {
    callers.emplace_back([&] {
      for (int call = next++; call < load.calls; call = next++) {
        if (!client.Create(objects::Kind::kPod, Pod(call)).ok()) ++failed;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  const Times times = stopwatch.Elapsed();
  const double cpu_us = (OwnCpuSeconds() - cpu_before) / load.calls * 1e6;
  Report report("rest-calls");
  report.Add("calls", load.calls).Add("callers", load.callers).Add("failed", failed.load());
  report.Add("calls_per_s", load.calls / times.wall_s).Add("cpu_us_a_call", cpu_us);
  report.Print(times);
  return failed == 0 ? 0 : 1;
}

int Run(const Load& load) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  mallopt(M_ARENA_MAX, 2);  // like the operator
  kube::TestAuthority authority;
  const kube::CertificatePair certificate = authority.IssueServer({"127.0.0.1"});
  int channel[2];
  if (pipe(channel) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) Serve(certificate, channel[1]);
  kube::ClusterConfig config;
  config.server = ReadLine(channel[0]);
  config.certificate_authority.data = authority.certificate();
  config.credentials = kube::NoCredentials();
  kube::KubeClientOptions options;
  options.rest.qps = 0;
  int result = 1;
  {
    auto client = kube::KubeClient::Create(config, options);
    if (client.ok()) result = Measure(load, **client);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return result;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::Load load;
  CLI::App app("Creates pods against a server that answers at once");
  app.add_option("--calls", load.calls, "how many")->check(CLI::PositiveNumber);
  app.add_option("--callers", load.callers, "at once")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return tfjob::bench::Run(load);
}
