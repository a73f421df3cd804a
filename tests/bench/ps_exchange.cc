// Measures the exchange of one step between a worker and its parameter servers over loopback TCP:
// the worker sends gradients, the servers apply SGD, and the worker receives values. For
// comparison, also measures a plain TCP echo of the same number of bytes. Bytes are counted in both
// directions.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/base/check.h"
#include "tests/bench/exchange.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

constexpr size_t kChunk = size_t{1} << 20;

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

// Opens a TCP connection over loopback whose peer echoes every megabyte that it receives.
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

int Main(int argc, char** argv) {
  CLI::App app("Exchange between a worker and its parameter servers");
  int64_t bytes = int64_t{64} << 20;
  int rounds = 20;
  int servers = 1;
  app.add_option("--bytes", bytes, "of gradients, and of values")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--rounds", rounds, "exchanges measured");
  app.add_option("--servers", servers, "parameter servers that share the bytes")
      ->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);
  const double gigabytes = 2e-9 * static_cast<double>(bytes) * rounds;
  Times raw;
  {
    TcpEcho echo(static_cast<size_t>(bytes));
    raw = Measure(echo, rounds);
  }
  Exchange exchange({.bytes = bytes, .servers = servers});
  const Times times = Measure(exchange, rounds);
  const double rate = gigabytes / times.wall_s, raw_rate = gigabytes / raw.wall_s;
  Report("ps-exchange")
      .Add("bytes", bytes)
      .Add("rounds", rounds)
      .Add("servers", servers)
      .Add("exchanges_per_s", rounds / times.wall_s)
      .Add("cpu_us_per_exchange", times.cpu_s * 1e6 / rounds)
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
