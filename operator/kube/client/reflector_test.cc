// Tests what a reflector does with objects that cannot be read and with pages that are too long.
#include "operator/kube/client/reflector.h"

#include <gtest/gtest.h>

#include <deque>

#include "operator/kube/client/kube_client.h"
#include "operator/kube/doubles/call_log.h"
#include "operator/kube/doubles/fake_transport.h"
#include "operator/objects/custom_resource.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;

class OddReflectorTest : public ::testing::Test {
 protected:
  OddReflectorTest() {
    options_.rest.qps = 0;
    options_.watch.policy.backoff = {1ms, 5ms, 2.0, 0.0};
    options_.watch.seed = 1;
  }

  // Watches TFJobs until the sink has been called `count` times, and returns the calls. The server
  // sends the answers in order, and then repeats the last one.
  std::vector<std::string> Watch(std::deque<FakeAnswer> answers, size_t count) {
    {
      MutexLock lock(mutex_);
      answers_ = std::move(answers);
    }
    KubeClient client(std::make_unique<FakeTransport>(
                          [this](const HttpRequest& request) { return Serve(request); }),
                      NoCredentials(), options_);
    CallLog log;
    const auto subscription = client.Subscribe(Kind::kTFJob, "", {}, log);
    EXPECT_TRUE(subscription.ok()) << subscription.status();
    return log.Await(count);
  }

  std::vector<std::string> queries() {
    MutexLock lock(mutex_);
    return queries_;
  }

  KubeClientOptions options_;

 private:
  FakeAnswer Serve(const HttpRequest& request) {
    MutexLock lock(mutex_);
    queries_.push_back(request.target.substr(request.target.find('?')));
    FakeAnswer answer = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return answer;
  }

  Mutex mutex_;
  std::deque<FakeAnswer> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> queries_ ABSL_GUARDED_BY(mutex_);
};

std::string JobEvent(const char* type, const char* name, const char* version,
                     const std::string& spec) {
  return StrCat(R"({"type":")", type, R"(","object":{"metadata":{"name":")", name,
                R"(","resourceVersion":")", version, R"("},"spec":)", spec, "}}\n");
}

// An odd object must not end the stream, which must still deliver the other objects.
TEST_F(OddReflectorTest, AnOddObjectDoesNotEndTheStream) {
  std::string odd;
  for (int i = 0; i < 300; ++i) odd += "{\"x\":";
  odd += "1" + std::string(300, '}');
  std::vector<std::string> problems;
  options_.watch.pack = [&](Object object) {
    const auto job = client::As<objects::CustomResource>(object);
    problems.push_back(StrCat(job->metadata.name, ": ", Message(job->problem).substr(0, 6)));
    return object;
  };
  const char* const list_end =
      R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"3","annotations":{)"
      R"("k8s.io/initial-events-end":"true"}}}})"
      "\n";
  EXPECT_EQ(Watch({StreamOf({JobEvent("ADDED", "a", "1", "{}"), JobEvent("ADDED", "odd", "2", odd),
                             JobEvent("ADDED", "b", "3", "{}"), list_end,
                             JobEvent("MODIFIED", "odd", "4", odd),
                             JobEvent("MODIFIED", "a", "5", "{}")})},
                  3),
            (std::vector<std::string>{"replaced a odd b", "upserted odd", "upserted a"}));
  EXPECT_EQ(queries().size(), 1u);
  EXPECT_EQ(problems,
            (std::vector<std::string>{"a: ", "odd: spec.x", "b: ", "odd: spec.x", "a: "}));
}

TEST_F(OddReflectorTest, APageThatIsTooLongIsReadInHalves) {
  options_.watch.policy.streaming_list = false;
  options_.watch.policy.page_size = 2;
  options_.watch.max_page_bytes = 200;
  EXPECT_EQ(Watch({StreamOf({std::string(150, ' '), std::string(150, ' ')}),
                   Answer(200, R"({"metadata":{"resourceVersion":"5","continue":"x"},"items":[
                             {"metadata":{"name":"a"}}]})"),
                   Answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[
                             {"metadata":{"name":"b"}}]})"),
                   StreamOf({})},
                  1),
            std::vector<std::string>{"replaced a b"});
  std::vector<std::string> pages = queries();
  pages.resize(3);
  EXPECT_EQ(pages, (std::vector<std::string>{"?limit=2", "?limit=1", "?limit=1&continue=x"}));
}

}  // namespace
}  // namespace tfjob::kube
