// Connects the ranks of a test by sockets.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <tuple>
#include <utility>
#include <vector>

#include "runtime/wire/socket.h"

namespace tfjob::collectives {

using Sockets = std::vector<std::vector<wire::UniqueFd>>;

enum class SocketKind { kUnix, kTcp };

// Returns two connected TCP sockets of the loopback interface, with the options of data sockets.
inline std::pair<wire::UniqueFd, wire::UniqueFd> ConnectTcp() {
  const wire::UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener.get(), generic, length), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), generic, &length), 0);
  wire::UniqueFd caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(caller.get(), generic, length), 0);
  wire::UniqueFd answerer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  for (const wire::UniqueFd* end : {&caller, &answerer}) {
    EXPECT_EQ(fcntl(end->get(), F_SETFL, O_NONBLOCK), 0);
    wire::PrepareSocket(end->get());
  }
  return {std::move(caller), std::move(answerer)};
}

inline std::pair<wire::UniqueFd, wire::UniqueFd> ConnectUnix() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  return {wire::UniqueFd(ends[0]), wire::UniqueFd(ends[1])};
}

// sockets[a][b] is connected to sockets[b][a].
inline Sockets Connect(size_t ranks, SocketKind kind = SocketKind::kUnix) {
  Sockets sockets(ranks);
  for (auto& row : sockets) row.resize(ranks);
  for (size_t a = 0; a < ranks; ++a) {
    for (size_t b = a + 1; b < ranks; ++b) {
      std::tie(sockets[a][b], sockets[b][a]) =
          kind == SocketKind::kTcp ? ConnectTcp() : ConnectUnix();
    }
  }
  return sockets;
}

}  // namespace tfjob::collectives
