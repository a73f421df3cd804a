// Provides a relay between clients and a server. Tests use it to break connections within a frame.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <list>
#include <string>
#include <thread>

#include "runtime/wire/socket.h"
#include "runtime/wire/test_address.h"

namespace tfjob::ps {

// Connects every caller to the server at 127.0.0.1:`port`, and forwards bytes in both directions.
class BreakingRelay {
 public:
  explicit BreakingRelay(std::string server)
      : server_(std::move(server)), address_(tfjob::wire::TestAddress()) {
    const sockaddr_in self = SocketAddress(address_);
    listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&self), sizeof self), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~BreakingRelay() {
    stop_ = true;
    thread_.join();
  }

  const std::string& address() const { return address_; }
  // Lets `bytes` more bytes pass to the clients (or to the server), then breaks the connection on
  // which the next byte arrives.
  void BreakAfterBytesToClients(int64_t bytes) { left_[0] = bytes; }
  void BreakAfterBytesToServer(int64_t bytes) { left_[1] = bytes; }
  // Like BreakAfterBytesToClients, but leaves the connection open and forwards no more bytes to its
  // client.
  void StallAfterBytesToClients(int64_t bytes) {
    stalls_ = true;
    left_[0] = bytes;
  }
  std::atomic<int> broken = 0;

 private:
  using UniqueFd = tfjob::wire::UniqueFd;
  struct Pair {
    UniqueFd ends[2];      // the client's and the server's
    bool stalled = false;  // no more bytes are forwarded to the client
  };

  static sockaddr_in SocketAddress(const std::string& address) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    result.sin_port = htons(
        static_cast<uint16_t>(std::strtol(address.c_str() + address.rfind(':') + 1, nullptr, 10)));
    return result;
  }

  void Run() {
    while (!stop_) {
      std::vector<pollfd> ready = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (const Pair& pair : pairs_) {
        const auto from_server = static_cast<short>(pair.stalled ? 0 : POLLIN);
        ready.push_back({.fd = pair.ends[0].get(), .events = POLLIN, .revents = 0});
        ready.push_back({.fd = pair.ends[1].get(), .events = from_server, .revents = 0});
      }
      if (poll(ready.data(), ready.size(), 20) <= 0) continue;
      size_t next = 1;
      for (auto pair = pairs_.begin(); pair != pairs_.end(); next += 2) {
        bool open = true;
        for (size_t from = 0; from < 2 && open; ++from)
          open = ready[next + from].revents == 0 || Forward(*pair, from);
        pair = open ? std::next(pair) : pairs_.erase(pair);
      }
      if (ready[0].revents != 0) Accept();
    }
  }

  void Accept() {
    Pair pair{.ends = {UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
                       UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))}};
    const sockaddr_in server = SocketAddress(server_);
    if (pair.ends[0].valid() &&
        connect(pair.ends[1].get(), reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0)
      pairs_.push_back(std::move(pair));
  }

  // Forwards the bytes that have arrived. Returns false if the connection was closed or is to be
  // broken.
  bool Forward(Pair& pair, size_t from) {
    if (pair.stalled && from == 1) return false;  // the server has closed its end
    char buffer[1 << 16];
    const ssize_t got = recv(pair.ends[from].get(), buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    std::atomic<int64_t>& left = left_[1 - from];
    const int64_t most = left < 0 ? got : std::min<int64_t>(left, got);
    const bool breaks = left >= 0 && most < got;
    if (left >= 0) left = breaks ? -1 : left - most;
    for (int64_t sent = 0; sent < most;) {
      const ssize_t count = send(pair.ends[1 - from].get(), buffer + sent,
                                 static_cast<size_t>(most - sent), MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += count;
    }
    broken += breaks ? 1 : 0;
    if (breaks && from == 1 && stalls_) return pair.stalled = true;
    return !breaks;
  }

  const std::string server_, address_;
  UniqueFd listener_;
  std::list<Pair> pairs_;
  std::atomic<int64_t> left_[2] = {-1, -1};  // to the clients, to the server; -1: no limit
  std::atomic<bool> stalls_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace tfjob::ps
