#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/client/contract.h"

namespace tfjob::client {

void RecordingSink::Note(std::string note) {
  MutexLock lock(mutex_);
  notes_.push_back(std::move(note));
}

void RecordingSink::OnReplaced(std::vector<Object> objects) {
  std::string note = "replaced";
  for (const Object& object : objects) note += StrCat(" ", MetadataOf(object).name);
  Note(note);
}

void RecordingSink::OnUpserted(Object object) {
  Note(StrCat("upserted ", MetadataOf(object).name));
}

void RecordingSink::OnDeleted(Object last_state) {
  Note(StrCat("deleted ", MetadataOf(last_state).name));
}

std::vector<std::string> RecordingSink::Notes() {
  MutexLock lock(mutex_);
  return notes_;
}

TEST_P(ContractTest, AWatchStartsWithTheListAndGoesOnWithChangesInOrder) {
  MustCreate(Kind::kService, Service("a"));
  RecordingSink sink;
  auto subscription = client().Subscribe(Kind::kService, world_->name_space(), {}, sink);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  Eventually([&] { return !sink.Notes().empty(); }, "the list");
  MustCreate(Kind::kService, Service("b"));
  const Json patch = {{"metadata", {{"labels", {{"k", "v"}}}}}};
  ASSERT_TRUE(client().Patch(KeyOf(Kind::kService, "a"), patch).ok());
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kService, "b"), {}).ok());
  const std::vector<std::string> expected = {"replaced a", "upserted b", "upserted a", "deleted b"};
  Eventually([&] { return sink.Notes().size() >= expected.size(); }, "all changes");
  EXPECT_EQ(sink.Notes(), expected);
}

TEST_P(ContractTest, AWatchByLabelSeesObjectsEnterAndLeave) {
  RecordingSink sink;
  auto subscription = client().Subscribe(Kind::kPod, world_->name_space(), {{"app", "x"}}, sink);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  Eventually([&] { return !sink.Notes().empty(); }, "the list");
  MustCreate(Kind::kPod, Pod("other", "y"));
  MustCreate(Kind::kPod, Pod("a", "y"));
  const auto label = [this](const char* app) {
    const Json patch = {{"metadata", {{"labels", {{"app", app}}}}}};
    ASSERT_TRUE(client().Patch(KeyOf(Kind::kPod, "a"), patch).ok());
  };
  label("x");
  label("y");
  label("x");
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kPod, "a"), {}).ok());
  const std::vector<std::string> expected = {"replaced", "upserted a", "deleted a", "upserted a",
                                             "deleted a"};
  // An API server may report a terminating pod before it reports the deletion.
  const auto seen = [&sink] {
    std::vector<std::string> notes = sink.Notes();
    notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
    return notes;
  };
  Eventually([&] { return seen().size() >= expected.size(); }, "all changes");
  EXPECT_EQ(seen(), expected);
}

TEST_P(ContractTest, AnEndedSubscriptionIsSilent) {
  RecordingSink sink;
  RecordingSink witness;
  auto ended = client().Subscribe(Kind::kService, world_->name_space(), {}, sink);
  auto running = client().Subscribe(Kind::kService, world_->name_space(), {}, witness);
  ASSERT_TRUE(ended.ok() && running.ok());
  Eventually([&] { return !sink.Notes().empty() && !witness.Notes().empty(); }, "the lists");
  ended->reset();
  MustCreate(Kind::kService, Service("a"));
  Eventually([&] { return witness.Notes().size() == 2; }, "the change");
  EXPECT_EQ(sink.Notes(), std::vector<std::string>{"replaced"});
}

TEST_P(ContractTest, AWatchSeesATerminatingPodBeforeItGoes) {
  RecordingSink sink;
  auto subscription = client().Subscribe(Kind::kPod, world_->name_space(), {}, sink);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  Eventually([&] { return !sink.Notes().empty(); }, "the list");
  MustCreate(Kind::kPod, Pod("a", "x", "node-1"));
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kPod, "a"), {}).ok());
  DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(client().Delete(KeyOf(Kind::kPod, "a"), now).ok());
  Eventually([&] { return !sink.Notes().empty() && sink.Notes().back() == "deleted a"; },
             "the deletion");
  // A server may report more states than these four.
  EXPECT_EQ(sink.Notes().front(), "replaced");
  EXPECT_GE(sink.Notes().size(), 4u);
}

}  // namespace tfjob::client
