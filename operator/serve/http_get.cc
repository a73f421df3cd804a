#include "operator/serve/http_get.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tfjob::serve {

std::string HttpGet(uint16_t port, const std::string& path) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience = {.tv_sec = 10, .tv_usec = 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string answer;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    send(connection, request.data(), request.size(), MSG_NOSIGNAL);
    char chunk[4096];
    for (ssize_t size; (size = recv(connection, chunk, sizeof(chunk), 0)) > 0;) {
      answer.append(chunk, static_cast<size_t>(size));
    }
  }
  close(connection);
  return answer;
}

}  // namespace tfjob::serve
