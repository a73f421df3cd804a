#include "operator/cli/verbs/testing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "operator/api/names.h"
#include "runtime/base/yaml.h"

namespace tfjob::cli::testing {
namespace {

std::string KeyOf(const LogRequest& request) {
  return StrCat(request.pod, "/", request.container, request.previous ? "/previous" : "");
}

// Returns the requested lines. In the texts that tests set, each line begins with a timestamp,
// which is removed unless `request` has timestamps set.
std::string Cut(const std::string& text, const LogRequest& request) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const size_t space = line.find(' ');
    const auto time = ParseTime(line.substr(0, space));
    if (time.ok() && request.since_time && TruncateToSeconds(*time) < *request.since_time) continue;
    if (time.ok() && !request.timestamps) line.erase(0, space + 1);
    lines.push_back(line);
  }
  const auto tail = static_cast<size_t>(request.tail_lines.value_or(INT32_MAX));
  if (lines.size() > tail) lines.erase(lines.begin(), lines.end() - static_cast<int64_t>(tail));
  std::string cut;
  for (const std::string& line : lines) cut += line + "\n";
  if (!cut.empty() && !text.ends_with('\n')) cut.pop_back();
  return cut;
}

Json Yaml(const std::string& text) {
  const auto documents = ParseYaml(text, "test");
  EXPECT_TRUE(documents.ok()) << documents.status() << "\n" << text;
  return documents.ok() && !documents->empty() ? documents->front() : Json::object();
}

}  // namespace

Status FakeLogs::Read(const LogRequest& request, const StopSource& stop,
                      const std::function<bool(std::string_view)>& take) {
  {
    MutexLock lock(mutex_);
    requests_.push_back(request);
  }
  const Status status = Pass(request, stop, take);
  MutexLock lock(mutex_);
  ++reads_ended_;
  return status;
}

Status FakeLogs::Pass(const LogRequest& request, const StopSource& stop,
                      const std::function<bool(std::string_view)>& take) {
  const std::string key = KeyOf(request);
  LogRequest rest = request;
  size_t given = 0;
  while (true) {
    std::string text;
    bool ended = false, broken = false;
    {
      MutexLock lock(mutex_);
      const auto found = logs_.find(key);
      if (found == logs_.end()) return NotFound("pods \"", request.pod, "\" not found");
      Log& log = found->second;
      if (Status once = std::exchange(log.refusal_of_one, OkStatus()); !once.ok()) return once;
      if (!log.refusal.ok()) return log.refusal;
      const size_t limit = std::exchange(log.break_after, std::string::npos);
      const std::string whole = log.text.substr(0, limit);
      text = Cut(whole.substr(std::min(given, whole.size())), rest);
      given = whole.size();
      broken = limit != std::string::npos;
      ended = log.ended || !request.follow;
    }
    if (!take(text)) return OkStatus();
    if (broken) return Unavailable("connection reset by peer");
    if (ended || stop.WaitFor(5ms)) return OkStatus();
    rest.tail_lines.reset();
  }
}

void FakeLogs::Set(const std::string& key, const std::string& text) {
  MutexLock lock(mutex_);
  logs_[key].text = text;
}

void FakeLogs::Append(const std::string& key, const std::string& text) {
  MutexLock lock(mutex_);
  logs_[key].text += text;
}

void FakeLogs::End(const std::string& key) {
  MutexLock lock(mutex_);
  logs_[key].ended = true;
}

void FakeLogs::BreakAfter(const std::string& key, size_t bytes) {
  MutexLock lock(mutex_);
  logs_[key].break_after = bytes;
}

void FakeLogs::Refuse(const std::string& key, const Status& status) {
  MutexLock lock(mutex_);
  logs_[key].refusal = status;
}

void FakeLogs::RefuseOnce(const std::string& key, const Status& status) {
  MutexLock lock(mutex_);
  logs_[key].refusal_of_one = status;
}

size_t FakeLogs::ReadsEnded() {
  MutexLock lock(mutex_);
  return reads_ended_;
}

std::vector<LogRequest> FakeLogs::Requests() {
  MutexLock lock(mutex_);
  return requests_;
}

FakeCluster::FakeCluster()
    : clock_(*ParseTime("2026-11-21T09:00:00Z")), store_({.clock = &clock_}) {}

void FakeCluster::Create(objects::Kind kind, const std::string& yaml) {
  const Json object = Yaml(yaml);
  const auto created = store_.Create(kind, object);
  ASSERT_TRUE(created.ok()) << created.status();
  if (!object.contains("status")) return;
  const auto written = store_.UpdateStatus(kind, object);
  ASSERT_TRUE(written.ok()) << written.status();
}

void FakeCluster::CreateJob(const std::string& name, const std::string& replicas,
                            const std::string& status, const std::string& policy) {
  Json specs = Yaml(replicas);
  for (auto& spec : specs) {
    spec["template"] = Yaml("{spec: {containers: [{name: tensorflow, image: trainer}]}}");
  }
  Json object = {{"apiVersion", api::kApiVersion},
                 {"kind", api::kKind},
                 {"metadata", {{"name", name}, {"namespace", name_space_}}},
                 {"spec", {{"runPolicy", Yaml(policy)}, {"tfReplicaSpecs", std::move(specs)}}}};
  if (status != "{}") object["status"] = Yaml(status);
  Create(objects::Kind::kTFJob, PrintJson(object));
}

void FakeCluster::WriteStatus(objects::Kind kind, const std::string& name,
                              const std::string& status) {
  Json object = Get(kind, name);
  object["metadata"].erase("resourceVersion");
  object["status"] = Yaml(status);
  const auto written = store_.UpdateStatus(kind, object);
  ASSERT_TRUE(written.ok()) << written.status();
}

void FakeCluster::CreatePod(const std::string& job, const std::string& type, int index,
                            const std::string& status, const std::string& node) {
  Json object = Yaml("{apiVersion: v1, kind: Pod, spec: {containers: [{name: tensorflow}]}}");
  const auto replica = *api::ParseReplicaType(type);
  const Json owner = Get(objects::Kind::kTFJob, job);
  object["metadata"] = {{"name", api::ReplicaName(job, replica, index)},
                        {"namespace", name_space_},
                        {"labels", api::ReplicaLabels(job, replica, index)},
                        {"ownerReferences",
                         {{{"apiVersion", api::kApiVersion},
                           {"kind", api::kKind},
                           {"name", job},
                           {"uid", owner["metadata"]["uid"]},
                           {"controller", true}}}}};
  if (!node.empty()) object["spec"]["nodeName"] = node;
  object["status"] = Yaml(status);
  Create(objects::Kind::kPod, PrintJson(object));
}

void FakeCluster::CreateEvent(objects::Kind kind, const std::string& about, const std::string& type,
                              const std::string& reason, const std::string& message, int count) {
  const Json object = Get(kind, about);
  const std::string now = FormatTime(clock_.Now());
  const Json event = {{"apiVersion", "v1"},
                      {"kind", "Event"},
                      {"metadata", {{"name", StrCat("e", ++events_)}, {"namespace", name_space_}}},
                      {"involvedObject",
                       {{"kind", std::string(client::Name(kind))},
                        {"name", about},
                        {"uid", object["metadata"]["uid"]}}},
                      {"type", type},
                      {"reason", reason},
                      {"message", message},
                      {"count", count},
                      {"lastTimestamp", now}};
  Create(objects::Kind::kEvent, PrintJson(event));
}

Json FakeCluster::Get(objects::Kind kind, const std::string& name) {
  const auto object = store_.GetJson({kind, name_space_, name});
  EXPECT_TRUE(object.ok()) << object.status();
  return object.value_or(Json::object());
}

int World::Call(std::unique_ptr<ClusterVerb> verb, const std::vector<std::string>& words) {
  CommandParser parser("tfjob", "");
  FlagSet& flags = parser.AddCommand(verb->name(), verb->help());
  verb->AddFlags(flags);
  std::vector<std::string> line = words;
  line.insert(line.begin(), verb->name());
  const auto command = parser.Parse(std::move(line), out);
  const Status status = command.ok() ? flags.RunChecks() : command.status();
  if (status.ok()) return verb->RunOn(context);
  view::PrintError(console, status);
  return view::kBadInput;
}

std::string World::Out() {
  std::string text = out.str();
  out.str("");
  return text;
}

std::string World::Err() {
  std::string text = err.str();
  err.str("");
  return text;
}

std::string Conditions(const std::vector<std::pair<std::string, std::string>>& conditions) {
  std::vector<std::string> texts;
  for (const auto& [type, status] : conditions) {
    texts.push_back(StrCat("{type: ", type, ", status: \"", status, "\", reason: TFJob", type,
                           ", message: \"TFJob ns/mnist is ", type,
                           ".\", lastTransitionTime: \"2026-11-21T09:00:00Z\", lastUpdateTime: "
                           "\"2026-11-21T09:00:00Z\"}"));
  }
  return StrCat("conditions: [", absl::StrJoin(texts, ", "), "]");
}

}  // namespace tfjob::cli::testing
