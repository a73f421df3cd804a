// Decides what a reflector does next (list, watch or wait) and what to do with each event. Pure:
// time and randomness are arguments, and nothing is sent from here.
//
//   empty ──paged or streaming list──► listed at a version ──watch──► … ──► watch again
//     ▲                                                │
//     └── 410, version unknown to the server, garbage ─┘   after a stream: probe, then watch again
//
// The rules are those of the reflectors of client-go and kube-rs, plus one: after a stream, however
// it ended, a probe asks whether the server still knows our version. A server whose store was
// restored to an earlier state ends its streams as if we had asked for it. Without the probe, a
// watch from a future version would never report what the restore changed.
#pragma once

#include <optional>
#include <string>

#include "operator/client/client.h"
#include "operator/kube/client/decode.h"
#include "runtime/base/backoff.h"
#include "runtime/base/clock.h"
#include "runtime/base/philox.h"

namespace tfjob::kube {

struct WatchPolicy {
  int page_size = 500;
  // Request the initial list as a stream, which takes less memory on the server and here, until the
  // server turns out not to support it or the list has broken off `broken_lists` times in a row.
  bool streaming_list = true;
  int broken_lists = 3;
  // The server is asked to end watches after [1, 2) times this; they count as dead `margin` later.
  Duration watch_time{300s};
  Duration margin{10s};
  // Longest silence during a list or before the answer to a request.
  Duration patience{60s};
  BackoffPolicy backoff{800ms, 30s, 2.0, 1.0};
  Duration backoff_reset{120s};  // without failures, after which the backoff starts again
  Duration shortest_watch{1s};   // one that ends sooner, without an event, has failed
};

struct WatchStep {
  enum class Kind {
    kWait,        // for `time`
    kListPage,    // one page of the list, starting at `continue_token`
    kStreamList,  // the list as a stream, which then continues as the watch
    kProbe,       // asks whether the server knows `resource_version`
    kWatch,       // from `resource_version` on
  };
  Kind kind = Kind::kWait;
  std::string resource_version;
  std::string continue_token;
  int page_size = 0;  // 0: the whole list at once
  Duration time{0};   // for streams: when the server is to end it
};

// Returns the query of the step's request.
std::string QueryOf(const WatchStep& step, const client::LabelSelector& selector);

// How a step ended.
struct WatchEnd {
  enum class Kind {
    kClean,        // the server ended the stream as requested
    kBroken,       // no connection, or it broke
    kSilent,       // nothing, or not the whole list, arrived in time
    kExpired,      // 410: the version, or the list's continuation, is too old
    kTooNew,       // the server does not know such a new version
    kThrottled,    // 429
    kUnsupported,  // 400, 422: the server has no streaming lists
    kRefused,      // any other code: no permission, no such resource, …
    kGarbage,      // not a list or not an event, or an ERROR event of unknown meaning
  };
  Kind kind = Kind::kClean;
  std::optional<Duration> retry_after;
  Status status;  // for people
};
// The end caused by a refusal's code or by an ERROR event.
WatchEnd EndOf(const ApiError& error, bool in_stream);

class WatchState {
 public:
  WatchState(const WatchPolicy& policy, uint64_t seed);

  WatchStep Next(Duration now);

  // Report the result of the last step. For a page or an event, the action says what to do with
  // its objects.
  enum class Action {
    kNothing,  // for bookmarks
    kDiscard,  // drop what was collected; start collecting with these objects
    kCollect,  // part of a list that continues
    kReplace,  // the last part of a list: pass the whole list to the sink
    kDeliver,  // a change
  };
  Action OnPage(const std::string& resource_version, const std::string& continue_token);
  Action OnEvent(const WatchEvent& event);
  void OnProbed();
  // A stream's answer has begun, with code 200.
  void OnOpened(Duration now);
  // The step has ended. For pages and probes, call it only if they failed.
  void OnEnd(const WatchEnd& end, Duration now);

  // Consecutive failures, for the log.
  int failures() const { return failures_; }
  // The version at which a watch continues; "": nothing is listed.
  const std::string& resource_version() const { return resource_version_; }
  // True between the first and the last page of a list: the collected objects are part of it.
  bool has_pages() const { return !continue_token_.empty(); }

 private:
  void StartOver();
  void ListBroke();
  void Fail(const std::optional<Duration>& retry_after, Duration now);
  Duration WatchTime();

  const WatchPolicy policy_;
  PhiloxStream random_;
  std::string resource_version_;  // "": to be listed
  bool streaming_;                // the server may support streaming lists
  int broken_lists_ = 0;          // streaming lists that broke off, in a row
  bool probe_ = false;            // before the next watch

  // For a list in progress.
  std::string continue_token_;
  bool collecting_ = false;
  bool whole_list_ = false;  // pages expired before the last one: request all at once

  // For the current stream.
  Duration opened_{0};
  bool open_ = false;
  bool saw_event_ = false;

  int failures_ = 0;
  Duration last_failure_{0};
  Duration not_before_{0};
};

}  // namespace tfjob::kube
