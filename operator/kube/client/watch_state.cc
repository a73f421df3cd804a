#include "operator/kube/client/watch_state.h"

#include <algorithm>

#include "operator/kube/client/resource.h"

namespace tfjob::kube {

using StepKind = WatchStep::Kind;

std::string QueryOf(const WatchStep& step, const client::LabelSelector& selector) {
  Query query;
  if (!selector.empty() && step.kind != StepKind::kProbe) {
    query.Add("labelSelector", SelectorText(selector));
  }
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(step.time).count();
  switch (step.kind) {
    case StepKind::kWait:
      break;
    case StepKind::kListPage:
      if (step.page_size > 0) query.Add("limit", StrCat(step.page_size));
      if (!step.continue_token.empty()) query.Add("continue", step.continue_token);
      break;
    case StepKind::kProbe:
      query.Add("limit", "1")
          .Add("resourceVersion", step.resource_version)
          .Add("resourceVersionMatch", "NotOlderThan");
      break;
    case StepKind::kStreamList:
      query.Add("sendInitialEvents", "true").Add("resourceVersionMatch", "NotOlderThan");
      [[fallthrough]];
    case StepKind::kWatch:
      query.Add("watch", "1")
          .Add("allowWatchBookmarks", "true")
          .Add("resourceVersion", step.resource_version)
          .Add("timeoutSeconds", StrCat(seconds));
      break;
  }
  return query.text();
}

WatchEnd EndOf(const ApiError& error, bool in_stream) {
  WatchEnd end;
  end.retry_after = error.retry_after;
  end.status = ToStatus(error);
  if (error.expired()) {
    end.kind = WatchEnd::Kind::kExpired;
  } else if (error.too_new()) {
    end.kind = WatchEnd::Kind::kTooNew;
  } else if (error.code == 429) {
    end.kind = WatchEnd::Kind::kThrottled;
  } else if (in_stream) {
    // After an internal error, the watch may continue from the current version.
    end.kind = error.code == 500 ? WatchEnd::Kind::kBroken : WatchEnd::Kind::kGarbage;
  } else {
    const bool unsupported = error.code == 400 || error.code == 422;
    end.kind = unsupported ? WatchEnd::Kind::kUnsupported : WatchEnd::Kind::kRefused;
  }
  return end;
}

WatchState::WatchState(const WatchPolicy& policy, uint64_t seed)
    : policy_(policy),
      random_(PhiloxKey(seed, "watch")),
      streaming_(policy.streaming_list),
      page_size_(policy.page_size) {}

Duration WatchState::WatchTime() {
  return std::chrono::duration_cast<Duration>(policy_.watch_time * (1 + random_.Uniform()));
}

WatchStep WatchState::Next(Duration now) {
  WatchStep step;
  open_ = saw_event_ = false;
  if (now < not_before_) {
    step.time = not_before_ - now;
  } else if (resource_version_.empty() && streaming_) {
    step.kind = StepKind::kStreamList;
    step.time = WatchTime();
    collecting_ = false;
  } else if (resource_version_.empty()) {
    step.kind = StepKind::kListPage;
    step.continue_token = continue_token_;
    step.page_size = whole_list_ ? 0 : page_size_;
  } else {
    step.kind = probe_ ? StepKind::kProbe : StepKind::kWatch;
    step.resource_version = resource_version_;
    step.time = WatchTime();
  }
  return step;
}

WatchState::Action WatchState::OnPage(const std::string& resource_version,
                                      const std::string& continue_token) {
  const bool first = continue_token_.empty();
  continue_token_ = continue_token;
  if (!continue_token.empty()) return first ? Action::kDiscard : Action::kCollect;
  resource_version_ = resource_version;
  whole_list_ = probe_ = false;
  return Action::kReplace;
}

WatchState::Action WatchState::OnEvent(const WatchEvent& event) {
  saw_event_ = true;
  if (resource_version_.empty()) {
    // The versions of the initial objects are not in order. The bookmark after these objects has
    // the version of the list.
    if (event.type != EventType::kBookmark) {
      if (collecting_) return Action::kCollect;
      collecting_ = true;
      return Action::kDiscard;
    }
    if (!event.initial_end) return Action::kNothing;
    resource_version_ = event.resource_version;
    probe_ = false;
    broken_lists_ = 0;
    return Action::kReplace;
  }
  resource_version_ = event.resource_version;
  return event.type == EventType::kBookmark ? Action::kNothing : Action::kDeliver;
}

void WatchState::OnProbed() {
  probe_ = false;
}

void WatchState::OnOpened(Duration now) {
  open_ = true;
  opened_ = now;
}

void WatchState::StartOver() {
  resource_version_.clear();
  continue_token_.clear();
  collecting_ = probe_ = false;
}

// Counts a streaming list that broke off. Any connection may break. However, if several lists in a
// row break off, a proxy in between probably does not let streams last long enough, so pages are
// requested from then on.
void WatchState::ListBroke() {
  if (streaming_ && open_ && ++broken_lists_ >= policy_.broken_lists) streaming_ = false;
}

void WatchState::Fail(const std::optional<Duration>& retry_after, Duration now) {
  if (failures_ > 0 && now - last_failure_ > policy_.backoff_reset) failures_ = 0;
  last_failure_ = now;
  const Duration delay = BackoffDelay(policy_.backoff, ++failures_, random_.Uniform());
  not_before_ = now + std::max(delay, retry_after.value_or(Duration(0)));
}

void WatchState::OnEnd(const WatchEnd& end, Duration now) {
  const bool listed = !resource_version_.empty();
  const bool lasted = open_ && (saw_event_ || now - opened_ >= policy_.shortest_watch);
  probe_ = listed;
  switch (end.kind) {
    case WatchEnd::Kind::kClean:
      // A streaming list that ends before it is complete has failed.
      if (!listed) ListBroke();
      if (!listed || !lasted) Fail(end.retry_after, now);
      break;
    case WatchEnd::Kind::kSilent:
      // A server without streaming lists may ignore the request for a streaming list, and then
      // never completes the list.
      if (!listed && open_) streaming_ = false;
      [[fallthrough]];
    case WatchEnd::Kind::kBroken:
      whole_list_ = false;  // the list may be too long to read at once: try pages again
      if (!listed) ListBroke();
      Fail(end.retry_after, now);
      break;
    case WatchEnd::Kind::kTooLong:
      // The pages read so far stay valid: a continue token does not depend on the page size. If a
      // single object is too long, the step fails, because no request can skip the object.
      if (listed || whole_list_ || page_size_ == 1) Fail(end.retry_after, now);
      if (!whole_list_) page_size_ = std::max(1, page_size_ / 2);
      whole_list_ = false;
      break;
    case WatchEnd::Kind::kExpired:
    case WatchEnd::Kind::kTooNew:
      // If the continue token expired before the last page was read, request the whole list as one
      // response.
      whole_list_ = !listed && !continue_token_.empty();
      if (!whole_list_ && !(listed && lasted)) Fail(end.retry_after, now);
      StartOver();
      break;
    case WatchEnd::Kind::kUnsupported:
      if (!listed && streaming_) {
        streaming_ = false;
      } else {
        Fail(end.retry_after, now);
        StartOver();
      }
      break;
    case WatchEnd::Kind::kThrottled:
    case WatchEnd::Kind::kRefused:
      Fail(end.retry_after, now);
      break;
    case WatchEnd::Kind::kGarbage:
      Fail(end.retry_after, now);
      StartOver();
      break;
  }
}

}  // namespace tfjob::kube
