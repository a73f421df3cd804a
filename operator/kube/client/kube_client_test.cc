#include "operator/kube/client/kube_client.h"

#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "operator/kube/doubles/fake_transport.h"
#include "operator/objects/pod.h"

namespace tfjob::kube {
namespace {

using client::Key;
using client::Object;
using objects::Kind;

constexpr char kPod[] =
    R"({"kind":"Pod","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7"}})";

// Records the requests. Returns the answers in order, and then repeats the last one.
class Requests {
 public:
  explicit Requests(std::deque<FakeAnswer> answers) : answers_(std::move(answers)) {}
  FakeAnswer operator()(const HttpRequest& request) {
    MutexLock lock(mutex_);
    lines_.push_back(StrCat(request.method, " ", request.target));
    last_ = request;
    FakeAnswer answer = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return answer;
  }
  std::vector<std::string> lines() {
    MutexLock lock(mutex_);
    return lines_;
  }
  HttpRequest last() {
    MutexLock lock(mutex_);
    return last_;
  }

 private:
  Mutex mutex_;
  std::deque<FakeAnswer> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  HttpRequest last_ ABSL_GUARDED_BY(mutex_);
};

class NoToken : public Credentials {
 public:
  StatusOr<RequestCredentials> Get() override { return RequestCredentials(); }
  void Unauthorized(const RequestCredentials&) override {}
};

KubeClientOptions QuickOptions() {
  KubeClientOptions options;
  options.rest.qps = 0;
  options.watch.policy.backoff = {1ms, 5ms, 2.0, 0.0};
  options.watch.policy.shortest_watch = 0s;
  options.watch.max_event_bytes = 1000;
  options.watch.seed = 1;
  return options;
}

class KubeClientTest : public ::testing::Test {
 protected:
  void Serve(std::deque<FakeAnswer> answers, KubeClientOptions options = QuickOptions()) {
    requests_ = std::make_unique<Requests>(std::move(answers));
    client_ = std::make_unique<KubeClient>(
        std::make_unique<FakeTransport>(
            [this](const HttpRequest& request) { return (*requests_)(request); }),
        std::make_shared<NoToken>(), options);
  }

  std::unique_ptr<Requests> requests_;
  std::unique_ptr<KubeClient> client_;
};

TEST_F(KubeClientTest, FindsThePathsOfAllKinds) {
  Serve({Answer(200, R"({"metadata":{"name":"a"}})")});
  for (const Kind kind : {Kind::kTFJob, Kind::kPod, Kind::kService, Kind::kConfigMap, Kind::kEvent,
                          Kind::kPodGroup, Kind::kCoschedulingPodGroup, Kind::kLease}) {
    EXPECT_TRUE(client_->Get({kind, "ns", "a"}).ok());
  }
  EXPECT_TRUE(client_->Get({Kind::kNode, "", "n"}).ok());
  const std::vector<std::string> expected = {
      "GET /apis/kubeflow.org/v1/namespaces/ns/tfjobs/a",
      "GET /api/v1/namespaces/ns/pods/a",
      "GET /api/v1/namespaces/ns/services/a",
      "GET /api/v1/namespaces/ns/configmaps/a",
      "GET /api/v1/namespaces/ns/events/a",
      "GET /apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/a",
      "GET /apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups/a",
      "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/a",
      "GET /api/v1/nodes/n"};
  EXPECT_EQ(requests_->lines(), expected);
}

TEST_F(KubeClientTest, WritesAsTheApiWants) {
  Serve({Answer(201, kPod)});
  const Json pod = *ParseJson(kPod, "pod");
  const auto created = client_->Create(Kind::kPod, pod);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(client::MetadataOf(*created).uid, "u");
  EXPECT_EQ(requests_->last().content_type, "application/json");
  EXPECT_EQ(*ParseJson(requests_->last().body, "body"), pod);
  EXPECT_TRUE(client_->Update(Kind::kPod, pod).ok());
  EXPECT_TRUE(client_->UpdateStatus(Kind::kPod, pod).ok());
  EXPECT_TRUE(client_->Patch({Kind::kPod, "ns", "a"}, {{"x", 1}}).ok());
  EXPECT_EQ(requests_->last().content_type, "application/merge-patch+json");
  client::DeleteOptions options;
  options.uid = "u";
  options.grace_period_seconds = 0;
  EXPECT_TRUE(client_->Delete({Kind::kPod, "ns", "a"}, options).ok());
  EXPECT_EQ(*ParseJson(requests_->last().body, "body"),
            *ParseJson(R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,
                           "preconditions":{"uid":"u"},"propagationPolicy":"Background"})",
                       "expected"));
  const std::vector<std::string> expected = {
      "POST /api/v1/namespaces/ns/pods", "PUT /api/v1/namespaces/ns/pods/a",
      "PUT /api/v1/namespaces/ns/pods/a/status", "PATCH /api/v1/namespaces/ns/pods/a",
      "DELETE /api/v1/namespaces/ns/pods/a"};
  EXPECT_EQ(requests_->lines(), expected);
}

TEST_F(KubeClientTest, RefusesObjectsWithoutNameOrNamespace) {
  Serve({Answer(201, kPod)});
  for (const char* text : {R"({})", R"({"metadata":{"name":"a"}})", R"({"metadata":{"name":7}})",
                           R"({"metadata":{"namespace":"ns"}})"}) {
    EXPECT_EQ(client_->Create(Kind::kPod, *ParseJson(text, "pod")).status().code(),
              StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_FALSE(client_->Patch({Kind::kPod, "ns", "a"}, Json::array()).ok());
  EXPECT_TRUE(requests_->lines().empty());
}

TEST_F(KubeClientTest, SaysWhatWasTriedAndWhatTheServerSaid) {
  Serve({Answer(409, R"({"kind":"Status","reason":"AlreadyExists","message":"there is one"})")});
  const Status status = client_->Create(Kind::kPod, *ParseJson(kPod, "pod")).status();
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Message(status), "create Pod ns/a: there is one");
}

TEST_F(KubeClientTest, ListsPageByPageSorted) {
  Serve({Answer(200, R"({"metadata":{"resourceVersion":"5","continue":"a b"},"items":[
                         {"metadata":{"name":"b","namespace":"x"}},
                         {"metadata":{"name":"a","namespace":"x-y"}}]})"),
         Answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[
                         {"metadata":{"name":"a","namespace":"x"}}]})")});
  const auto list = client_->List(Kind::kPod, "", {{"k", "v"}});
  ASSERT_TRUE(list.ok()) << list.status();
  std::string names;
  for (const Object& object : *list) {
    names +=
        StrCat(client::MetadataOf(object).name_space, "/", client::MetadataOf(object).name, " ");
  }
  EXPECT_EQ(names, "x/a x/b x-y/a ");
  const std::vector<std::string> expected = {
      "GET /api/v1/pods?labelSelector=k%3Dv&limit=500",
      "GET /api/v1/pods?labelSelector=k%3Dv&limit=500&continue=a%20b"};
  EXPECT_EQ(requests_->lines(), expected);
}

TEST_F(KubeClientTest, ListsAllAtOnceWhenThePagesExpire) {
  Serve(
      {Answer(200, R"({"metadata":{"resourceVersion":"5","continue":"x"},"items":[
                         {"metadata":{"name":"old"}}]})"),
       Answer(410, R"({"kind":"Status","code":410,"message":"expired"})"),
       Answer(200, R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]})")});
  const auto list = client_->List(Kind::kPod, "ns", {});
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(client::MetadataOf(list->front()).name, "a");
  EXPECT_EQ(requests_->lines().back(), "GET /api/v1/namespaces/ns/pods");
}

constexpr char kGroups[] =
    R"({"groups":[{"name":"scheduling.k8s.io","versions":[
        {"groupVersion":"scheduling.k8s.io/v1"},{"groupVersion":"scheduling.k8s.io/v1alpha2"},
        {"groupVersion":"scheduling.k8s.io/v1beta1"}]}]})";

TEST_F(KubeClientTest, FindsTheVersionThatTheServerHas) {
  // The server has v1beta1, but with other resources.
  Serve({Answer(200, kGroups), Answer(200, R"({"resources":[{"name":"priorityclasses"}]})"),
         Answer(200, R"({"resources":[{"name":"podgroups"},{"name":"workloads"}]})"),
         Answer(200, R"({"metadata":{"name":"a"}})")});
  EXPECT_TRUE(client_->Get({Kind::kWorkload, "ns", "a"}).ok());
  EXPECT_TRUE(client_->Get({Kind::kWorkload, "ns", "a"}).ok());
  const std::string path = "GET /apis/scheduling.k8s.io/v1alpha2/namespaces/ns/workloads/a";
  const std::vector<std::string> expected = {"GET /apis", "GET /apis/scheduling.k8s.io/v1beta1",
                                             "GET /apis/scheduling.k8s.io/v1alpha2", path, path};
  EXPECT_EQ(requests_->lines(), expected);
}

TEST_F(KubeClientTest, SaysWhenTheServerDoesNotServeAKind) {
  Serve({Answer(200, R"({"groups":[]})")});
  EXPECT_EQ(client_->ApiVersion(Kind::kPodGroup).status().code(), StatusCode::kNotFound);
  Serve({Answer(200, R"({"groups":[]})"), Answer(200, R"({"resources":[{"name":"pods"}]})")});
  EXPECT_EQ(*client_->ApiVersion(Kind::kPod), "v1");
  Serve({Answer(503, "")});
  EXPECT_EQ(client_->ApiVersion(Kind::kPod).status().code(), StatusCode::kUnavailable);
}

// Create returns NotFound if the API group is not installed, although the 404 names no object.
TEST_F(KubeClientTest, SaysWhenWhatItCreatesIsNotInstalled) {
  const Json group = {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}};
  Serve({Answer(404, "404 page not found"), Answer(200, R"({"groups":[]})")});
  EXPECT_EQ(client_->Create(Kind::kPodGroup, group).status().code(), StatusCode::kNotFound);
  Serve({Answer(404, "404 page not found"), Answer(503, "")});
  EXPECT_EQ(client_->Create(Kind::kPodGroup, group).status().code(), StatusCode::kUnavailable);
  for (const Kind kind : {Kind::kWorkload, Kind::kNativePodGroup}) {  // disabled in the meantime
    Serve({Answer(200, kGroups),
           Answer(200, R"({"resources":[{"name":"podgroups"},{"name":"workloads"}]})"),
           Answer(404, "404 page not found"), Answer(200, R"({"groups":[]})")});
    EXPECT_EQ(client_->Create(kind, group).status().code(), StatusCode::kNotFound);
  }
}

// Records the calls to the sink as notes such as "replaced a b", "upserted a" and "deleted a".
class NotingSink : public client::WatchSink {
 public:
  void OnReplaced(std::vector<Object> objects) override {
    std::string note = "replaced";
    for (const Object& object : objects) note += " " + client::MetadataOf(object).name;
    Note(note);
  }
  void OnUpserted(Object object) override {
    Note(StrCat("upserted ", client::MetadataOf(object).name));
  }
  void OnDeleted(Object object) override {
    Note(StrCat("deleted ", client::MetadataOf(object).name));
  }
  // Waits at most 10 s for `count` notes, and returns all notes.
  std::vector<std::string> Await(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    MutexLock lock(mutex_);
    while (notes_.size() < count && changed_.WaitUntil(mutex_, deadline)) {
    }
    return notes_;
  }

 private:
  void Note(std::string note) {
    MutexLock lock(mutex_);
    notes_.push_back(std::move(note));
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
};

std::string Event(const std::string& type, const std::string& name, const std::string& version,
                  const std::string& more = "") {
  return StrCat(R"({"type":")", type, R"(","object":{"kind":"Pod","metadata":{"name":")", name,
                R"(","resourceVersion":")", version, R"(")", more, "}}}\n");
}
std::string ListEnd(const std::string& version) {
  return Event("BOOKMARK", "", version, R"(,"annotations":{"k8s.io/initial-events-end":"true"})");
}

class ReflectorTest : public KubeClientTest {
 protected:
  // Subscribes, waits for `count` notes and returns them. Leaves the requests in requests_.
  std::vector<std::string> Watch(std::deque<FakeAnswer> answers, size_t count,
                                 KubeClientOptions options = QuickOptions()) {
    Serve(std::move(answers), options);
    NotingSink sink;
    auto subscription = client_->Subscribe(Kind::kPod, "ns", {}, sink);
    EXPECT_TRUE(subscription.ok()) << subscription.status();
    return sink.Await(count);
  }
  // Returns the beginning of the query in request `n`, counted from 0.
  std::string Query(size_t n) {
    const std::string line = requests_->lines().at(n);
    return line.substr(line.find('?'), 30);
  }
};

TEST_F(ReflectorTest, StreamsTheListAndThenTheChanges) {
  const auto notes =
      Watch({StreamOf({Event("ADDED", "b", "2"), Event("ADDED", "a", "1") + ListEnd("3"),
                       Event("ADDED", "c", "4").substr(0, 20), Event("ADDED", "c", "4").substr(20),
                       Event("DELETED", "a", "5")})},
            3);
  EXPECT_EQ(notes, (std::vector<std::string>{"replaced b a", "upserted c", "deleted a"}));
  EXPECT_EQ(requests_->lines().size(), 1u);
}

TEST_F(ReflectorTest, ListsInPagesAndWatchesFromThere) {
  const auto notes = Watch(
      {Answer(422, R"({"kind":"Status","message":"no sendInitialEvents"})"),
       Answer(200, R"({"metadata":{"resourceVersion":"5","continue":"x"},"items":[
                       {"metadata":{"name":"a"}}]})"),
       Answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"b"}}]})"),
       StreamOf({Event("MODIFIED", "a", "6")})},
      2);
  EXPECT_EQ(notes, (std::vector<std::string>{"replaced a b", "upserted a"}));
  EXPECT_EQ(Query(2), "?limit=500&continue=x");
  EXPECT_NE(requests_->lines().at(3).find("resourceVersion=5&"), std::string::npos);
}

TEST_F(ReflectorTest, APageThatIsReadAgainBelongsToTheSameList) {
  for (const FakeAnswer& failed :
       {Answer(503, ""), Answer(429, ""), Answer(403, R"({"kind":"Status","message":"no"})"),
        StreamOf({"{\"metadata\":"}, FakeAnswer::End::kBroken)}) {
    KubeClientOptions options = QuickOptions();
    options.watch.policy.streaming_list = false;
    const auto notes = Watch(
        {Answer(200, R"({"metadata":{"resourceVersion":"5","continue":"x"},"items":[
                         {"metadata":{"name":"a"}}]})"),
         failed,
         Answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"b"}}]})"),
         StreamOf({})},
        1, options);
    EXPECT_EQ(notes, std::vector<std::string>{"replaced a b"});
    EXPECT_EQ(Query(2), "?limit=500&continue=x");
  }
}

TEST_F(ReflectorTest, NothingIsLeftOfAListThatIsReadFromItsBeginning) {
  KubeClientOptions options = QuickOptions();
  options.watch.policy.streaming_list = false;
  const FakeAnswer first = Answer(200, R"({"metadata":{"resourceVersion":"5","continue":"x"},
                                           "items":[{"metadata":{"name":"a"}}]})");
  const auto notes = Watch(
      {first, Answer(410, R"({"kind":"Status","code":410,"message":"expired"})"),
       Answer(200, R"({"metadata":{"resourceVersion":"6"},"items":[{"metadata":{"name":"b"}}]})"),
       StreamOf({})},
      1, options);
  EXPECT_EQ(notes, std::vector<std::string>{"replaced b"});
}

TEST_F(ReflectorTest, AStreamingListThatBrokeIsAskedForAgain) {
  const auto notes = Watch({StreamOf({Event("ADDED", "a", "1")}, FakeAnswer::End::kBroken),
                            StreamOf({Event("ADDED", "b", "2"), ListEnd("3")})},
                           1);
  EXPECT_EQ(notes, std::vector<std::string>{"replaced b"});
}

TEST_F(ReflectorTest, AServerThatNeverEndsAStreamingListIsReadInPages) {
  KubeClientOptions options = QuickOptions();
  options.watch.policy.patience = 20ms;
  const auto notes = Watch(
      {StreamOf({Event("ADDED", "a", "1")}),
       Answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"b"}}]})"),
       StreamOf({})},
      1, options);
  EXPECT_EQ(notes, std::vector<std::string>{"replaced b"});
  EXPECT_EQ(Query(1), "?limit=500");
}

TEST_F(ReflectorTest, ProbesAndGoesOnAfterACleanEndAndABrokenOne) {
  const FakeAnswer known = Answer(200, R"({"metadata":{"resourceVersion":"9"},"items":[]})");
  const auto notes =
      Watch({StreamOf({ListEnd("3"), Event("ADDED", "a", "4")}, FakeAnswer::End::kClean), known,
             StreamOf({Event("ADDED", "b", "5")}, FakeAnswer::End::kBroken), known,
             StreamOf({Event("ADDED", "c", "6")})},
            4);
  EXPECT_EQ(notes,
            (std::vector<std::string>{"replaced", "upserted a", "upserted b", "upserted c"}));
  EXPECT_EQ(Query(1), "?limit=1&resourceVersion=4&res");
  EXPECT_NE(requests_->lines().at(2).find("resourceVersion=4&"), std::string::npos);
  EXPECT_EQ(Query(3), "?limit=1&resourceVersion=5&res");
  EXPECT_NE(requests_->lines().at(4).find("resourceVersion=5&"), std::string::npos);
}

constexpr char kExpired[] =
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
    "\"message\":\"too old resource version\"}}\n";

TEST_F(ReflectorTest, ListsAnewWhenItsVersionExpired) {
  const auto notes = Watch({StreamOf({Event("ADDED", "a", "1"), ListEnd("3"), kExpired}),
                            StreamOf({Event("ADDED", "b", "8"), ListEnd("9")})},
                           2);
  EXPECT_EQ(notes, (std::vector<std::string>{"replaced a", "replaced b"}));
}

TEST_F(ReflectorTest, ListsAnewWhenTheStoreWasPutBack) {
  const auto notes =
      Watch({StreamOf({Event("ADDED", "a", "50"), ListEnd("50")}, FakeAnswer::End::kBroken),
             Answer(504, R"({"kind":"Status","code":504,"reason":"Timeout","message":"m","details":{
                             "causes":[{"reason":"ResourceVersionTooLarge"}]}})"),
             StreamOf({ListEnd("20")})},
            2);
  EXPECT_EQ(notes, (std::vector<std::string>{"replaced a", "replaced"}));
}

TEST_F(ReflectorTest, ListsAnewAfterRubbish) {
  for (const std::string& rubbish :
       {std::string("{\"type\":\"ADDED\",\"object\"\n"), std::string("<html>\n"),
        std::string("{\"type\":\"RENAMED\",\"object\":{}}\n"), std::string(2000, 'x'),
        std::string("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xc3\x28\"}}}\n")}) {
    const auto notes = Watch({StreamOf({ListEnd("3"), rubbish}), StreamOf({ListEnd("4")})}, 2);
    EXPECT_EQ(notes, (std::vector<std::string>{"replaced", "replaced"})) << rubbish;
  }
}

TEST_F(ReflectorTest, HalfALineAtTheEndIsABrokenStream) {
  const auto notes = Watch({StreamOf({ListEnd("3"), "{\"type\":\"ADD"}, FakeAnswer::End::kClean),
                            Answer(200, R"({"metadata":{"resourceVersion":"3"},"items":[]})"),
                            StreamOf({Event("ADDED", "a", "4")})},
                           2);
  EXPECT_EQ(notes, (std::vector<std::string>{"replaced", "upserted a"}));
}

TEST_F(ReflectorTest, LeavesOutWhatDoesNotDecode) {
  const auto notes =
      Watch({StreamOf({Event("ADDED", "a", "1", R"(,"labels":7)"), ListEnd("3"),
                       Event("ADDED", "b", "4", R"(,"labels":7)"), Event("ADDED", "c", "5")})},
            2);
  EXPECT_EQ(notes, (std::vector<std::string>{"replaced", "upserted c"}));
}

TEST_F(ReflectorTest, TriesAgainWhateverTheServerAnswers) {
  const auto notes =
      Watch({Answer(403, R"({"kind":"Status","message":"forbidden"})"), Answer(404, "404"),
             Answer(500, ""), Answer(429, ""), StreamOf({}, FakeAnswer::End::kBroken),
             Answer(400, ""), Answer(503, ""), Answer(200, "no list"),
             Answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[]})"), StreamOf({})},
            1);
  EXPECT_EQ(notes, std::vector<std::string>{"replaced"});
}

TEST_F(ReflectorTest, ASilentStreamIsTakenForDead) {
  KubeClientOptions options = QuickOptions();
  options.watch.policy.watch_time = 20ms;
  options.watch.policy.margin = 10ms;
  const auto notes = Watch(
      {StreamOf({ListEnd("3")}), Answer(200, R"({"metadata":{"resourceVersion":"3"},"items":[]})"),
       StreamOf({Event("ADDED", "a", "4")})},
      2, options);
  EXPECT_EQ(notes, (std::vector<std::string>{"replaced", "upserted a"}));
}

TEST_F(ReflectorTest, TellsOfItsTroubleUntilItIsOver) {
  KubeClientOptions options = QuickOptions();
  const std::string forbidden = R"({"kind":"Status","message":"pods is forbidden"})";
  Serve({Answer(403, forbidden), Answer(403, forbidden), StreamOf({ListEnd("3")})}, options);
  NotingSink sink;
  {
    const auto subscription = client_->Subscribe(Kind::kPod, "ns", {}, sink);
    sink.Await(1);
    EXPECT_TRUE(client_->Troubles().empty());
  }
  // The permission to list is revoked while a watch is open. The stream then ends cleanly.
  Serve({StreamOf({ListEnd("3")}, FakeAnswer::End::kClean), Answer(403, forbidden)}, options);
  const auto subscription = client_->Subscribe(Kind::kPod, "ns", {}, sink);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  const auto refused = [&] {
    const std::vector<WatchTrouble> troubles = client_->Troubles();
    return troubles.size() == 1 && troubles[0].why.code() == StatusCode::kPermissionDenied;
  };
  while (!refused() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(refused());
  EXPECT_EQ(client_->Troubles()[0].kind, Kind::kPod);
  EXPECT_NE(Message(client_->Troubles()[0].why).find("pods is forbidden"), std::string::npos);
}

TEST_F(ReflectorTest, ReadsNoMoreOfAnAnswerThanTheLimit) {
  KubeClientOptions options = QuickOptions();
  options.watch.policy.streaming_list = false;
  options.watch.max_page_bytes = options.watch.max_error_bytes = 100;
  for (const int code : {200, 500}) {
    FakeAnswer answer = StreamOf({std::string(60, ' '), std::string(60, ' ')});
    answer.response.code = code;
    Serve({answer}, options);
    NotingSink sink;
    const auto subscription = client_->Subscribe(Kind::kPod, "ns", {}, sink);
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    std::string why;
    while (why.find("limit of 100 bytes") == why.npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << why;
      why = client_->Troubles().at(0).why.ToString();
    }
    EXPECT_TRUE(why.starts_with("UNAVAILABLE: ")) << why;
  }
}

TEST_F(ReflectorTest, EndsAtOnceWhereverItIs) {
  for (const FakeAnswer& answer :
       {StreamOf({}), StreamOf({ListEnd("3")}), Answer(500, ""),
        Answer(200, R"({"metadata":{"resourceVersion":"5","continue":"x"},"items":[]})")}) {
    KubeClientOptions options = QuickOptions();
    options.watch.policy.backoff.initial = 1h;
    options.watch.policy.backoff.maximum = 1h;
    Serve({answer}, options);
    NotingSink sink;
    auto subscription = client_->Subscribe(Kind::kPod, "", {}, sink);
    while (requests_->lines().empty()) std::this_thread::yield();
    const auto start = std::chrono::steady_clock::now();
    subscription->reset();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  }
}

}  // namespace
}  // namespace tfjob::kube
