#include "operator/kube/doubles/test_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace tfjob::kube {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

std::string ClientName(SSL* ssl) {
  X509* certificate = SSL_get1_peer_certificate(ssl);
  if (certificate == nullptr) return "";
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  X509_free(certificate);
  return name;
}

TestRequest ToTest(const http::request<http::string_body>& request) {
  TestRequest test;
  test.method = std::string(request.method_string());
  test.target = std::string(request.target());
  test.body = request.body();
  for (const auto& field : request) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    test.header_lines.emplace_back(name, std::string(field.value()));
    test.headers[name] = std::string(field.value());
  }
  return test;
}

// Implements a connection over a plain socket or a TLS stream.
template <typename Channel>
class Connection : public TestConnection {
 public:
  Connection(Channel& channel, tcp::socket& socket) : channel_(channel), socket_(socket) {}

  bool Write(std::string_view bytes) override {
    ErrorCode error;
    asio::write(channel_, asio::buffer(bytes.data(), bytes.size()), error);
    return !error;
  }
  void Abort() override {
    ended_ = true;
    ::shutdown(socket_.native_handle(), SHUT_RDWR);
  }
  void AwaitEnd() override {
    char byte = 0;
    ErrorCode error;
    while (!error) channel_.read_some(asio::buffer(&byte, 1), error);
    ended_ = true;
  }
  bool ended() const { return ended_; }

 private:
  Channel& channel_;
  tcp::socket& socket_;
  bool ended_ = false;
};

}  // namespace

void TestConnection::Reply(int code, std::string_view body, std::string_view headers,
                           std::string_view content_type) {
  Write(StrCat("HTTP/1.1 ", code, " X\r\nContent-Type: ", content_type, "\r\n", headers,
               "Content-Length: ", body.size(), "\r\n\r\n", body));
}

void TestConnection::StartChunks(int code, std::string_view content_type) {
  Write(StrCat("HTTP/1.1 ", code, " X\r\nContent-Type: ", content_type,
               "\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

bool TestConnection::Chunk(std::string_view bytes) {
  if (bytes.empty()) return true;
  char size[32];
  std::snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
  return Write(StrCat(size, bytes, "\r\n"));
}

void TestConnection::EndChunks() {
  Write("0\r\n\r\n");
}

class TestServer::Impl {
 public:
  Impl(Options options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        tls_(asio::ssl::context::tls_server),
        acceptor_(io_, tcp::endpoint(asio::ip::make_address("127.0.0.1"),
                                     static_cast<uint16_t>(options_.port))) {
    if (options_.tls) {
      const CertificatePair& pair = options_.certificate;
      tls_.use_certificate_chain(asio::buffer(pair.certificate));
      tls_.use_private_key(asio::buffer(pair.key), asio::ssl::context::pem);
      if (!options_.client_authority.empty()) {
        tls_.add_certificate_authority(asio::buffer(options_.client_authority));
        tls_.set_verify_mode(asio::ssl::verify_peer);
      }
    }
    port_ = acceptor_.local_endpoint().port();
    thread_ = std::thread([this] { Accept(); });
  }

  ~Impl() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
    std::vector<std::thread> threads;
    {
      MutexLock lock(mutex_);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }

  int port() const { return port_; }
  bool tls() const { return options_.tls; }
  int connections() {
    MutexLock lock(mutex_);
    return accepted_;
  }

 private:
  void Accept() {
    while (true) {
      ErrorCode error;
      auto socket = std::make_shared<tcp::socket>(io_);
      acceptor_.accept(*socket, error);
      MutexLock lock(mutex_);
      if (stopping_ || error) return;
      sockets_.insert(socket->native_handle());
      threads_.emplace_back([this, socket, id = ++accepted_] {
        Serve(*socket, id);
        MutexLock served(mutex_);
        sockets_.erase(socket->native_handle());
        ErrorCode ignored;
        socket->close(ignored);
      });
    }
  }

  void Serve(tcp::socket& socket, int id) {
    socket.set_option(tcp::no_delay(true));
    if (!options_.tls) return Answer(socket, socket, id, "");
    asio::ssl::stream<tcp::socket&> channel(socket, tls_);
    ErrorCode error;
    channel.handshake(asio::ssl::stream_base::server, error);
    if (!error) Answer(channel, socket, id, ClientName(channel.native_handle()));
  }

  template <typename Channel>
  void Answer(Channel& channel, tcp::socket& socket, int id, const std::string& client_name) {
    boost::beast::flat_buffer buffer;
    while (true) {
      http::request_parser<http::string_body> parser;
      parser.body_limit(uint64_t{1} << 30);
      ErrorCode error;
      http::read(channel, buffer, parser, error);
      if (error) return;
      TestRequest test = ToTest(parser.get());
      test.connection = id;
      test.client_name = client_name;
      Connection<Channel> connection(channel, socket);
      handler_(test, connection);
      if (connection.ended()) return;
    }
  }

  const Options options_;
  const Handler handler_;
  asio::io_context io_;
  asio::ssl::context tls_;
  tcp::acceptor acceptor_;
  int port_ = 0;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<int> sockets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

TestServer::TestServer(Options options, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
TestServer::~TestServer() = default;

int TestServer::port() const {
  return impl_->port();
}
std::string TestServer::url(std::string_view host) const {
  return StrCat(impl_->tls() ? "https://" : "http://", host, ":", impl_->port());
}
int TestServer::connections() const {
  return impl_->connections();
}

}  // namespace tfjob::kube
