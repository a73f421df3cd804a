#include "operator/events/recorder.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::events {
namespace {

using objects::Kind;

const Logger kLog("events");

// The minimum time between two log lines about dropped events.
constexpr Duration kComplaint = 1min;

double Random() {
  thread_local std::mt19937_64 generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

RecorderOptions Complete(RecorderOptions options) {
  if (!options.uniform) options.uniform = Random;
  return options;
}

client::Key KeyOf(const Observation& observation) {
  const std::string& name_space = observation.event.involved.name_space;
  return {Kind::kEvent, name_space.empty() ? "default" : name_space, observation.name};
}

// Returns "TFJob ns/mnist" or "Node a".
std::string ObjectOf(const objects::Event& event) {
  const objects::ObjectReference& object = event.involved;
  const char* slash = object.name_space.empty() ? "" : "/";
  return StrCat(object.kind, " ", object.name_space, slash, object.name);
}

// Returns true if a retry may succeed because the error is not about the event itself.
bool IsPassing(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kResourceExhausted:
    case StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

Json WholeEvent(const Observation& observation) {
  Json event = objects::ToJson(observation.event, observation.last);
  event["metadata"]["name"] = observation.name;
  event["firstTimestamp"] = FormatTime(observation.first);
  event["count"] = observation.count;
  return event;
}

// Returns a patch with the members that may differ from those of the stored event.
Json EventPatch(const Observation& observation) {
  const Json event = WholeEvent(observation);
  Json patch = Json::object();
  for (const char* member : {"count", "lastTimestamp", "message"}) patch[member] = event[member];
  return patch;
}

}  // namespace

Recorder::Recorder(client::Client& client, RecorderOptions options)
    : client_(client), options_(Complete(std::move(options))), correlator_(options_.correlator) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
}

Recorder::~Recorder() {
  Stop(Duration(0));
}

void Recorder::Record(std::string name, objects::Event event) {
  const Time now = options_.clock->Now();
  MutexLock lock(mutex_);
  ++counters_.recorded;
  const bool routine = options_.routine && options_.routine(event);
  if (stopping_) {
    ++Dropped(routine);
    return;
  }
  Outgoing outgoing;
  const Verdict verdict = correlator_.Observe(std::move(name), event, now,
                                              options_.clock->Monotonic(), outgoing.observation);
  if (verdict == Verdict::kRepeated) ++counters_.merged;
  if (verdict == Verdict::kFiltered) ++counters_.filtered;
  if (verdict != Verdict::kSend) return;
  outgoing.routine = routine;
  outgoing.is_new = outgoing.observation.count == 1;
  Enqueue(std::move(outgoing));
}

void Recorder::Enqueue(Outgoing outgoing) {
  const std::string key = client::ToString(KeyOf(outgoing.observation));
  const auto found = waiting_.find(key);
  if (found != waiting_.end()) {
    // The event is already waiting, and will be sent with its latest state.
    ++counters_.merged;
    if (outgoing.observation.count > found->second.observation.count) {
      found->second.observation = std::move(outgoing.observation);
    }
    return;
  }
  const size_t room = outgoing.routine ? options_.queue - std::min(options_.queue, options_.reserve)
                                       : options_.queue;
  if (waiting_.size() >= room) return Overflow(outgoing);
  waiting_.emplace(key, std::move(outgoing));
  MakeReady(key);
  changed_.NotifyOne();
}

int64_t& Recorder::Dropped(bool routine) {
  return routine ? counters_.dropped_routine : counters_.dropped;
}

void Recorder::Overflow(const Outgoing& outgoing) {
  ++Dropped(outgoing.routine);
  if (outgoing.routine) return;
  ++overflowed_;
  const Duration now = options_.clock->Monotonic();
  if (complained_ && now - *complained_ < kComplaint) return;
  complained_ = now;
  const objects::Event& event = outgoing.observation.event;
  kLog.Warning("events dropped: too many are waiting to be sent",
               {{"events", std::exchange(overflowed_, 0)},
                {"waiting", waiting_.size()},
                {"object", ObjectOf(event)},
                {"reason", event.reason}});
}

void Recorder::MakeReady(const std::string& key) {
  (waiting_.at(key).routine ? routine_ : ready_).push_back(key);
}

std::optional<Recorder::Outgoing> Recorder::Take() {
  const Duration now = options_.clock->Monotonic();
  while (!later_.empty() && later_.begin()->first <= now) {
    MakeReady(later_.begin()->second);
    later_.erase(later_.begin());
  }
  std::deque<std::string>& next = ready_.empty() ? routine_ : ready_;
  if (next.empty()) return std::nullopt;
  const auto found = waiting_.find(next.front());
  next.pop_front();
  Outgoing outgoing = std::move(found->second);
  waiting_.erase(found);
  return outgoing;
}

std::optional<Duration> Recorder::Wait() {
  if (!ready_.empty() || !routine_.empty()) return Duration(0);
  if (later_.empty()) return std::nullopt;
  return std::max(Duration(0), later_.begin()->first - options_.clock->Monotonic());
}

Status Recorder::Send(const Outgoing& outgoing) {
  const Observation& observation = outgoing.observation;
  const auto create = [&] {
    return client_.Create(Kind::kEvent, WholeEvent(observation)).status();
  };
  const auto patch = [&] {
    return client_.Patch(KeyOf(observation), EventPatch(observation)).status();
  };
  if (outgoing.is_new) {
    const Status created = create();
    if (created.code() != StatusCode::kAlreadyExists) return created;
    return observation.count > 1 ? patch() : OkStatus();
  }
  const Status patched = patch();
  if (patched.code() != StatusCode::kNotFound) return patched;
  // The event was never stored, or it is so old that the server has deleted it.
  const Status created = create();
  if (created.code() != StatusCode::kAlreadyExists) return created;
  return Unavailable("the event was created meanwhile");
}

void Recorder::Settle(Outgoing outgoing, const Status& status) {
  if (status.ok()) {
    ++counters_.sent;
    return;
  }
  const objects::Event& event = outgoing.observation.event;
  if (status.code() == StatusCode::kCancelled) {  // the client was stopped; Stop() logs the total
    ++Dropped(outgoing.routine);
    ++cut_off_;
    return;
  }
  if (!IsPassing(status)) {
    ++counters_.refused;
    // FailedPrecondition means that the namespace is being deleted or the lease was lost. Either
    // can cause hundreds of these errors, so do not log them.
    if (status.code() == StatusCode::kFailedPrecondition) return;
    kLog.Warning("event refused", {{"object", ObjectOf(event)},
                                   {"reason", event.reason},
                                   {"event", event.message},
                                   {"error", status}});
    return;
  }
  if (++outgoing.tries >= options_.tries) {
    ++counters_.expired;
    kLog.Warning("event abandoned", {{"object", ObjectOf(event)},
                                     {"reason", event.reason},
                                     {"event", event.message},
                                     {"tries", outgoing.tries},
                                     {"error", status}});
    return;
  }
  ++counters_.retried;
  const double part = outgoing.tries == 1 ? options_.uniform() : 1;
  const auto delay =
      Duration(std::llround(static_cast<double>(options_.retry_period.count()) * part));
  const std::string key = client::ToString(KeyOf(outgoing.observation));
  // If a newer state of the event has been queued in the meantime, send that state instead.
  if (waiting_.emplace(key, std::move(outgoing)).second) {
    later_.emplace(options_.clock->Monotonic() + delay, key);
  }
}

bool Recorder::Deliver() {
  std::optional<Outgoing> outgoing;
  {
    MutexLock lock(mutex_);
    if (stopped_) return false;
    outgoing = Take();
    if (!outgoing) return false;
    ++sending_;
  }
  const Status status = Send(*outgoing);
  MutexLock lock(mutex_);
  --sending_;
  Settle(*std::move(outgoing), status);
  changed_.NotifyAll();
  return true;
}

bool Recorder::Step() {
  return Deliver();
}

void Recorder::Work() {
  SetThreadName("events");
  while (true) {
    if (Deliver()) continue;
    MutexLock lock(mutex_);
    if (stopped_) return;
    const std::optional<Duration> wait = Wait();
    if (!wait) {
      changed_.Wait(mutex_);
    } else if (*wait > Duration(0)) {
      changed_.WaitFor(mutex_, *wait);
    }
  }
}

void Recorder::Stop(Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    // Do not wait for events whose retry is pending, because they have already failed.
    while (!threads_.empty() && (!ready_.empty() || !routine_.empty() || sending_ > 0) &&
           changed_.WaitUntil(mutex_, deadline)) {
    }
    stopped_ = true;
    for (const auto& [key, outgoing] : waiting_) ++Dropped(outgoing.routine);
    cut_off_ += static_cast<int64_t>(waiting_.size());
    waiting_.clear();
    ready_.clear();
    routine_.clear();
    later_.clear();
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  MutexLock lock(mutex_);
  if (cut_off_ > 0)
    kLog.Warning("events not sent before the recorder stopped", {{"events", cut_off_}});
  cut_off_ = 0;
}

Counters Recorder::counters() {
  MutexLock lock(mutex_);
  Counters counters = counters_;
  counters.waiting = waiting_.size() + static_cast<size_t>(sending_);
  return counters;
}

}  // namespace tfjob::events
