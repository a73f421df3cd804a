#include "operator/serve/server.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/version.hpp>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "operator/serve/exchange.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::serve {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace asio = boost::asio;
using tcp = boost::asio::ip::tcp;

const Logger kLog("serve");

// The pause after a failed accept. A connection that cannot be accepted for lack of descriptors or
// memory stays in the queue, so immediate retries would keep the CPU busy.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

class Connection;

// Contains the state that the connections share. Used only on the server's thread.
struct Shared {
  const ServerOptions options;
  // The connections, sorted by the time when they started to wait for their latest request,
  // earliest first.
  std::list<Connection*> connections = {};
};

// Handles one connection: reads a request, responds, and reads the next request. The pending
// operation keeps the object alive.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {
    beast::error_code unknown;
    peer_ = stream_.socket().remote_endpoint(unknown).address();
    position_ = shared_.connections.insert(shared_.connections.end(), this);
  }
  ~Connection() {
    if (!dropped_) shared_.connections.erase(position_);
  }

  const asio::ip::address& peer() const { return peer_; }
  // Returns true while the connection is waiting for a request or reading its head.
  bool idle() const { return idle_; }

  // Closes the connection, which then no longer counts towards the limit. The object is destroyed
  // when its operations have ended.
  void Drop() {
    dropped_ = true;
    shared_.connections.erase(position_);
    stream_.close();
  }

  void Read() {
    idle_ = true;
    shared_.connections.splice(shared_.connections.end(), shared_.connections, position_);
    parser_.emplace();
    Limit(*parser_);
    stream_.expires_after(shared_.options.deadline);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](beast::error_code error, size_t) { self->OnRead(error); });
  }

 private:
  void OnRead(beast::error_code error) {
    idle_ = false;
    if (dropped_) return;
    if (error == http::error::end_of_stream) return Close();
    std::optional<Answer> answer = AnswerTo(*parser_, error, shared_.options.handlers);
    if (!answer) return;  // closed by the client, or too slow
    answer_ = *std::move(answer);
    Write();
  }

  void Write() {
    stream_.expires_after(shared_.options.deadline);
    http::async_write(stream_, answer_,
                      [self = shared_from_this()](beast::error_code error, size_t) {
                        if (error || self->dropped_) return;
                        if (self->answer_.keep_alive()) {
                          self->Read();
                        } else {
                          self->Close();
                        }
                      });
  }

  void Close() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{2 * kMaxHead};
  std::optional<RequestParser> parser_;
  Answer answer_;
  Shared& shared_;
  asio::ip::address peer_;
  std::list<Connection*>::iterator position_;
  bool idle_ = true;
  bool dropped_ = false;
};

// Makes room for another connection by dropping one from the address with the most connections: the
// one that has been idle longest or, if none is idle, the one that has waited longest for its
// request.
void MakeRoom(Shared& shared) {
  std::map<asio::ip::address, int> by_peer;
  for (const Connection* connection : shared.connections) ++by_peer[connection->peer()];
  const auto has_fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto greediest = std::max_element(by_peer.begin(), by_peer.end(), has_fewer);
  Connection* victim = nullptr;
  for (Connection* connection : shared.connections) {
    if (by_peer[connection->peer()] < greediest->second) continue;
    if (victim == nullptr || (connection->idle() && !victim->idle())) victim = connection;
  }
  if (victim != nullptr) victim->Drop();
}

class BeastServer : public Server {
 public:
  explicit BeastServer(ServerOptions options) : shared_{std::move(options)}, acceptor_(context_) {}
  ~BeastServer() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status Listen() {
    const BindAddress& address = shared_.options.address;
    beast::error_code error;
    tcp::endpoint endpoint(tcp::v6(), address.port);
    if (!address.host.empty()) {
      endpoint = {asio::ip::make_address(address.host, error), address.port};
      if (error) return InvalidArgument(address.host, ": expected an IP address");
    }
    acceptor_.open(endpoint.protocol(), error);
    if (error && address.host.empty()) {  // the machine may have no IPv6
      endpoint = {tcp::v4(), address.port};
      acceptor_.open(endpoint.protocol(), error);
    }
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && address.host.empty() && endpoint.protocol() == tcp::v6()) {
      acceptor_.set_option(asio::ip::v6_only(false), error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Unavailable("listening on ", address.host, ":", address.port, ": ", error.message());
    }
    return OkStatus();
  }

  void Start() {
    Accept();
    thread_ = std::thread([this] {
      SetThreadName("serve");
      Serve();
    });
  }

  uint16_t port() const override {
    beast::error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

 private:
  void Serve() {
    while (!context_.stopped()) {
      try {
        context_.run();
      } catch (const std::exception& error) {  // such as out of memory; the connection is lost
        kLog.Error("a request failed", {{"error", error.what()}});
      }
    }
  }

  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return AcceptLater();
      if (static_cast<int>(shared_.connections.size()) >= shared_.options.max_connections) {
        MakeRoom(shared_);
      }
      std::make_shared<Connection>(std::move(socket), shared_)->Read();
      Accept();
    });
  }

  void AcceptLater() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](beast::error_code error) {
      if (!error) Accept();
    });
  }

  // context_ must be destroyed before shared_: operations that are pending in context_ own
  // connections, which refer to shared_.
  Shared shared_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Create(ServerOptions options) {
  auto server = std::make_unique<BeastServer>(std::move(options));
  RETURN_IF_ERROR(server->Listen());
  server->Start();
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace tfjob::serve
