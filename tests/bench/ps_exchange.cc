// One step's exchange between a worker and a parameter server over loopback TCP: gradients out, SGD
// applied, values back; beside it a plain TCP echo of as many bytes. Both directions are counted.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/ps/client.h"
#include "runtime/ps/server.h"
#include "runtime/rpc/server.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

constexpr int64_t kVariableBytes = int64_t{4} << 20;
constexpr size_t kChunk = size_t{1} << 20;

template <typename T>
T Must(StatusOr<T> result) {
  ENFORCE(result.ok(), result.status().ToString());
  return *std::move(result);
}

rpc::Identity Task(const std::string& type) {
  return {.job_uid = "bench",
          .attempt = 0,
          .task_type = type,
          .task_index = 0,
          .incarnation = rpc::NewIncarnation()};
}

// The exchange's two ends in this process.
class Exchange {
 public:
  explicit Exchange(int64_t bytes) {
    const std::string address = Serve();
    ps::Definition definition;
    for (int64_t at = 0; at < bytes; at += kVariableBytes) {
      const int64_t count = std::min(kVariableBytes, bytes - at) / 4;
      definition.variables.push_back({.name = StrCat("v", at), .shape = {count}});
      values_.emplace_back(DType::kFloat32, Shape({count}));
      gradients_.emplace_back(DType::kFloat32, Shape({count}));
      std::ranges::fill(gradients_.back().data<float>(), 1.f);
      value_spans_.push_back(values_.back().bytes());
      gradient_spans_.push_back(std::as_const(gradients_.back()).bytes());
    }
    client_ = Must(ps::ParameterClient::Create(
        {.servers = {address},
         .identity = Task("worker"),
         .definition = definition,
         .chief = true,
         .provide_state = [definition]() -> StatusOr<ps::Snapshot> {
           ps::Snapshot snapshot;
           for (const ps::Variable& variable : definition.variables) {
             snapshot.variables.push_back(ps::VariableState::Initial(
                 variable, definition.optimizer, Tensor(variable.dtype, variable.shape)));
           }
           return snapshot;
         }}));
    Must(client_->WaitReady(value_spans_));
  }
  ~Exchange() {
    client_.reset();
    server_.reset();
  }

  void Run() { Must(client_->Exchange(gradient_spans_, value_spans_)); }

 private:
  std::string Serve() {
    ps_ = Must(ps::ParameterServer::Create({.identity = Task("ps"), .servers = {"here"}}));
    server_ = Must(rpc::Server::Start({.host = "127.0.0.1",
                                       .identity = Task("ps"),
                                       .streams = {{ps::kParameterService, ps_.get()}}}));
    return StrCat("127.0.0.1:", server_->port());
  }

  std::unique_ptr<ps::ParameterServer> ps_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<ps::ParameterClient> client_;
  std::vector<Tensor> values_, gradients_;
  std::vector<std::span<std::byte>> value_spans_;
  std::vector<std::span<const std::byte>> gradient_spans_;
};

void WriteAll(int socket, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = send(socket, data, std::min(bytes, kChunk), MSG_NOSIGNAL);
    ENFORCE(count > 0, "send");
    data += count;
    bytes -= static_cast<size_t>(count);
  }
}

void ReadAll(int socket, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = recv(socket, data, std::min(bytes, kChunk), 0);
    ENFORCE(count > 0, "recv");
    data += count;
    bytes -= static_cast<size_t>(count);
  }
}

// A TCP connection over loopback whose far end sends back every megabyte that it received.
class TcpEcho {
 public:
  explicit TcpEcho(size_t bytes) : out_(bytes, 'x'), back_(bytes) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ENFORCE(bind(listener, generic, length) == 0 && listen(listener, 1) == 0, "listen");
    getsockname(listener, generic, &length);
    near_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ENFORCE(connect(near_, generic, length) == 0, "connect");
    far_ = accept(listener, nullptr, nullptr);
    close(listener);
    echo_ = std::thread([this] {
      std::vector<char> chunk(kChunk);
      ssize_t count = 0;
      while ((count = recv(far_, chunk.data(), chunk.size(), 0)) > 0) {
        WriteAll(far_, chunk.data(), static_cast<size_t>(count));
      }
    });
  }
  ~TcpEcho() {
    shutdown(near_, SHUT_WR);
    echo_.join();
    close(near_);
    close(far_);
  }

  void Run() {
    std::thread writer([this] { WriteAll(near_, out_.data(), out_.size()); });
    ReadAll(near_, back_.data(), back_.size());
    writer.join();
  }

 private:
  std::vector<char> out_, back_;
  int near_ = -1, far_ = -1;
  std::thread echo_;
};

template <typename Work>
Times Measure(Work& work, int rounds) {
  work.Run();  // warms up: windows, pools, pages
  Stopwatch watch;
  for (int i = 0; i < rounds; ++i) work.Run();
  return watch.Elapsed();
}

int Main(int argc, char** argv) {
  CLI::App app("Exchange between a worker and a parameter server");
  int64_t bytes = int64_t{64} << 20;
  int rounds = 20;
  app.add_option("--bytes", bytes, "of gradients, and of values")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--rounds", rounds, "exchanges measured");
  CLI11_PARSE(app, argc, argv);
  const double gigabytes = 2e-9 * static_cast<double>(bytes) * rounds;
  Times raw;
  {
    TcpEcho echo(static_cast<size_t>(bytes));
    raw = Measure(echo, rounds);
  }
  Exchange exchange(bytes);
  const Times times = Measure(exchange, rounds);
  const double rate = gigabytes / times.wall_s, raw_rate = gigabytes / raw.wall_s;
  Report("ps-exchange")
      .Add("bytes", bytes)
      .Add("rounds", rounds)
      .Add("gb_s", rate)
      .Add("raw_tcp_gb_s", raw_rate)
      .Add("ratio", rate / raw_rate)
      .Add("cpu_s_per_gb", times.cpu_s / gigabytes)
      .Add("raw_tcp_cpu_s_per_gb", raw.cpu_s / gigabytes)
      .Print(times);
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
