// Implements one subscription at an API server: keeps a sink up to date with the objects of a kind,
// whatever happens to connections and servers. watch_state.h decides what to do next; this file has
// the thread, the streams and the decoding.
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
  // A longer list page is Unavailable. If the text of a refusal is longer, only its code counts.
  size_t max_page_bytes = size_t{256} << 20;
  size_t max_error_bytes = size_t{1} << 20;
  uint64_t seed = 0;  // for the jitter
};

// Its thread, `watch`, reads, decodes and calls the sink.
class Reflector : public client::Subscription {
 public:
  // `rest`, `sink` and `health` must outlive it. It reports its state to `health`.
  Reflector(RestClient& rest, WatchTarget target, ReflectorOptions options, client::WatchSink& sink,
            WatchHealth& health);
  // Cancels whatever is in progress and joins the thread.
  ~Reflector() override;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void Run();
  void Do(const WatchStep& step);
  void Wait(Duration time);
  void ReadPage(const WatchStep& step);
  void Probe(const WatchStep& step);
  void Watch(const WatchStep& step);
  // Sends the step's request. Null unless the answer is 200; its end is then already reported to
  // the state.
  std::unique_ptr<HttpStream> Open(const WatchStep& step, std::string_view method);
  // Reads the whole body; an error if it is longer than `most` or takes longer than the
  // options' `patience`.
  StatusOr<std::string> ReadAll(HttpStream& stream, size_t most);
  WatchEnd ReadEvents(HttpStream& stream, SteadyTime deadline);
  // An error ends the stream; `ended` then holds the reason for the state.
  Status OnLine(std::string_view line, WatchEnd& ended);
  void Take(WatchState::Action action, EventType type, client::Object object);
  // Called when a list is complete.
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
  const int64_t number_;  // this watch in health_
  const std::string path_;
  WatchState state_;         // only for the thread
  JsonDocument document_;    // only for the thread
  ListCollector collected_;  // only for the thread: a list in progress

  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  HttpStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the stream to cancel
  std::thread thread_;
};

}  // namespace tfjob::kube
