// Implements a subscription to an API server: keeps a sink up to date with the objects of a kind,
// even if connections break and servers restart. watch_state.h decides what to do next; this file
// implements the thread, the streams and the decoding.
#pragma once

#include <memory>
#include <optional>
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
  objects::Kind kind = objects::Kind::kPod;
  std::string api_version;
  std::string name_space;  // "": all
  client::LabelSelector selector;
};

struct ReflectorOptions {
  WatchPolicy policy;
  size_t max_event_bytes = size_t{16} << 20;
  // A list page of more than max_page_bytes is requested again with half as many objects. If the
  // body of an error response exceeds max_error_bytes, only the HTTP code is used.
  size_t max_page_bytes = size_t{64} << 20;
  size_t max_error_bytes = size_t{1} << 20;
  uint64_t seed = 0;  // for the jitter
  // Converts every object before it is collected or passed to the sink; may be null. Called on the
  // thread of the watch.
  Packer pack;
};

// Keeps the sink up to date on a thread called `watch`, which reads and decodes the responses.
class Reflector : public client::Subscription {
 public:
  // `rest`, `sink` and `health` must outlive the reflector, which reports its state to `health`.
  Reflector(RestClient& rest, WatchTarget target, ReflectorOptions options, client::WatchSink& sink,
            WatchHealth& health);
  // Cancels the request in progress and joins the thread.
  ~Reflector() override;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void Run();
  void Do(const WatchStep& step);
  void Wait(Duration time);
  void ReadPage(const WatchStep& step);
  void Probe(const WatchStep& step);
  void Watch(const WatchStep& step);
  // Sends the step's request and returns the response without its body. If the request fails, or if
  // the response is compressed or its code is not 200, ends the step with End() and returns
  // nullopt. `method` is the method to report to the observer.
  std::optional<RestClient::Opened> Open(const WatchStep& step, std::string_view method);
  // Reads the whole body. Returns ResourceExhausted if the body is longer than `most`, and another
  // error if it breaks off or its transfer lasts longer than the policy's `patience`.
  StatusOr<std::string> ReadAll(HttpStream& stream, size_t most);
  WatchEnd ReadEvents(RestClient::Opened& watch, SteadyTime deadline);
  // Handles one event of a watch. An error ends the stream. If the event is an ERROR event, sets
  // `ended` to the result of EndOf().
  Status OnEvent(WatchEvent event, WatchEnd& ended);
  void Take(WatchState::Action action, EventType type, client::Object object);
  // Passes the complete list to the sink.
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
  const int64_t number_;  // identifies this watch in health_
  const std::string path_;
  WatchState state_;         // used only by the thread
  ListCollector collected_;  // used only by the thread; the list in progress

  Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  HttpStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the stream to cancel
  std::thread thread_;
};

}  // namespace tfjob::kube
