// Measures the hello, the handshake of a connection, over loopback, with both ends in this process.
// Reports how many connections per second a caller can open, and how much memory a listener needs
// for each connection that has not yet proven the key.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/wire/dial.h"
#include "runtime/wire/listener.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

constexpr int kUnproven = 256;

int64_t HeapBytes() {
  return static_cast<int64_t>(mallinfo2().uordblks);
}

wire::JobKey BenchKey() {
  return *wire::JobKey::Parse(std::string(64, 'b'));
}

// Returns the memory that a listener uses for one connection. Measures the state that needs the
// most memory, in which the listener has read all but the last byte of the longest claims.
int64_t BytesOfAnUnprovenHello() {
  const wire::JobKey key = BenchKey();
  const std::string claims = "ps 0";
  const wire::ListenerHello::Check check = [](std::string_view, wire::Purpose) {
    return OkStatus();
  };
  std::vector<wire::ListenerHello> hellos;
  hellos.reserve(kUnproven);
  const int64_t before = HeapBytes();
  for (int i = 0; i < kUnproven; ++i) {
    wire::CallerHello caller(&key, std::string(wire::kMaxClaimBytes, 'x'), wire::Purpose::kGrpc,
                             wire::NewNonce());
    wire::ListenerHello& hello = hellos.emplace_back(&key, &claims, &check, wire::NewNonce());
    const auto feed = [](auto& to, std::string bytes, size_t end) {
      while (bytes.size() > end) {
        const size_t taken = std::min(bytes.size() - end, to.wanted());
        ENFORCE(to.Feed(bytes.substr(0, taken)).ok(), "the hello is valid");
        bytes.erase(0, taken);
      }
    };
    feed(hello, caller.TakeOutput(), 0);
    feed(caller, hello.TakeOutput(), 0);
    feed(hello, caller.TakeOutput(), 1);
  }
  return (HeapBytes() - before) / kUnproven + static_cast<int64_t>(sizeof(wire::ListenerHello));
}

int Main(int argc, char** argv) {
  int connections = 5000;
  CLI::App app("Measures the hello that begins every connection between tasks");
  app.add_option("--connections", connections, "How many to open, one after the other")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const wire::JobKey key = BenchKey();
  std::atomic<int> proven = 0;
  auto listener =
      wire::Listener::Start({.host = "127.0.0.1",
                             .key = key,
                             .claims = "ps 0",
                             .check = [](std::string_view, wire::Purpose) { return OkStatus(); },
                             .on_peer = [&](const wire::ProvenPeer&) { ++proven; }});
  ENFORCE(listener.ok(), listener.status().ToString());
  const std::string address = StrCat("127.0.0.1:", (*listener)->port());
  const Stopwatch watch;
  for (int i = 0; i < connections; ++i) {
    const auto dialled = wire::Dial(address, {.key = &key, .claims = "worker 1"});
    ENFORCE(dialled.ok(), dialled.status().ToString());
  }
  const Times times = watch.Elapsed();
  listener->reset();
  ENFORCE(proven == connections, "every connection is proven");
  Report("hello")
      .Add("connections", connections)
      .Add("connections_per_s", connections / times.wall_s)
      .Add("bytes_per_unproven_connection", BytesOfAnUnprovenHello())
      .Print(times);
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
