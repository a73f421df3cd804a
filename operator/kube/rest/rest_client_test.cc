#include "operator/kube/rest/rest_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "operator/kube/doubles/test_certificates.h"
#include "operator/kube/doubles/test_server.h"
#include "operator/kube/rest/api_error.h"

namespace tfjob::kube {
namespace {

constexpr char kStatusBody[] =
    R"({"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"AlreadyExists",
        "message":"pods \"a\" already exists","details":{"name":"a","kind":"pods"}})";

struct Case {
  int code;
  const char* body;
  StatusCode expected;
  const char* message;
};

TEST(ApiError, BecomesTheCodesOfTheClient) {
  const Case cases[] = {
      {409, kStatusBody, StatusCode::kAlreadyExists, "pods \"a\" already exists"},
      {409, R"({"kind":"Status","reason":"Conflict","message":"m"})", StatusCode::kAborted, "m"},
      {404, R"({"kind":"Status","message":"m","details":{"name":"a"}})", StatusCode::kNotFound,
       "m"},
      {404, R"({"kind":"Status","message":"m","details":{}})", StatusCode::kUnavailable, "m"},
      {404, "404 page not found\n", StatusCode::kUnavailable,
       "the server does not serve this path; is the CustomResourceDefinition installed?"},
      {422, R"({"kind":"Status","message":"m"})", StatusCode::kInvalidArgument, "m"},
      {400, R"({"kind":"Status","message":"m"})", StatusCode::kInvalidArgument, "m"},
      {413, "", StatusCode::kInvalidArgument, "HTTP 413"},
      {401, R"({"kind":"Status","message":"m"})", StatusCode::kUnauthenticated, "m"},
      {403, R"({"kind":"Status","message":"m"})", StatusCode::kPermissionDenied, "m"},
      {403, R"({"kind":"Status","message":"m","details":{"causes":[
               {"reason":"NamespaceTerminating"}]}})",
       StatusCode::kFailedPrecondition, "m"},
      {410, R"({"kind":"Status","message":"m"})", StatusCode::kOutOfRange, "m"},
      {429, R"({"kind":"Status","message":"m"})", StatusCode::kResourceExhausted, "m"},
      {500, R"({"kind":"Status","message":"m"})", StatusCode::kInternal, "m"},
      {500, "m", StatusCode::kUnavailable, "HTTP 500: m"},
      {502, "<html>\n <b>bad\tgateway</b>\x01\xff", StatusCode::kUnavailable,
       "HTTP 502: <html> <b>bad gateway</b>?"},
      {503, "{", StatusCode::kUnavailable, "HTTP 503: {"},
      {503, R"({"kind":"Status","message":"m"})", StatusCode::kUnavailable, "m"},
      {504, R"({"kind":"Status","message":"m"})", StatusCode::kDeadlineExceeded, "m"},
      {302, "", StatusCode::kUnavailable, "HTTP 302, a redirect, which is not followed"},
  };
  for (const Case& c : cases) {
    HttpResponse response;
    response.code = c.code;
    response.body = c.body;
    const Status status = ToStatus(ParseApiError(response));
    EXPECT_EQ(status.code(), c.expected) << c.code << " " << c.body;
    EXPECT_EQ(Message(status), c.message);
  }
}

// Records which credentials are reported as unauthorized.
class TestCredentials : public Credentials {
 public:
  StatusOr<RequestCredentials> Get() override {
    MutexLock lock(mutex_);
    ++asked_;
    RequestCredentials credentials;
    credentials.authorization = StrCat("Bearer ", version_);
    credentials.version = version_;
    return credentials;
  }
  void Unauthorized(const RequestCredentials& used) override {
    MutexLock lock(mutex_);
    if (used.version == version_) ++version_;
  }
  int asked() {
    MutexLock lock(mutex_);
    return asked_;
  }

 private:
  Mutex mutex_;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

class TestObserver : public RestObserver {
 public:
  void OnCall(const RestCall& call) override {
    MutexLock lock(mutex_);
    calls_.push_back(call);
    calls_.back().method = *texts_.emplace(call.method).first;
    calls_.back().host = *texts_.emplace(call.host).first;
  }
  std::vector<RestCall> calls() {
    MutexLock lock(mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  std::set<std::string> texts_ ABSL_GUARDED_BY(mutex_);
  std::vector<RestCall> calls_ ABSL_GUARDED_BY(mutex_);
};

class RestClientTest : public ::testing::Test {
 protected:
  void Start(TestServer::Handler handler, RestOptions options = {}) {
    TestServer::Options server;
    server.tls = false;
    server_ = std::make_unique<TestServer>(server, std::move(handler));
    ClusterConfig config;
    config.server = server_->url();
    options.observer = &observer_;
    options.host = "here:1";
    rest_ = std::make_unique<RestClient>(*MakeTransport(config), credentials_, options);
  }
  StatusOr<HttpResponse> Get(const std::string& target = "/x") {
    return rest_->Call({"GET", target, "", ""});
  }

  TestObserver observer_;
  const std::shared_ptr<TestCredentials> credentials_ = std::make_shared<TestCredentials>();
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<RestClient> rest_;
};

TEST_F(RestClientTest, GivesAnswersAndCountsThem) {
  Start([](const TestRequest&, TestConnection& connection) { connection.Reply(201, "{}"); });
  const auto response = rest_->Call({"POST", "/x", "application/json", "{\"a\":1}"});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "{}");
  ASSERT_EQ(observer_.calls().size(), 1u);
  const RestCall call = observer_.calls()[0];
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.host, "here:1");
  EXPECT_EQ(call.code, 201);
  EXPECT_EQ(call.request_bytes, 7u);
  EXPECT_EQ(call.response_bytes, 2u);
  EXPECT_GT(call.duration, 0s);
  EXPECT_FALSE(call.retry);
}

TEST_F(RestClientTest, WaitsAsLongAsTheServerAsks) {
  std::atomic<int> requests = 0;
  Start([&requests](const TestRequest&, TestConnection& connection) {
    switch (++requests) {
      case 1:
        return connection.Reply(429, "slow down", "Retry-After: 1\r\n", "text/plain");
      case 2:
        return connection.Reply(503, "", "Retry-After: 0\r\n");
      default:
        return connection.Reply(200, "{}");
    }
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Get().ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, 1s);
  EXPECT_EQ(requests, 3);
  ASSERT_EQ(observer_.calls().size(), 3u);
  EXPECT_TRUE(observer_.calls()[2].retry);
}

TEST_F(RestClientTest, DoesNotWaitBeyondItsDeadline) {
  RestOptions options;
  options.deadline = 2s;
  Start(
      [](const TestRequest&, TestConnection& connection) {
        connection.Reply(429, R"({"kind":"Status","message":"too many requests"})",
                         "Retry-After: 30\r\n");
      },
      options);
  const auto start = std::chrono::steady_clock::now();
  const Status status = Get().status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "too many requests");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

TEST_F(RestClientTest, OtherServerErrorsAreTheCallers) {
  std::atomic<int> requests = 0;
  Start([&requests](const TestRequest&, TestConnection& connection) {
    ++requests;
    connection.Reply(500, R"({"kind":"Status","message":"no"})");
  });
  EXPECT_EQ(Get().status().code(), StatusCode::kInternal);
  EXPECT_EQ(requests, 1);
}

TEST_F(RestClientTest, RenewsItsCredentialsOnce) {
  Start([](const TestRequest& request, TestConnection& connection) {
    if (request.target == "/never" || request.headers.at("authorization") == "Bearer 1") {
      return connection.Reply(401, R"({"kind":"Status","message":"Unauthorized"})");
    }
    connection.Reply(200, request.headers.at("authorization"));
  });
  const auto response = Get();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "Bearer 2");
  EXPECT_EQ(Get("/never").status().code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(observer_.calls().size(), 4u);
}

TEST_F(RestClientTest, KeepsToItsRate) {
  RestOptions options;
  options.qps = 20;
  options.burst = 1;
  Start([](const TestRequest&, TestConnection& connection) { connection.Reply(200, "{}"); },
        options);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Get().ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, 190ms);
  EXPECT_GT(observer_.calls().back().limiter_wait, 0s);
}

TEST_F(RestClientTest, SaysWhenItsOwnRateLeavesNoTurn) {
  RestOptions options;
  options.qps = 0.1;
  options.burst = 1;
  options.deadline = 1s;
  Start([](const TestRequest&, TestConnection& connection) { connection.Reply(200, "{}"); },
        options);
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(Get().status().code(), StatusCode::kResourceExhausted);
}

TEST_F(RestClientTest, OpensNoMoreConnectionsThanAllowed) {
  RestOptions options;
  options.max_in_flight = 2;
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  Start(
      [&](const TestRequest&, TestConnection& connection) {
        most = std::max<int>(most, ++now);
        std::this_thread::sleep_for(5ms);
        --now;
        connection.Reply(200, "{}");
      },
      options);
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([this] { EXPECT_TRUE(Get().ok()); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(most, 2);
}

TEST_F(RestClientTest, ATurnThatEndsIsNotGivenToOneWhoSleeps) {
  RestOptions options;
  options.max_in_flight = 1;
  options.deadline = 60s;
  std::atomic<bool> held = false;
  std::atomic<bool> release = false;
  Start(
      [&](const TestRequest& request, TestConnection& connection) {
        if (request.target == "/sleep") return connection.Reply(429, "", "Retry-After: 40\r\n");
        if (request.target == "/hold") {
          held = true;
          while (!release) std::this_thread::sleep_for(1ms);
        }
        connection.Reply(200, "{}");
      },
      options);
  std::thread sleeper([this] { EXPECT_FALSE(Get("/sleep").ok()); });
  while (observer_.calls().empty()) std::this_thread::sleep_for(1ms);
  std::thread holder([this] { EXPECT_TRUE(Get("/hold").ok()); });
  while (!held) std::this_thread::sleep_for(1ms);
  const int asked = credentials_->asked();
  std::atomic<bool> answered = false;
  std::thread waiter([&] {
    EXPECT_TRUE(Get("/x").ok());
    answered = true;
  });
  while (credentials_->asked() == asked) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // lets `waiter` block; a shorter sleep could only hide a bug
  release = true;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!answered && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(answered);
  rest_->Stop();
  for (std::thread* thread : {&sleeper, &holder, &waiter}) thread->join();
}

TEST_F(RestClientTest, AsksWhetherItMayWriteWhenAllWaitingIsOver) {
  std::atomic<bool> leads = true;
  std::atomic<int> writes = 0;
  RestOptions options;
  options.qps = 20;
  options.burst = 1;
  options.max_in_flight = 1;
  options.may_write = [&leads] { return leads.load(); };
  Start(
      [&](const TestRequest& request, TestConnection& connection) {
        if (request.method == "GET") return connection.Reply(200, "{}");
        ++writes;
        // Leadership ends before the client retries the request.
        leads = false;
        connection.Reply(429, "", "Retry-After: 0\r\n");
      },
      options);
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    leads = true;
    writes = 0;
    const Status status = rest_->Call({method, "/x", "application/json", "{}"}).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << method << " " << status;
    EXPECT_EQ(writes, 1) << method;
    EXPECT_TRUE(Get().ok());  // the refused calls do not block later reads
  }
}

TEST_F(RestClientTest, ACompressedAnswerIsAnError) {
  Start([](const TestRequest&, TestConnection& connection) {
    connection.Reply(200, "\x1f\x8b", "Content-Encoding: gzip\r\n");
  });
  const Status status = Get().status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(Message(status).find("gzip"), std::string_view::npos);
}

TEST_F(RestClientTest, StopEndsThoseWhoWait) {
  std::atomic<bool> asked = false;
  Start([&asked](const TestRequest&, TestConnection& connection) {
    asked = true;
    connection.Reply(429, "", "Retry-After: 40\r\n");
  });
  std::thread stopper([&] {
    while (!asked) std::this_thread::sleep_for(1ms);
    rest_->Stop();
  });
  EXPECT_EQ(Get().status().code(), StatusCode::kCancelled);
  stopper.join();
  EXPECT_EQ(Get().status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace tfjob::kube
