// Checks the server of probes and metrics for arbitrary bytes from a connection.
//   - Nothing crashes, and the connection ends once the peer has sent everything.
//   - What comes back, if anything, is an HTTP response.
//   - The next probe is answered.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "operator/serve/server.h"
#include "runtime/base/check.h"

namespace tfjob::fuzz {
namespace {

serve::Server& TheServer() {
  static const std::unique_ptr<serve::Server> server = [] {
    serve::ServerOptions options;
    options.address = {"127.0.0.1", 0};
    options.handlers["/healthz"] = [](const std::string&) { return serve::Response{}; };
    options.handlers["/echo"] = [](const std::string& query) {
      return serve::Response{.body = query};
    };
    auto created = serve::Server::Create(std::move(options));
    ENFORCE(created.ok(), Message(created.status()));
    return *std::move(created);
  }();
  return *server;
}

int Connect() {
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  ENFORCE(peer >= 0, "socket");
  // Closes without TIME_WAIT, because the ports would run out.
  const linger no_linger = {.l_onoff = 1, .l_linger = 0};
  setsockopt(peer, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger));
  // Shorter than the server's deadline, so that a connection that stays open is noticed.
  const timeval patience = {.tv_sec = 5, .tv_usec = 0};
  setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(TheServer().port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ENFORCE(connect(peer, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0, "connect");
  return peer;
}

// Sends the bytes and no more, and returns everything that comes back.
std::string Exchange(std::string_view bytes) {
  const int peer = Connect();
  // The server may already have closed the connection.
  (void)!send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(peer, SHUT_WR);
  std::string all;
  char chunk[4096];
  ssize_t size;
  while ((size = recv(peer, chunk, sizeof(chunk), 0)) > 0) {
    all.append(chunk, static_cast<size_t>(size));
  }
  ENFORCE(size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK), "the connection must end");
  close(peer);
  return all;
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tfjob::fuzz::Exchange;
  const std::string answer = Exchange({reinterpret_cast<const char*>(data), size});
  ENFORCE(answer.empty() || answer.starts_with("HTTP/1."), "an answer must be HTTP");
  const std::string probe = Exchange("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  ENFORCE(probe.starts_with("HTTP/1.1 200"), "the next probe must be answered");
  return 0;
}
