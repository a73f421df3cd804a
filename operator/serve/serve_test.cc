#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "operator/serve/checks.h"
#include "operator/serve/server.h"

namespace tfjob::serve {
namespace {

// Connects to the server over a plain socket, so that tests can also send malformed requests.
class Peer {
 public:
  explicit Peer(uint16_t port) : Peer() { Connect(port); }
  // Creates the socket without connecting it.
  Peer() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {}
  ~Peer() { close(socket_); }

  // Sets the address to connect from.
  void BindTo(const std::string& host) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void Connect(uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval patience = {.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void Send(const std::string& text) { send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Reads until the server closes the connection.
  std::string ReadAll() {
    std::string all;
    char chunk[4096];
    for (ssize_t size; (size = recv(socket_, chunk, sizeof(chunk), 0)) > 0;) {
      all.append(chunk, static_cast<size_t>(size));
    }
    return all;
  }

 private:
  int socket_;
};

class ServerTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Server> Start(Duration deadline = 10s, int max_connections = 64) {
    ServerOptions options;
    options.address = {"127.0.0.1", 0};
    options.deadline = deadline;
    options.max_connections = max_connections;
    options.handlers["/ok"] = [](const std::string& query) {
      return Response{200, "text/plain", "fine " + query};
    };
    options.handlers["/bad"] = [](const std::string&) { return Response{503, "text/plain", "no"}; };
    auto server = Server::Create(std::move(options));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  static std::string Ask(Server& server, const std::string& request) {
    Peer peer(server.port());
    peer.Send(request);
    return peer.ReadAll();
  }
};

TEST_F(ServerTest, AnswersTheKnownPathsWithTheirQuery) {
  const auto server = Start();
  const std::string answer =
      Ask(*server, "GET /ok?verbose HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nfine verbose")) << answer;
  EXPECT_TRUE(Ask(*server, "GET /bad HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 503 "));
  EXPECT_TRUE(Ask(*server, "GET /none HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
}

TEST_F(ServerTest, KeepsConnectionsAliveForFurtherRequests) {
  const auto server = Start();
  Peer peer(server->port());
  peer.Send(
      "GET /ok?1 HTTP/1.1\r\nHost: x\r\n\r\nGET /ok?2 HTTP/1.1\r\nHost: x\r\nConnection: "
      "close\r\n\r\n");
  const std::string answers = peer.ReadAll();
  EXPECT_NE(answers.find("fine 1"), std::string::npos) << answers;
  EXPECT_NE(answers.find("fine 2"), std::string::npos) << answers;
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  const auto server = Start();
  const std::string answer =
      Ask(*server, "HEAD /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_NE(answer.find("Content-Length: 5"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(ServerTest, RefusesOtherMethodsBodiesNonsenseAndLongHeads) {
  const auto server = Start();
  EXPECT_TRUE(Ask(*server, "DELETE /ok HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405 "));
  EXPECT_TRUE(Ask(*server, "POST /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
                  .starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(Ask(*server, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
  const std::string many(20 << 10, 'a');
  EXPECT_TRUE(
      Ask(*server, "GET /ok HTTP/1.1\r\nX: " + many + "\r\n\r\n").starts_with("HTTP/1.1 431 "));
}

TEST_F(ServerTest, ClosesConnectionsThatAreTooSlowOrTooMany) {
  const auto server = Start(50ms, 1);
  Peer slow(server->port());
  slow.Send("GET /ok HT");
  Peer second(server->port());
  EXPECT_EQ(second.ReadAll(), "");
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_NE(Ask(*server, "GET /ok HTTP/1.0\r\n\r\n").find("fine"), std::string::npos);
}

// All idle connections come from the same address. The probe comes from another address, as the
// kubelet's probes do. The probe's connection must not be closed before the probe's request has
// arrived.
TEST_F(ServerTest, AnswersAProbeAmongManyIdleConnections) {
  const auto server = Start(600s, 8);
  std::vector<std::unique_ptr<Peer>> idle;
  const auto crowd = [&](int count) {
    for (int i = 0; i < count; ++i) {
      idle.push_back(std::make_unique<Peer>(server->port()));
      if (i % 2 == 0) idle.back()->Send("GET /ok HT");
    }
  };
  crowd(100);
  Peer probe;
  probe.BindTo("127.0.0.2");
  probe.Connect(server->port());
  crowd(100);
  probe.Send("GET /ok?probe HTTP/1.0\r\n\r\n");
  EXPECT_NE(probe.ReadAll().find("fine probe"), std::string::npos);
  // The server must still serve the newest of the idle connections.
  idle.back()->Send("GET /ok?last HTTP/1.0\r\n\r\n");
  EXPECT_NE(idle.back()->ReadAll().find("fine last"), std::string::npos);
  EXPECT_EQ(idle.front()->ReadAll(), "");
}

// Like the test above, but each idle connection comes from a different address.
TEST_F(ServerTest, AnswersAProbeAmongIdleConnectionsOfManyAddresses) {
  const auto server = Start(600s, 8);
  std::vector<std::unique_ptr<Peer>> idle;
  for (int i = 0; i < 50; ++i) {
    idle.push_back(std::make_unique<Peer>());
    idle.back()->BindTo(StrCat("127.0.1.", i + 1));
    idle.back()->Connect(server->port());
  }
  EXPECT_NE(Ask(*server, "GET /ok?probe HTTP/1.0\r\n\r\n").find("fine probe"), std::string::npos);
}

// Prevents this process from opening descriptors while an object of this class exists.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free = dup(STDERR_FILENO);
    close(lowest_free);
    const rlimit none = {static_cast<rlim_t>(lowest_free), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

std::chrono::nanoseconds ProcessorTime() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST_F(ServerTest, WaitsForDescriptorsWithoutSpinning) {
  const auto server = Start();
  Peer peer;
  {
    const NoDescriptors none;
    const auto before = ProcessorTime();
    peer.Connect(server->port());
    std::this_thread::sleep_for(500ms);  // the measured interval
    EXPECT_LT(ProcessorTime() - before, 10ms);
  }
  peer.Send("GET /ok HTTP/1.0\r\n\r\n");
  EXPECT_NE(peer.ReadAll().find("fine"), std::string::npos);
}

TEST_F(ServerTest, SaysThatAnAddressIsTaken) {
  const auto server = Start();
  ServerOptions options;
  options.address = {"127.0.0.1", server->port()};
  const Status status = Server::Create(std::move(options)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(Message(status).find(StrCat(server->port())), std::string_view::npos) << status;
}

TEST(BindAddress, ReadsWhatFlagsSay) {
  EXPECT_EQ(*ParseBindAddress(":8080"), (BindAddress{"", 8080}));
  EXPECT_EQ(*ParseBindAddress("127.0.0.1:0"), (BindAddress{"127.0.0.1", 0}));
  EXPECT_EQ(*ParseBindAddress("[::1]:81"), (BindAddress{"::1", 81}));
  EXPECT_EQ(*ParseBindAddress("0"), std::nullopt);
  EXPECT_EQ(*ParseBindAddress(""), std::nullopt);
  for (const char* bad : {"8080", ":", ":x", ":70000", "::1:80", "[::1:80", "a:80b"}) {
    EXPECT_EQ(ParseBindAddress(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Checks, SayWhichOneFailed) {
  Status caches = Unavailable("waiting for Pod");
  const Handler ready =
      AllPass({{"ping", [] { return OkStatus(); }}, {"caches", [&] { return caches; }}});
  EXPECT_EQ(ready("").status, 503);
  EXPECT_EQ(ready("").body, "[+]ping ok\n[-]caches failed: waiting for Pod\n");
  caches = OkStatus();
  EXPECT_EQ(ready("").status, 200);
  EXPECT_EQ(ready("").body, "ok");
  EXPECT_EQ(ready("verbose").body, "[+]ping ok\n[+]caches ok\n");
}

}  // namespace
}  // namespace tfjob::serve
