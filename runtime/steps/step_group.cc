#include "runtime/steps/step_group.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/base/json.h"

namespace tfjob::steps {

// The announcement of another task.
struct StepGroup::Heard {
  int64_t number = 0;  // of the call, from 1
  std::string call, digest, error;
  int64_t examples = 0;
  bool connects = false;
  std::vector<int64_t> steps, counts;
};

namespace {

constexpr size_t kMostText = 1000;       // characters of a text in an announcement
constexpr size_t kMostBytes = 64 << 10;  // of the announcement of one task
constexpr int64_t kMostCount = int64_t{1} << 40;
constexpr char kEnd[] = "the end of its session";

std::string Shortened(std::string_view text) {
  return std::string(text.substr(0, kMostText));
}

std::string Written(const Announcement& own, int64_t number) {
  Json json = {
      {"number", number},        {"call", Shortened(own.call)}, {"digest", StrCat(own.digest)},
      {"steps", own.steps},      {"examples", own.examples},    {"counts", own.counts},
      {"connects", own.connects}};
  if (!own.error.ok()) {
    const std::string message(Message(own.error));
    json["error"] = message.empty() ? "an error without a message" : Shortened(message);
  }
  return PrintJson(json);
}

StatusOr<int64_t> CountOf(const JsonField& field, int64_t least) {
  ASSIGN_OR_RETURN(const int64_t count, field.Int());
  if (count < least || count > kMostCount)
    return field.Mismatch(StrCat("a number from ", least, " to ", kMostCount));
  return count;
}

StatusOr<std::vector<int64_t>> CountsOf(const JsonField& field, int64_t least) {
  std::vector<int64_t> counts;
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(counts.emplace_back(), CountOf(element, least));
  }
  return counts;
}

std::string CallOf(int64_t number, const std::string& task, const std::string& call) {
  return StrCat("call ", number, " of ", task, " is ", call);
}

constexpr char kSameOrder[] =
    "; all tasks of a job must make the same calls in the same order, with the same models, and "
    "with batches of the same types";

}  // namespace

StepGroup::StepGroup(std::unique_ptr<collectives::Communicator> communicator,
                     std::vector<std::string> tasks, std::function<void()> on_lost)
    : communicator_(std::move(communicator)),
      tasks_(std::move(tasks)),
      on_lost_(std::move(on_lost)) {}

Status StepGroup::Check(const Status& operation) {
  if (operation.ok()) return operation;
  if (broken_.ok()) {
    // This code cannot distinguish internal errors from errors of a program in another task.
    const StatusCode code = absl::IsDeadlineExceeded(operation) ? StatusCode::kDeadlineExceeded
                                                                : StatusCode::kUnavailable;
    broken_ = Status(
        code, StrCat("the tasks of the job can no longer train together: ", Message(operation),
                     "; start all of them again, and continue ", "from the last checkpoint"));
    if (on_lost_) on_lost_();
  }
  return broken_;
}

void StepGroup::Fail(const Status& error) {
  const std::string& task = tasks_[static_cast<size_t>(rank())];
  communicator_->Abort(Aborted(task, " has failed: ", Message(error)));
  if (broken_.ok()) {
    broken_ = FailedPrecondition("this task has failed in an earlier call, and the others do not ",
                                 "wait for it: ", Message(error));
  }
}

StatusOr<std::vector<StepGroup::Heard>> StepGroup::Exchange(const std::string& text) {
  const size_t most = kMostBytes * static_cast<size_t>(size());
  RETURN_IF_ERROR(Check(
      communicator_->AllGatherVariable(std::as_bytes(std::span(text)), most, received_, sizes_)));
  const char* at = reinterpret_cast<const char*>(received_.data());
  std::vector<Heard> heard;
  for (size_t rank = 0; rank < sizes_.size(); at += sizes_[rank++]) {
    const auto read = [&]() -> StatusOr<Heard> {
      ASSIGN_OR_RETURN(const Json json, ParseJson({at, sizes_[rank]}, "the announcement"));
      const JsonField field(json);
      Heard made;
      ASSIGN_OR_RETURN(made.number, field["number"].Int());
      ASSIGN_OR_RETURN(made.call, field["call"].String());
      ASSIGN_OR_RETURN(made.digest, field["digest"].String());
      ASSIGN_OR_RETURN(made.error, field["error"].StringOr(""));
      ASSIGN_OR_RETURN(made.connects, field["connects"].Bool());
      ASSIGN_OR_RETURN(made.examples, CountOf(field["examples"], 0));
      ASSIGN_OR_RETURN(made.steps, CountsOf(field["steps"], -1));
      ASSIGN_OR_RETURN(made.counts, CountsOf(field["counts"], 0));
      return made;
    };
    StatusOr<Heard> one = read();
    if (!one.ok()) return Check(Annotate(one.status(), tasks_[rank]));
    heard.push_back(*std::move(one));
  }
  return heard;
}

// Compares all announcements with that of rank 0, so all tasks get the same result.
Status StepGroup::Compare(const std::vector<Heard>& heard) const {
  const Heard& first = heard[0];
  for (size_t rank = 1; rank < heard.size(); ++rank) {
    const Heard& other = heard[rank];
    if (other.call != first.call || other.number != first.number) {
      return FailedPrecondition(CallOf(first.number, tasks_[0], first.call), ", but ",
                                CallOf(other.number, tasks_[rank], other.call), kSameOrder);
    }
    const std::string both =
        StrCat(CallOf(first.number, tasks_[0], first.call), ", as in ", tasks_[rank], ", but ");
    if (other.digest != first.digest || other.steps.size() != first.steps.size() ||
        other.counts.size() != first.counts.size()) {
      return FailedPrecondition(both, "the two differ in their operations, layers, optimizers or ",
                                "settings; start the same program in all tasks, with the same ",
                                "arguments and options");
    }
    for (size_t m = 0; m < first.steps.size(); ++m) {
      const bool differ = other.steps[m] != first.steps[m];
      if (!differ || other.steps[m] < 0 || first.steps[m] < 0) continue;
      return FailedPrecondition(both, "the model has made ", first.steps[m], " updates in ",
                                tasks_[0], " and ", other.steps[m], " in ", tasks_[rank],
                                kSameOrder);
    }
  }
  return OkStatus();
}

StatusOr<Agreed> StepGroup::Exchanged(const Announcement& own) {
  RETURN_IF_ERROR(broken_);
  ASSIGN_OR_RETURN(const std::vector<Heard> heard, Exchange(Written(own, ++calls_)));
  RETURN_IF_ERROR(own.error);
  for (size_t rank = 0; rank < heard.size(); ++rank) {
    if (heard[rank].error.empty()) continue;
    return Aborted(tasks_[rank], " could not take part in call ", calls_, ", ", heard[rank].call,
                   ": ", heard[rank].error);
  }
  broken_ = Compare(heard);
  RETURN_IF_ERROR(broken_);
  Agreed agreed;
  agreed.sends.resize(own.steps.size());
  agreed.counts.resize(own.counts.size());
  for (const Heard& one : heard) {
    agreed.examples += one.examples;
    if (one.examples > 0) ++agreed.tasks_with_examples;
    agreed.connects = agreed.connects || one.connects;
    for (size_t m = 0; m < one.steps.size(); ++m)
      agreed.sends[m] = agreed.sends[m] || one.steps[m] < 0;
    for (size_t i = 0; i < one.counts.size(); ++i) agreed.counts[i] += one.counts[i];
  }
  return agreed;
}

StatusOr<Agreed> StepGroup::Announce(const Announcement& own) {
  ASSIGN_OR_RETURN(Agreed agreed, Exchanged(own));
  if (agreed.examples > 0) return agreed;
  return InvalidArgument("expected examples in at least one of the ", size(), " tasks, got none");
}

Status StepGroup::Barrier() {
  return Exchanged({.call = "Barrier"}).status();
}

Status StepGroup::End() {
  return Exchanged({.call = kEnd}).status();
}

}  // namespace tfjob::steps
