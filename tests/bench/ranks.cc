#include "tests/bench/ranks.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "runtime/collectives/shared/shared_communicator.h"
#include "runtime/collectives/socket/socket_communicator.h"

namespace tfjob::bench {

using wire::UniqueFd;

Pair ConnectOverLoopback() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ENFORCE(bind(listener.get(), generic, length) == 0 && listen(listener.get(), 1) == 0, "listen");
  getsockname(listener.get(), generic, &length);
  Pair pair;
  pair.near = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ENFORCE(connect(pair.near.get(), generic, length) == 0, "connect");
  pair.far = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  for (const UniqueFd* end : {&pair.near, &pair.far}) wire::PrepareSocket(end->get());
  return pair;
}

namespace {

Pair ConnectByUnixSocket() {
  int ends[2];
  ENFORCE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
          "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Sockets ConnectRanks(size_t ranks, const std::string& transport) {
  Sockets sockets(ranks);
  for (auto& row : sockets) row.resize(ranks);
  for (size_t a = 0; a < ranks; ++a) {
    for (size_t b = a + 1; b < ranks; ++b) {
      Pair pair = transport == "tcp" ? ConnectOverLoopback() : ConnectByUnixSocket();
      sockets[a][b] = std::move(pair.near);
      sockets[b][a] = std::move(pair.far);
    }
  }
  return sockets;
}

void BindToProcessor(int rank, int ranks) {
  cpu_set_t allowed;
  ENFORCE(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
  if (ranks > CPU_COUNT(&allowed)) return;
  int processor = -1;
  for (int left = rank; left >= 0; --left) {
    do {
      ++processor;
    } while (!CPU_ISSET(processor, &allowed));
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(processor, &own);
  ENFORCE(sched_setaffinity(0, sizeof own, &own) == 0, "sched_setaffinity");
}

std::unique_ptr<collectives::Communicator> MakeCommunicator(int rank, Sockets sockets,
                                                            const std::string& transport) {
  std::vector<UniqueFd> own = std::move(sockets[static_cast<size_t>(rank)]);
  sockets.clear();
  auto made = transport == "tcp"
                  ? collectives::MakeSocketCommunicator({.rank = rank, .sockets = std::move(own)})
                  : collectives::MakeSharedCommunicator({.rank = rank, .sockets = std::move(own)});
  ENFORCE(made.ok(), made.status().ToString());
  return std::move(made).value();
}

double Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double ThreadCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Result Median(std::vector<Result> turns) {
  std::ranges::sort(turns, {}, &Result::seconds);
  Result result{turns[turns.size() / 2].seconds, 0};
  for (const Result& turn : turns) result.cpu_seconds += turn.cpu_seconds;
  return result;
}

}  // namespace tfjob::bench
