// Decides what a reflector does next (list, probe, watch or wait) and what it does with each event.
// Pure: time and the random seed are arguments, and no requests are sent.
//
//   empty ──paged or streaming list──► listed at a version ──watch──► … ──► watch again
//     ▲                                                │
//     └── 410, version unknown to the server, garbage ─┘   after a stream: probe, then watch again
//
// The rules are those of the reflectors in client-go and kube-rs, plus one: after every stream,
// however it ended, a probe checks whether the server still knows the current version. When the
// store of a server is restored to an earlier state, the server may end its streams as if they had
// simply expired. Without the probe, a watch would then continue from a version in the future and
// would never report what the restore changed.
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
  // True to request the initial list as a stream, which needs less memory in the server and in this
  // process. The reflector changes to pages if the server does not support streaming lists, a
  // streaming list is not complete in time, or `broken_lists` streaming lists in a row break off.
  bool streaming_list = true;
  int broken_lists = 3;
  // Each watch requests that the server end it after a random time between `watch_time` and twice
  // `watch_time`. A watch that is still open `margin` after this time is considered dead.
  Duration watch_time{300s};
  Duration margin{10s};
  // How long to wait for the response to a request, for a page, or for a streaming list to be
  // complete.
  Duration patience{60s};
  BackoffPolicy backoff{800ms, 30s, 2.0, 1.0};
  Duration backoff_reset{120s};  // after this time without failures, the backoff starts over
  Duration shortest_watch{1s};   // a watch that ends sooner, without an event, has failed
};

struct WatchStep {
  enum class Kind {
    kWait,        // for `time`
    kListPage,    // one page of the list, starting at `continue_token`
    kStreamList,  // the list as a stream, which then continues as the watch
    kProbe,       // checks whether the server knows `resource_version`
    kWatch,       // from `resource_version` on
  };
  Kind kind = Kind::kWait;
  std::string resource_version;
  std::string continue_token;
  int page_size = 0;  // 0: the whole list in one response
  Duration time{0};   // how long to wait, or how long the server should keep the stream open
};

// Returns the query part of the step's request.
std::string QueryOf(const WatchStep& step, const client::LabelSelector& selector);

// Describes how a step ended.
struct WatchEnd {
  enum class Kind {
    kClean,        // the server ended the stream as requested
    kBroken,       // no connection, or it broke
    kSilent,       // no data arrived in time, or the list was not complete in time
    kTooLong,      // the page has more bytes than allowed
    kExpired,      // 410: the version, or the list's continuation, is too old
    kTooNew,       // the version is newer than any that the server knows
    kThrottled,    // 429
    kUnsupported,  // 400, 422: the server has no streaming lists
    kRefused,      // any other code: no permission, no such resource, …
    kGarbage,      // not a list or an event, or an ERROR event of unknown meaning
  };
  Kind kind = Kind::kClean;
  std::optional<Duration> retry_after;
  Status status;  // for logs
};
// Returns how `error` ends a step. `in_stream` is true if the error arrived in an ERROR event, and
// false if it arrived as an error response.
WatchEnd EndOf(const ApiError& error, bool in_stream);

class WatchState {
 public:
  WatchState(const WatchPolicy& policy, uint64_t seed);

  // Returns the next step. Call this again once the step has ended.
  WatchStep Next(Duration now);

  // The functions below report the results of the step that Next() returned last. For a page or an
  // event, the returned action says what to do with its objects.
  enum class Action {
    kNothing,  // for bookmarks
    kDiscard,  // discard the collected objects and start over with these
    kCollect,  // part of a list that continues
    kReplace,  // the list is complete: pass it to the sink
    kDeliver,  // a change: pass it to the sink
  };
  Action OnPage(const std::string& resource_version, const std::string& continue_token);
  Action OnEvent(const WatchEvent& event);
  void OnProbed();
  // Reports that a stream has started, with response code 200.
  void OnOpened(Duration now);
  // Reports that the step has ended. For pages and probes, call this only if they failed.
  void OnEnd(const WatchEnd& end, Duration now);

  // Returns the number of consecutive failures, for logs.
  int failures() const { return failures_; }
  // Returns the version from which a watch continues; "" if a list is needed first.
  const std::string& resource_version() const { return resource_version_; }
  // Returns true between the first and the last page of a list, while the collected objects are
  // still needed.
  bool has_pages() const { return !continue_token_.empty(); }

 private:
  void StartOver();
  void ListBroke();
  void Fail(const std::optional<Duration>& retry_after, Duration now);
  Duration WatchTime();

  const WatchPolicy policy_;
  PhiloxStream random_;
  std::string resource_version_;  // "": a list is needed first
  bool streaming_;                // the server may support streaming lists
  int broken_lists_ = 0;          // number of streaming lists in a row that broke off
  bool probe_ = false;            // a probe is needed before the next watch

  // The state of the list in progress.
  std::string continue_token_;
  bool collecting_ = false;
  bool whole_list_ = false;  // the pages expired before the last was read: request one big page
  int page_size_;            // the policy's, until a page of this size is too long

  // The state of the current stream.
  Duration opened_{0};
  bool open_ = false;
  bool saw_event_ = false;

  int failures_ = 0;
  Duration last_failure_{0};
  Duration not_before_{0};
};

}  // namespace tfjob::kube
