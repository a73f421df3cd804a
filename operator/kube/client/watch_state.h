// What a reflector does next: lists, watches, waits, and what becomes of each event. Pure: time and
// randomness are arguments, nothing is sent from here.
//
//   empty ──list in pages, or a streaming list──► listed at a version ──watch──► … ──► a watch again
//     ▲                                                │
//     └── 410, version unknown to the server, rubbish ─┘   after a stream: probe, then watch again
//
// The rules are those of client-go's and kube-rs' reflectors, with one more: after a stream, however
// it ended, a probe asks whether the server still knows our version. A server whose store was put
// back to an earlier state ends streams as if we had asked for it, and would else tell a watch from
// the future nothing of what was put back.
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
  // Ask for the initial list as a stream, which costs the server and us less memory, until the
  // server turns out not to know it, or the list has broken off `broken_lists` times in a row.
  bool streaming_list = true;
  int broken_lists = 3;
  // Watches are asked to end after [1, 2) times this, and counted as dead `margin` later.
  Duration watch_time{300s};
  Duration margin{10s};
  // A list and the answer to a request may be silent for so long.
  Duration patience{60s};
  BackoffPolicy backoff{800ms, 30s, 2.0, 1.0};
  Duration backoff_reset{120s};  // without failure, after which the back-off starts anew
  Duration shortest_watch{1s};   // one that ends sooner, without an event, failed
};

struct WatchStep {
  enum class Kind {
    kWait,        // for `time`
    kListPage,    // a page of the list from `continue_token` on
    kStreamList,  // the list as a stream, which then goes on as the watch
    kProbe,       // does the server know `resource_version`?
    kWatch,       // from `resource_version` on
  };
  Kind kind = Kind::kWait;
  std::string resource_version;
  std::string continue_token;
  int page_size = 0;  // 0: the whole list at once
  Duration time{0};   // streams: when the server is to end it
};

// The query of the step's request.
std::string QueryOf(const WatchStep& step, const client::LabelSelector& selector);

// How a step ended.
struct WatchEnd {
  enum class Kind {
    kClean,        // the server ended the stream, as asked
    kBroken,       // no connection, or it broke
    kSilent,       // nothing, or not the whole list, came for too long
    kExpired,      // 410: the version, or the list's continuation, is too old
    kTooNew,       // the server does not know so new a version
    kThrottled,    // 429
    kUnsupported,  // 400, 422: of a streaming list, that the server has none
    kRefused,      // any other code: no permission, no such resource, …
    kGarbage,      // what came is no list or no event; or an ERROR event that says nothing known
  };
  Kind kind = Kind::kClean;
  std::optional<Duration> retry_after;
  Status status;  // for people
};
// Of a refusal by code, or of an ERROR event.
WatchEnd EndOf(const ApiError& error, bool in_stream);

class WatchState {
 public:
  WatchState(const WatchPolicy& policy, uint64_t seed);

  WatchStep Next(Duration now);

  // What the last step brought. A page or an event says what is to be done with its objects.
  enum class Action {
    kNothing,  // of bookmarks
    kDiscard,  // what was collected is worth nothing; begin to collect with these
    kCollect,  // part of a list that goes on
    kReplace,  // part of a list that is complete with them: give it all to the sink
    kDeliver,  // a change
  };
  Action OnPage(const std::string& resource_version, const std::string& continue_token);
  Action OnEvent(const WatchEvent& event);
  void OnProbed();
  // A stream's answer has begun, with 200.
  void OnOpened(Duration now);
  // The step is over; for pages and probes only when they failed.
  void OnEnd(const WatchEnd& end, Duration now);

  // Failures in a row, for the log.
  int failures() const { return failures_; }
  // From where a watch goes on; "": nothing is listed.
  const std::string& resource_version() const { return resource_version_; }
  // The first pages of a list have come and the others will: what was collected is part of it.
  bool has_pages() const { return !continue_token_.empty(); }

 private:
  void StartOver();
  void ListBroke();
  void Fail(const std::optional<Duration>& retry_after, Duration now);
  Duration WatchTime();

  const WatchPolicy policy_;
  PhiloxStream random_;
  std::string resource_version_;  // "": to be listed
  bool streaming_;                // the server may have streaming lists
  int broken_lists_ = 0;          // such lists that broke off, in a row
  bool probe_ = false;            // before the next watch

  // Of a list that goes on.
  std::string continue_token_;
  bool collecting_ = false;
  bool whole_list_ = false;  // the pages expired before the last: all at once

  // Of the stream.
  Duration opened_{0};
  bool open_ = false;
  bool saw_event_ = false;

  int failures_ = 0;
  Duration last_failure_{0};
  Duration not_before_{0};
};

}  // namespace tfjob::kube
