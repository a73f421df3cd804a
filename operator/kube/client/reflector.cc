#include "operator/kube/client/reflector.h"

#include <utility>

#include "operator/kube/client/decode_protobuf.h"
#include "operator/kube/client/event_reader.h"
#include "operator/kube/client/resource.h"
#include "operator/kube/rest/envelope.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::kube {
namespace {

using Action = WatchState::Action;

using client::Object;
using SteadyClock = std::chrono::steady_clock;

const Logger kWatchLog("kube");

// Failures are logged as warnings from this number of consecutive failures on.
constexpr int kWorrying = 3;

WatchEnd Broken(Status status) {
  const bool silent = status.code() == StatusCode::kDeadlineExceeded;
  return {silent ? WatchEnd::Kind::kSilent : WatchEnd::Kind::kBroken, std::nullopt,
          std::move(status)};
}
WatchEnd TooLong(const Status& status, int page_size) {
  return {WatchEnd::Kind::kTooLong, std::nullopt,
          Unavailable("a page of ", page_size == 0 ? "all" : StrCat(page_size),
                      " objects: ", Message(status))};
}
WatchEnd Garbage(Status status) {
  return {WatchEnd::Kind::kGarbage, std::nullopt, std::move(status)};
}

Duration TimeUntil(SteadyClock::time_point deadline) {
  return std::max(Duration(0), std::chrono::duration_cast<Duration>(deadline - SteadyClock::now()));
}

}  // namespace

Reflector::Reflector(RestClient& rest, WatchTarget target, ReflectorOptions options,
                     client::WatchSink& sink, WatchHealth& health)
    : rest_(rest),
      target_(std::move(target)),
      options_(options),
      sink_(sink),
      health_(health),
      number_(health.Begin(target_.kind, target_.name_space)),
      path_(CollectionPath(target_.kind, target_.api_version, target_.name_space)),
      state_(options.policy, options.seed) {
  thread_ = std::thread([this] {
    SetThreadName("watch");
    Run();
  });
}

Reflector::~Reflector() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (stream_ != nullptr) stream_->Cancel();
    stopped_.NotifyAll();
  }
  thread_.join();
  health_.End(number_);
}

bool Reflector::Stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

void Reflector::SetStream(HttpStream* stream) {
  MutexLock lock(mutex_);
  stream_ = stream;
  if (stopping_ && stream_ != nullptr) stream_->Cancel();
}

Duration Reflector::Now() const {
  return RealClock().Monotonic();
}

void Reflector::Run() {
  while (!Stopping()) Do(state_.Next(Now()));
}

void Reflector::Do(const WatchStep& step) {
  switch (step.kind) {
    case WatchStep::Kind::kWait:
      return Wait(step.time);
    case WatchStep::Kind::kListPage:
      return ReadPage(step);
    case WatchStep::Kind::kProbe:
      return Probe(step);
    case WatchStep::Kind::kStreamList:
    case WatchStep::Kind::kWatch:
      return Watch(step);
  }
}

void Reflector::Wait(Duration time) {
  const auto deadline = SteadyClock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_ && SteadyClock::now() < deadline) stopped_.WaitUntil(mutex_, deadline);
}

void Reflector::Replace() {
  health_.Works(number_);
  sink_.OnReplaced(collected_.Take());
}

void Reflector::End(const WatchEnd& end) {
  if (Stopping()) return;
  state_.OnEnd(end, Now());
  if (state_.resource_version().empty() && !state_.has_pages()) collected_.Clear();
  // Do not log Cancelled: the client was stopped, and this subscription is about to end.
  if (end.kind == WatchEnd::Kind::kClean || end.status.code() == StatusCode::kCancelled) return;
  health_.Fails(number_, end.status);
  const std::initializer_list<LogField> fields = {{"watch", path_}, {"error", end.status}};
  if (end.kind == WatchEnd::Kind::kUnsupported) {
    kWatchLog.Debug("no streaming list", fields);
  } else if (state_.failures() >= kWorrying) {
    kWatchLog.Warning("retrying the watch", fields);
  } else {
    kWatchLog.Info("retrying the watch", fields);
  }
}

void Reflector::LogSkipped(const Status& why) const {
  kWatchLog.Warning("skipping an object", {{"watch", path_}, {"error", why}});
}

std::optional<RestClient::Opened> Reflector::Open(const WatchStep& step, std::string_view method) {
  HttpRequest request{"GET", path_ + QueryOf(step, target_.selector), "", ""};
  if (HasProtobuf(target_.kind)) request.accept = kAcceptProtobuf;
  const Duration patience = options_.policy.patience;
  StatusOr<RestClient::Opened> opened = rest_.Open(
      std::move(request), method, patience, [this](HttpStream* stream) { SetStream(stream); });
  if (!opened.ok()) {
    End(Broken(opened.status()));
    return std::nullopt;
  }
  if (opened->head.code == 200 && opened->head.content_encoding.empty()) {
    state_.OnOpened(Now());
    if (step.kind == WatchStep::Kind::kWatch) health_.Works(number_);
    return *std::move(opened);
  }
  const auto body = ReadAll(*opened->stream, options_.max_error_bytes);
  SetStream(nullptr);
  if (opened->head.code == 200) {
    End(Garbage(Unavailable("the answer is compressed, which was not requested")));
  } else {
    opened->head.body = body.ok() ? *body : std::string(Message(body.status()));
    End(EndOf(ParseApiError(opened->head), false));
  }
  return std::nullopt;
}

StatusOr<std::string> Reflector::ReadAll(HttpStream& stream, size_t most) {
  const auto deadline = SteadyClock::now() + options_.policy.patience;
  std::string body;
  while (true) {
    ASSIGN_OR_RETURN(std::string bytes, stream.Read(TimeUntil(deadline)));
    if (bytes.empty()) return body;
    if (body.size() + bytes.size() > most) {
      return ResourceExhausted("the answer exceeds the limit of ", most, " bytes");
    }
    if (body.empty()) {
      body = std::move(bytes);
    } else {
      body += bytes;
    }
  }
}

void Reflector::ReadPage(const WatchStep& step) {
  const auto list = Open(step, "LIST");
  if (!list) return;
  StatusOr<std::string> body = ReadAll(*list->stream, options_.max_page_bytes);
  SetStream(nullptr);
  if (absl::IsResourceExhausted(body.status())) return End(TooLong(body.status(), step.page_size));
  if (!body.ok()) return End(Broken(body.status()));
  StatusOr<ListPage> page = DecodePage(target_.kind, *body, target_.api_version, options_.pack);
  if (!page.ok()) return End(Garbage(page.status()));
  *body = std::string();
  for (const Status& skipped : page->skipped) LogSkipped(skipped);
  health_.Progresses(number_);
  const Action action = state_.OnPage(page->resource_version, page->continue_token);
  if (step.continue_token.empty()) collected_.Clear();
  collected_.Add(std::move(page->objects));
  if (action == Action::kReplace && !Stopping()) Replace();
}

void Reflector::Probe(const WatchStep& step) {
  const auto list = Open(step, "LIST");
  if (!list) return;
  const auto body = ReadAll(*list->stream, options_.max_page_bytes);
  SetStream(nullptr);
  if (!body.ok()) return End(Broken(body.status()));
  state_.OnProbed();
}

void Reflector::Watch(const WatchStep& step) {
  auto watch = Open(step, "WATCH");
  if (!watch) return;
  const WatchEnd end = ReadEvents(*watch, SteadyClock::now() + step.time + options_.policy.margin);
  SetStream(nullptr);
  End(end);
}

WatchEnd Reflector::ReadEvents(RestClient::Opened& watch, SteadyTime deadline) {
  const auto listed_by = SteadyClock::now() + options_.policy.patience;
  const auto reader = MakeEventReader(target_.kind, target_.api_version, watch.head.content_type,
                                      options_.max_event_bytes);
  WatchEnd ended;
  while (!Stopping()) {
    const bool listed = !state_.resource_version().empty();
    const StatusOr<std::string> bytes =
        watch.stream->Read(TimeUntil(listed ? deadline : listed_by));
    if (!bytes.ok()) return Broken(bytes.status());
    if (bytes->empty()) {
      if (!reader->within_event()) return ended;
      return Broken(Unavailable("the watch ended within an event"));
    }
    const Status read =
        reader->Add(*bytes, [&](WatchEvent event) { return OnEvent(std::move(event), ended); });
    if (!read.ok()) return ended.kind == WatchEnd::Kind::kClean ? Garbage(read) : ended;
  }
  return ended;
}

Status Reflector::OnEvent(WatchEvent event, WatchEnd& ended) {
  if (event.type == EventType::kError) {
    ended = EndOf(event.error, true);
    return ended.status;
  }
  const Action action = state_.OnEvent(event);
  if (event.type != EventType::kBookmark && !event.object.ok()) {
    LogSkipped(event.object.status());
    if (action == Action::kDiscard) collected_.Clear();
    return OkStatus();
  }
  if (Stopping()) return Cancelled("the subscription ended");
  Object object = event.object.ok() ? *std::move(event.object) : Object();
  if (options_.pack && event.object.ok()) object = options_.pack(std::move(object));
  Take(action, event.type, std::move(object));
  return OkStatus();
}

void Reflector::Take(Action action, EventType type, Object object) {
  switch (action) {
    case Action::kNothing:
      break;
    case Action::kDiscard:
      collected_.Clear();
      [[fallthrough]];
    case Action::kCollect:
      collected_.Add(type, std::move(object));
      break;
    case Action::kReplace:
      Replace();
      break;
    case Action::kDeliver:
      if (type == EventType::kDeleted) {
        sink_.OnDeleted(std::move(object));
      } else {
        sink_.OnUpserted(std::move(object));
      }
      break;
  }
}

}  // namespace tfjob::kube
