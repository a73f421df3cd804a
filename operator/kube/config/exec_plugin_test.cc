#include "operator/kube/config/exec_plugin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/base/fake_clock.h"

namespace tfjob::kube {
namespace {

constexpr char kV1[] = "client.authentication.k8s.io/v1";

std::string Credential(const std::string& status) {
  return StrCat("{\"apiVersion\": \"", kV1, "\", \"kind\": \"ExecCredential\", \"status\": {",
                status, "}}");
}

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Tests a plugin whose program is replaced by a function.
class ExecTest : public ::testing::Test {
 protected:
  ExecTest() {
    config_.where = "/k: users[0].user.exec";
    config_.command = "get-token";
    config_.api_version = kV1;
    options_.clock = &clock_;
    options_.environment = {"PATH=/bin", "A=old", "=odd"};
    options_.run = [this](const ProgramOptions& program) {
      ++runs_;
      program_ = program;
      return answer_ ? answer_() : StatusOr<std::string>(output_);
    };
  }

  Credentials& credentials() {
    if (credentials_ == nullptr) credentials_ = ExecCredentials(config_, options_);
    return *credentials_;
  }
  std::string Header() {
    const StatusOr<RequestCredentials> got = credentials().Get();
    return got.ok() ? got->authorization : std::string(Message(got.status()));
  }

  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  ExecConfig config_;
  ExecOptions options_;
  std::string output_ = Credential("\"token\": \"t\"");
  std::function<StatusOr<std::string>()> answer_;
  ProgramOptions program_;
  int runs_ = 0;
  std::shared_ptr<Credentials> credentials_;
};

TEST_F(ExecTest, RunsOnceWhenThereIsNoExpiry) {
  EXPECT_EQ(Header(), "Bearer t");
  clock_.Advance(1000h);
  EXPECT_EQ(Header(), "Bearer t");
  EXPECT_EQ(runs_, 1);
}

TEST_F(ExecTest, RunsAgainWhenTheCredentialHasExpired) {
  output_ = Credential("\"token\": \"a\", \"expirationTimestamp\": \"2026-11-21T10:30:00Z\"");
  EXPECT_EQ(Header(), "Bearer a");
  output_ = Credential("\"token\": \"b\", \"expirationTimestamp\": \"2026-11-21T11:30:00+00:00\"");
  clock_.Advance(59min);
  EXPECT_EQ(Header(), "Bearer a");
  clock_.Advance(1min);
  EXPECT_EQ(Header(), "Bearer b");
  EXPECT_EQ(runs_, 2);
}

TEST_F(ExecTest, ARefusalRefreshesOnceForEachCredential) {
  const RequestCredentials first = *credentials().Get();
  output_ = Credential("\"token\": \"u\"");
  for (int i = 0; i < 5; ++i) credentials().Unauthorized(first);
  EXPECT_EQ(Header(), "Bearer u");
  EXPECT_EQ(runs_, 2);
  credentials().Unauthorized(first);  // a late response to an old request
  EXPECT_EQ(Header(), "Bearer u");
  EXPECT_EQ(runs_, 2);
  credentials().Unauthorized(*credentials().Get());
  Header();
  EXPECT_EQ(runs_, 3);
}

TEST_F(ExecTest, AfterAFailureItRestsAndTellsTheSameAgain) {
  answer_ = [] { return FailedPrecondition("it exited with code 1: no network"); };
  const std::string error = Header();
  EXPECT_EQ(error,
            "/k: users[0].user.exec: the program \"get-token\": it exited with code 1: no network");
  EXPECT_EQ(Header(), error);
  EXPECT_EQ(runs_, 1);
  clock_.Advance(5s);
  answer_ = nullptr;
  EXPECT_EQ(Header(), "Bearer t");
  EXPECT_EQ(runs_, 2);
}

TEST_F(ExecTest, AFailedRefreshKeepsWhatHasNotExpired) {
  output_ = Credential("\"token\": \"a\", \"expirationTimestamp\": \"2026-11-21T10:30:00Z\"");
  const RequestCredentials first = *credentials().Get();
  credentials().Unauthorized(first);
  answer_ = [] { return FailedPrecondition("no"); };
  EXPECT_EQ(Header(), "Bearer a");
  clock_.Advance(1h);
  EXPECT_NE(Header().find("get-token"), std::string::npos);
}

TEST_F(ExecTest, TheProgramIsToldWhatItNeeds) {
  config_.arguments = {"--cluster", "x"};
  config_.environment = {{"A", "new"}, {"B", "b"}};
  config_.cluster_info = R"({"server": "https://s", "config": {"x": 1}})";
  options_.terminal = true;
  options_.timeout = 7s;
  Header();
  EXPECT_EQ(program_.arguments, (std::vector<std::string>{"get-token", "--cluster", "x"}));
  EXPECT_TRUE(Contains(program_.environment, "PATH=/bin"));
  EXPECT_TRUE(Contains(program_.environment, "A=new"));
  EXPECT_FALSE(Contains(program_.environment, "A=old"));
  EXPECT_TRUE(Contains(program_.environment, "B=b"));
  EXPECT_TRUE(
      Contains(program_.environment,
               StrCat("KUBERNETES_EXEC_INFO={\"apiVersion\":\"", kV1,
                      "\",\"kind\":\"ExecCredential\",\"spec\":{\"cluster\":{\"config\":{\"x\":1},"
                      "\"server\":\"https://s\"},\"interactive\":true}}")));
  EXPECT_TRUE(program_.interactive);
  EXPECT_EQ(program_.timeout, Duration(7s));
}

TEST_F(ExecTest, InteractiveModesFollowTheTerminal) {
  struct Case {
    InteractiveMode mode;
    bool terminal;
    bool runs;
    bool interactive;
  };
  const Case cases[] = {{InteractiveMode::kNever, true, true, false},
                        {InteractiveMode::kNever, false, true, false},
                        {InteractiveMode::kIfAvailable, true, true, true},
                        {InteractiveMode::kIfAvailable, false, true, false},
                        {InteractiveMode::kAlways, true, true, true},
                        {InteractiveMode::kAlways, false, false, false}};
  for (const Case& test : cases) {
    config_.interactive_mode = test.mode;
    options_.terminal = test.terminal;
    credentials_ = nullptr;
    runs_ = 0;
    const std::string header = Header();
    EXPECT_EQ(runs_ == 1, test.runs);
    if (test.runs) {
      EXPECT_EQ(program_.interactive, test.interactive);
    } else {
      EXPECT_NE(header.find("needs a terminal"), std::string::npos) << header;
    }
  }
}

TEST_F(ExecTest, ManyThreadsCauseOneRun) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  credentials();
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { good += Header() == "Bearer t"; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(runs_, 1);
}

TEST(ExecCredential, WhatIsNoneIsRefusedWithItsPath) {
  struct Case {
    std::string text;
    const char* part;
  };
  const Case cases[] = {
      {"", "expected an ExecCredential as JSON"},
      {"s3cret", "expected an ExecCredential as JSON"},
      {"[]", "got kind \"\""},
      {"{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1beta1\"}",
       "got kind \"ExecCredential\" of \"client.authentication.k8s.io/v1beta1\""},
      {"{\"kind\": \"Secret\", \"apiVersion\": \"client.authentication.k8s.io/v1\"}", "\"Secret\""},
      {Credential(""), "status: expected a token or a client certificate"},
      {Credential("\"token\": 7"), "status.token: expected a string"},
      {Credential("\"token\": \"s3cret \\n\""), "status.token: it contains spaces"},
      {Credential("\"clientKeyData\": \"s3cret\""), "expected both"},
      {Credential("\"clientCertificateData\": \"x\", \"clientKeyData\": \"s3cret\""),
       "status.clientCertificateData: expected a PEM certificate"},
      {Credential("\"token\": \"t\", \"expirationTimestamp\": \"soon\""),
       "status.expirationTimestamp"},
  };
  for (const Case& test : cases) {
    const Status status = ParseExecCredential(test.text, kV1).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << test.text;
    EXPECT_NE(Message(status).find(test.part), std::string_view::npos) << status;
    EXPECT_EQ(Message(status).find("s3cret"), std::string_view::npos) << status;
  }
}

ProgramOptions Shell(const std::string& script) {
  ProgramOptions options;
  options.arguments = {"sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin", "NAME=value"};
  options.timeout = 30s;
  return options;
}

TEST(RunProgram, GivesWhatItPrints) {
  EXPECT_EQ(*RunProgram(Shell("echo \"$NAME\"; echo hidden >&2")), "value\n");
  EXPECT_EQ(RunProgram(Shell("head -c 300000 /dev/zero"))->size(), 300000u);
  EXPECT_EQ(*RunProgram(Shell("cat; true")), "");  // its input is empty
}

TEST(RunProgram, FailuresSayWhatWasSaid) {
  const Status failed = RunProgram(Shell("echo out; echo 'no such account' >&2; exit 3")).status();
  EXPECT_EQ(Message(failed), "it exited with code 3: no such account");
  EXPECT_EQ(Message(RunProgram(Shell("kill -9 $$")).status()), "it was killed by signal 9");
  const Status long_text =
      RunProgram(Shell("head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1")).status();
  EXPECT_LT(Message(long_text).size(), 1100u);
  ProgramOptions missing = Shell("");
  missing.arguments = {"/no/such/program"};
  EXPECT_EQ(RunProgram(missing).status().code(), StatusCode::kNotFound);
  missing.arguments = {"/etc"};
  EXPECT_FALSE(RunProgram(missing).ok());
  missing.arguments = {};
  EXPECT_FALSE(RunProgram(missing).ok());
}

TEST(RunProgram, TooMuchOutputIsCutOff) {
  ProgramOptions options = Shell("cat /dev/zero");
  options.max_output = 1000;
  EXPECT_EQ(RunProgram(options).status().code(), StatusCode::kFailedPrecondition);
}

TEST(RunProgram, WhoHangsIsEndedWithAllThatItStarted) {
  ProgramOptions options = Shell("echo waiting >&2; sleep 1000 & sleep 1000");
  options.timeout = 300ms;
  const auto start = std::chrono::steady_clock::now();
  const Status status = RunProgram(options).status();
  EXPECT_EQ(Message(status), "it did not end within 300ms: waiting");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(RunProgram, AChildThatKeepsTheOutputOpenIsNotWaitedFor) {
  EXPECT_EQ(*RunProgram(Shell("sleep 3 & echo done")), "done\n");
}

}  // namespace
}  // namespace tfjob::kube
