// Implements an HTTPS server for tests with one thread per connection. The handler controls every
// byte of the response, so it can also send malformed responses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kube/config/credentials.h"

namespace tfjob::kube {

struct TestRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // by name in lower case; the last value of each name
  // Every header line in the order of arrival, as name and value: "impersonate-group", "a".
  std::vector<std::pair<std::string, std::string>> header_lines;
  std::string body;
  int connection = 0;       // number of the connection it arrived on, from 1
  std::string client_name;  // CN of the client certificate; "": none
};

// The connection that a request arrived on. Use it only on the handler's thread.
class TestConnection {
 public:
  virtual ~TestConnection() = default;
  // Writes raw bytes. Returns false if the client has closed the connection.
  virtual bool Write(std::string_view bytes) = 0;
  // Closes the connection without a TLS shutdown. The handler should then return.
  virtual void Abort() = 0;
  // Waits until the client closes the connection or the server is stopped.
  virtual void AwaitEnd() = 0;

  // Sends a whole response with Content-Length. `headers` are lines that end with \r\n.
  void Reply(int code, std::string_view body, std::string_view headers = "",
             std::string_view content_type = "application/json");
  void StartChunks(int code = 200, std::string_view content_type = "application/json");
  bool Chunk(std::string_view bytes);
  void EndChunks();
};

class TestServer {
 public:
  using Handler = std::function<void(const TestRequest&, TestConnection&)>;
  struct Options {
    bool tls = true;
    CertificatePair certificate;
    std::string client_authority;  // PEM; if "", no client certificate is requested
    int port = 0;                  // 0 means any free port
  };

  // Listens on 127.0.0.1. Handlers run on the threads of the connections.
  TestServer(Options options, Handler handler);
  // Ends all connections and joins the threads.
  ~TestServer();

  int port() const;
  std::string url(std::string_view host = "127.0.0.1") const;
  int connections() const;  // accepted so far

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tfjob::kube
