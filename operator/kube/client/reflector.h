// One subscription at an API server: keeps a sink up to date with the objects of a kind, through
// whatever becomes of connections and servers. What is done next is decided in watch_state.h; here
// are the thread, the streams and the decoding.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "operator/client/client.h"
#include "operator/kube/client/list_collector.h"
#include "operator/kube/client/watch_health.h"
#include "operator/kube/client/watch_state.h"
#include "operator/kube/rest/rest_client.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {

struct WatchTarget {
  client::Kind kind = client::Kind::kPod;
  std::string api_version;
  std::string name_space;  // "": all
  client::LabelSelector selector;
};

struct ReflectorOptions {
  WatchPolicy policy;
  size_t max_line_bytes = size_t{16} << 20;
  // A longer page of a list is Unavailable. Of a refusal with a longer text the code alone counts.
  size_t max_page_bytes = size_t{256} << 20;
  size_t max_error_bytes = size_t{1} << 20;
  uint64_t seed = 0;  // of the jitter
};

// Its thread, `watch`, reads, decodes and calls the sink.
class Reflector : public client::Subscription {
 public:
  // `rest`, `sink` and `health`, which is told how it fares, must outlive it.
  Reflector(RestClient& rest, WatchTarget target, ReflectorOptions options, client::WatchSink& sink,
            WatchHealth& health);
  // Cancels what is under way and joins.
  ~Reflector() override;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void Run();
  void Do(const WatchStep& step);
  void Wait(Duration time);
  void ReadPage(const WatchStep& step);
  void Probe(const WatchStep& step);
  void Watch(const WatchStep& step);
  // The request of the step, answered with 200; else the state has been told.
  std::unique_ptr<HttpStream> Open(const WatchStep& step, std::string_view method);
  // The whole body, unless it is longer than `most`; waits for `patience` of the options.
  StatusOr<std::string> ReadAll(HttpStream& stream, size_t most);
  WatchEnd ReadEvents(HttpStream& stream, SteadyTime deadline);
  // An error ends the stream; `ended` tells the state why.
  Status OnLine(std::string_view line, WatchEnd& ended);
  void Take(WatchState::Action action, EventType type, client::Object object);
  // A whole list is there.
  void Replace();
  void End(const WatchEnd& end);
  void LogSkipped(const Status& why) const;

  bool Stopping();
  void SetStream(HttpStream* stream);
  Duration Now() const;

  RestClient& rest_;
  const WatchTarget target_;
  const ReflectorOptions options_;
  client::WatchSink& sink_;
  WatchHealth& health_;
  const int64_t number_;  // there
  const std::string path_;
  WatchState state_;         // of the thread
  JsonDocument document_;    // of the thread
  ListCollector collected_;  // of the thread: a list that goes on

  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  HttpStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // what to cancel
  std::thread thread_;
};

}  // namespace tfjob::kube
