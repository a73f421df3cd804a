#include "operator/kube/rest/transport.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "operator/kube/doubles/test_certificates.h"
#include "operator/kube/doubles/test_server.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {
namespace {

const RequestCredentials kNobody;

// Sets up a server with the given handler, and a transport that trusts it.
class Pair {
 public:
  explicit Pair(TestServer::Handler handler, TestServer::Options options = {},
                TransportOptions transport_options = {}) {
    options.certificate = authority_.IssueServer({"127.0.0.1", "localhost"});
    server_ = std::make_unique<TestServer>(options, std::move(handler));
    config_.server = server_->url();
    config_.certificate_authority.data = authority_.certificate();
    auto made = MakeTransport(config_, transport_options);
    EXPECT_TRUE(made.ok()) << made.status();
    transport_ = *std::move(made);
  }

  Transport& transport() { return *transport_; }
  TestServer& server() { return *server_; }
  TestAuthority& authority() { return authority_; }
  const ClusterConfig& config() const { return config_; }

 private:
  TestAuthority authority_;
  std::unique_ptr<TestServer> server_;
  ClusterConfig config_;
  std::unique_ptr<Transport> transport_;
};

HttpRequest Get(std::string target) {
  return {"GET", std::move(target), "", ""};
}

// Contains the body of a stream, and the status that the stream ended with.
struct Streamed {
  std::string body;
  Status end;
};
Streamed Drain(HttpStream& stream) {
  Streamed streamed;
  while (true) {
    StatusOr<std::string> bytes = stream.Read(10s);
    if (!bytes.ok() || bytes->empty()) {
      streamed.end = bytes.status();
      return streamed;
    }
    streamed.body += *bytes;
  }
}

TEST(Transport, CarriesRequestAndAnswerWhole) {
  Pair pair([](const TestRequest& request, TestConnection& connection) {
    EXPECT_EQ(request.headers.at("authorization"), "Bearer t");
    EXPECT_EQ(request.headers.at("accept"), "application/json");
    EXPECT_EQ(request.headers.at("content-type"), "application/json");
    EXPECT_EQ(request.headers.at("user-agent"), "tfjob-operator");
    EXPECT_EQ(request.headers.count("accept-encoding"), 0u);
    connection.Reply(201, StrCat(request.method, " ", request.target, " ", request.body),
                     "Retry-After: 7\r\nWarning: 299 - \"use \\\"v2\\\"\"\r\n");
  });
  RequestCredentials credentials;
  credentials.authorization = "Bearer t";
  const auto response = pair.transport().Send(
      {"POST", "/a/b?x=%2F&y=a%3Db%2Cc", "application/json", "{\"é\":1}"}, credentials, 10s);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->code, 201);
  EXPECT_EQ(response->body, "POST /a/b?x=%2F&y=a%3Db%2Cc {\"é\":1}");
  EXPECT_EQ(response->content_type, "application/json");
  EXPECT_EQ(response->retry_after, std::optional<Duration>(7s));
  EXPECT_EQ(response->warnings, std::vector<std::string>{"use \"v2\""});
}

// Each value must be on its own line, because an API server would read the line "a, b" as one group
// with that name.
TEST(Transport, SendsHeadersOfOneNameInSeparateLines) {
  Pair pair([](const TestRequest& request, TestConnection& connection) {
    std::string lines;
    for (const auto& [name, value] : request.header_lines) {
      if (name.starts_with("impersonate-")) lines += StrCat(name, "=", value, ";");
    }
    connection.Reply(200, lines);
  });
  ClusterConfig config = pair.config();
  config.headers = {{"Impersonate-User", "jane"},
                    {"Impersonate-Group", "dev, ops"},
                    {"Impersonate-Group", "admins"},
                    {"Impersonate-Extra-scopes", "read"},
                    {"Impersonate-Extra-scopes", "write"}};
  const auto transport = MakeTransport(config);
  ASSERT_TRUE(transport.ok()) << transport.status();
  const auto response = (*transport)->Send(Get("/"), kNobody, 10s);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body,
            "impersonate-extra-scopes=read;impersonate-extra-scopes=write;"
            "impersonate-group=dev, ops;impersonate-group=admins;impersonate-user=jane;");
  const auto stream = (*transport)->Open(Get("/"), kNobody);
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE((*stream)->Head(10s).ok());
  EXPECT_EQ(Drain(**stream).body, response->body);

  config.headers = {{"Impersonate-Group", "dev\r\nAuthorization: Bearer stolen"}};
  EXPECT_EQ(MakeTransport(config).status().code(), StatusCode::kInvalidArgument);
}

TEST(Transport, KeepsItsConnection) {
  Pair pair([](const TestRequest&, TestConnection& connection) { connection.Reply(200, "{}"); });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pair.transport().Send(Get("/"), kNobody, 10s).ok());
  }
  EXPECT_EQ(pair.server().connections(), 1);
}

TEST(Transport, ServesManyCallersAtOnce) {
  Pair pair([](const TestRequest& request, TestConnection& connection) {
    connection.Reply(200, request.target);
  });
  std::vector<std::thread> callers;
  std::atomic<int> right = 0;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 25; ++i) {
        const std::string target = StrCat("/", caller, "/", i);
        const auto response = pair.transport().Send(Get(target), kNobody, 30s);
        if (response.ok() && response->body == target) ++right;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 200);
  EXPECT_LE(pair.server().connections(), 8);
}

TEST(Transport, LongBodiesArriveInBothDirections) {
  Pair pair([](const TestRequest& request, TestConnection& connection) {
    connection.Reply(200, request.body);
  });
  const std::string body(3 << 20, 'x');
  const auto response = pair.transport().Send({"PUT", "/", "text/plain", body}, kNobody, 30s);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, body);
}

TEST(Transport, ATooLongAnswerIsAnError) {
  TransportOptions options;
  options.max_response_bytes = 1000;
  Pair pair([](const TestRequest&,
               TestConnection& connection) { connection.Reply(200, std::string(2000, 'x')); },
            {}, options);
  const Status status = pair.transport().Send(Get("/"), kNobody, 10s).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(IsTooLong(status)) << status;
}

TEST(Transport, ARequestMayLimitItsAnswer) {
  Pair pair([](const TestRequest&, TestConnection& connection) {
    connection.Reply(200, std::string(2000, 'x'));
  });
  HttpRequest request = Get("/");
  request.max_response_bytes = 1999;
  const Status status = pair.transport().Send(request, kNobody, 10s).status();
  EXPECT_TRUE(IsTooLong(status)) << status;
  EXPECT_NE(Message(status).find("longer than the limit of 1999 bytes"), std::string_view::npos);
  request.max_response_bytes = 2000;
  const auto response = pair.transport().Send(request, kNobody, 10s);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body.size(), 2000u);
}

TEST(Transport, TheDeadlineIsForTheWholeExchange) {
  // A byte every 20 ms prevents any inactivity timer from expiring.
  Pair pair([](const TestRequest&, TestConnection& connection) {
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    while (connection.Write("x")) std::this_thread::sleep_for(20ms);
  });
  const auto start = std::chrono::steady_clock::now();
  const Status status = pair.transport().Send(Get("/"), kNobody, 300ms).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_NE(Message(status).find(pair.config().server), std::string_view::npos);
}

TEST(Transport, ATruncatedAnswerIsAnError) {
  Pair pair([](const TestRequest& request, TestConnection& connection) {
    if (request.target == "/length") {
      connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    } else {
      connection.StartChunks();
      connection.Chunk("half");
    }
    connection.Abort();
  });
  for (const char* target : {"/length", "/chunks"}) {
    EXPECT_EQ(pair.transport().Send(Get(target), kNobody, 10s).status().code(),
              StatusCode::kUnavailable)
        << target;
  }
}

TEST(Transport, ARequestOnADeadConnectionIsSentAgain) {
  std::atomic<int> posts = 0;
  Pair pair([&posts](const TestRequest& request, TestConnection& connection) {
    // The first POST is executed, but its response is lost.
    if (request.method == "POST" && ++posts == 1) return connection.Abort();
    connection.Reply(200, "{}");
  });
  ASSERT_TRUE(pair.transport().Send(Get("/"), kNobody, 10s).ok());
  EXPECT_TRUE(pair.transport().Send({"POST", "/", "application/json", "{}"}, kNobody, 10s).ok());
  EXPECT_EQ(posts, 2);
}

TEST(Transport, RedirectsAreNotFollowed) {
  std::atomic<int> requests = 0;
  Pair pair([&requests](const TestRequest&, TestConnection& connection) {
    ++requests;
    connection.Reply(307, "", "Location: https://127.0.0.1:1/stolen\r\n");
  });
  const auto response = pair.transport().Send(Get("/"), kNobody, 10s);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->code, 307);
  EXPECT_EQ(requests, 1);
}

TEST(Transport, SaysWhenTheServerCompressedUnasked) {
  Pair pair([](const TestRequest&, TestConnection& connection) {
    connection.Reply(200, "\x1f\x8b...", "Content-Encoding: gzip\r\n");
  });
  const auto response = pair.transport().Send(Get("/"), kNobody, 10s);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->content_encoding, "gzip");
}

TEST(Transport, TrustsItsAuthorityAlone) {
  Pair pair([](const TestRequest&, TestConnection& connection) { connection.Reply(200, "{}"); });
  ClusterConfig config = pair.config();
  config.certificate_authority.data = TestAuthority().certificate();
  const auto wrong = MakeTransport(config);
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  const Status status = (*wrong)->Send(Get("/"), kNobody, 10s).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(Message(status).find("not trusted"), std::string_view::npos) << status;

  config.insecure_skip_tls_verify = true;
  EXPECT_TRUE((*MakeTransport(config))->Send(Get("/"), kNobody, 10s).ok());
}

TEST(Transport, ChecksTheNameOfTheServer) {
  TestAuthority authority;
  TestServer::Options options;
  options.certificate = authority.IssueServer({"kubernetes.default"});
  TestServer server(options, [](const TestRequest& request, TestConnection& connection) {
    connection.Reply(200, request.headers.at("host"));
  });
  ClusterConfig config;
  config.server = server.url();
  config.certificate_authority.data = authority.certificate();
  const Status status = (*MakeTransport(config))->Send(Get("/"), kNobody, 10s).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(Message(status).find("another name"), std::string_view::npos) << status;

  config.tls_server_name = "kubernetes.default";
  EXPECT_TRUE((*MakeTransport(config))->Send(Get("/"), kNobody, 10s).ok());
}

TEST(Transport, ShowsTheClientCertificateThatIsValidNow) {
  TestAuthority clients;
  TestServer::Options options;
  options.client_authority = clients.certificate();
  Pair pair([](const TestRequest& request,
               TestConnection& connection) { connection.Reply(200, request.client_name); },
            options);
  RequestCredentials credentials;
  for (const char* name : {"first", "first", "second"}) {
    if (credentials.certificate == nullptr || std::string(name) == "second") {
      credentials.certificate = std::make_shared<const CertificatePair>(clients.IssueClient(name));
    }
    const auto response = pair.transport().Send(Get("/"), credentials, 10s);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, name);
  }
  EXPECT_EQ(pair.server().connections(), 2);
}

TEST(Transport, RefusesWhatDoesNotParse) {
  TestAuthority authority;
  ClusterConfig config;
  config.server = "https://127.0.0.1:1";
  config.certificate_authority.data = "-----BEGIN CERTIFICATE-----\nrubbish\n";
  EXPECT_EQ(MakeTransport(config).status().code(), StatusCode::kInvalidArgument);
  config.certificate_authority.data = authority.certificate();
  const auto transport = *MakeTransport(config);
  RequestCredentials credentials;
  CertificatePair mixed = authority.IssueClient("a");
  mixed.key = authority.IssueClient("b").key;
  credentials.certificate = std::make_shared<const CertificatePair>(mixed);
  EXPECT_EQ(transport->Send(Get("/"), credentials, 10s).status().code(),
            StatusCode::kInvalidArgument);
  for (const char* server : {"ftp://127.0.0.1", "https://[::1]:6443", "", "https://", "x y"}) {
    config.server = server;
    EXPECT_EQ(MakeTransport(config).status().code(), StatusCode::kInvalidArgument) << server;
  }
}

TEST(Transport, NobodyThereIsUnavailable) {
  int port = 0;
  {
    TestServer::Options options;
    options.tls = false;
    port = TestServer(options, [](const TestRequest&, TestConnection&) {}).port();
  }
  ClusterConfig config;
  config.server = StrCat("http://127.0.0.1:", port);
  const Status status = (*MakeTransport(config))->Send(Get("/"), kNobody, 10s).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(Message(status).find(config.server), std::string_view::npos);
}

TEST(Transport, AStreamComesAsItIsWritten) {
  std::atomic<int> reads = 0;
  Pair pair([&reads](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.Chunk("one \xc3");
    while (reads < 1) std::this_thread::sleep_for(1ms);
    connection.Chunk("\xa9 two");
    connection.EndChunks();
  });
  auto stream = pair.transport().Open(Get("/watch"), kNobody);
  ASSERT_TRUE(stream.ok()) << stream.status();
  const auto head = (*stream)->Head(10s);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->code, 200);
  EXPECT_EQ(*(*stream)->Read(10s), "one \xc3");
  ++reads;
  const Streamed rest = Drain(**stream);
  EXPECT_EQ(rest.body, "\xa9 two");
  EXPECT_TRUE(rest.end.ok()) << rest.end;
}

// Returns, for each of this process's connections to the port, whether it has TCP keepalive.
std::vector<bool> Keepalives(int port) {
  std::vector<bool> keepalives;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    int on = 0;
    size = sizeof(on);
    getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, &size);
    keepalives.push_back(on != 0);
  }
  return keepalives;
}

TEST(Transport, ADeadPeerOfAStreamIsNoticedByTcp) {
  Pair pair([](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.AwaitEnd();
  });
  auto stream = *pair.transport().Open(Get("/watch"), kNobody);
  ASSERT_TRUE(stream->Head(10s).ok());
  EXPECT_EQ(Keepalives(pair.server().port()), std::vector<bool>{true});
}

TEST(Transport, AStreamThatBreaksOffSaysSo) {
  Pair pair([](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.Chunk("half");
    connection.Abort();
  });
  auto stream = *pair.transport().Open(Get("/watch"), kNobody);
  ASSERT_TRUE(stream->Head(10s).ok());
  const Streamed streamed = Drain(*stream);
  EXPECT_EQ(streamed.body, "half");
  EXPECT_EQ(streamed.end.code(), StatusCode::kUnavailable);
}

TEST(Transport, ASilentStreamIsNoticedAndMayGoOn) {
  std::atomic<bool> go_on = false;
  Pair pair([&go_on](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    while (!go_on) std::this_thread::sleep_for(1ms);
    connection.Chunk("late");
    connection.EndChunks();
  });
  auto stream = *pair.transport().Open(Get("/watch"), kNobody);
  ASSERT_TRUE(stream->Head(10s).ok());
  EXPECT_EQ(stream->Read(20ms).status().code(), StatusCode::kDeadlineExceeded);
  go_on = true;
  EXPECT_EQ(*stream->Read(10s), "late");
}

TEST(Transport, AReaderThatIsSlowHoldsTheServerUp) {
  const std::string piece(64 << 10, 'x');
  constexpr int kPieces = 1024;  // 64 MiB
  std::atomic<int> written = 0;
  Pair pair([&](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    for (int i = 0; i < kPieces && connection.Chunk(piece); ++i) ++written;
    connection.EndChunks();
  });
  auto stream = *pair.transport().Open(Get("/watch"), kNobody);
  ASSERT_TRUE(stream->Head(10s).ok());
  // Wait until the server stalls because its buffers and those of the client are full.
  int before = -1;
  while (written != before) {
    before = written;
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_LT(written, kPieces / 2);
  const Streamed streamed = Drain(*stream);
  EXPECT_TRUE(streamed.end.ok()) << streamed.end;
  EXPECT_EQ(streamed.body.size(), piece.size() * kPieces);
}

TEST(Transport, ACancelledStreamEndsItsReader) {
  std::atomic<bool> ended = false;
  Pair pair([&ended](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.AwaitEnd();
    ended = true;
  });
  auto stream = *pair.transport().Open(Get("/watch"), kNobody);
  ASSERT_TRUE(stream->Head(10s).ok());
  std::thread canceller([&stream] { stream->Cancel(); });
  EXPECT_EQ(stream->Read(30s).status().code(), StatusCode::kCancelled);
  canceller.join();
  while (!ended) std::this_thread::sleep_for(1ms);  // until the server sees the connection close
}

TEST(Transport, StopEndsWhatIsUnderWayAndWhatComes) {
  Pair pair([](const TestRequest&, TestConnection& connection) { connection.AwaitEnd(); });
  Status status;
  std::thread caller([&] { status = pair.transport().Send(Get("/"), kNobody, 30s).status(); });
  auto stream = *pair.transport().Open(Get("/watch"), kNobody);
  while (pair.server().connections() < 2) std::this_thread::sleep_for(1ms);
  pair.transport().Stop();
  caller.join();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(stream->Head(10s).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(pair.transport().Send(Get("/"), kNobody, 10s).status().code(), StatusCode::kCancelled);
}

TEST(Transport, CancelledAtAnyMomentNothingBreaks) {
  Pair pair([](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    while (connection.Chunk("0123456789")) std::this_thread::sleep_for(1ms);
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&pair, i] {
      for (int round = 0; round < 8; ++round) {
        auto stream = *pair.transport().Open(Get("/watch"), kNobody);
        std::this_thread::sleep_for(std::chrono::microseconds(300) * ((i + round) % 11));
        if (round % 2 == 0) stream->Head(Duration(round * 100)).status().IgnoreError();
        stream->Cancel();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pair.transport().Open(Get("/watch"), kNobody).value()->Head(10s)->code, 200);
}

}  // namespace
}  // namespace tfjob::kube
