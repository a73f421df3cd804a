#include "operator/kube/leader/lease.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::kube {
namespace {

using objects::Kind;

const Logger kLeaseLog("lease");

constexpr Duration kCheckTolerance = 20s;
constexpr int kReleaseTries = 3;

// Returns whether the error means that another process created, changed or deleted the lease first.
bool IsLostTry(const Status& status) {
  return status.code() == StatusCode::kAborted || status.code() == StatusCode::kAlreadyExists ||
         status.code() == StatusCode::kNotFound;
}

double Random() {
  thread_local std::mt19937_64 generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

Duration Scale(Duration duration, double factor) {
  return Duration(std::llround(static_cast<double>(duration.count()) * factor));
}

Status CheckOptions(const LeaseOptions& options) {
  if (options.name_space.empty() || options.name.empty() || options.identity.empty()) {
    return InvalidArgument("a leader election needs a namespace, a name and an identity, got \"",
                           options.name_space, "\", \"", options.name, "\", \"", options.identity,
                           "\"");
  }
  return CheckLeaseTimes(options);
}

}  // namespace

Status CheckLeaseTimes(const LeaseOptions& options) {
  if (options.lease_duration <= options.renew_deadline) {
    return InvalidArgument("the lease duration (", FormatDuration(options.lease_duration),
                           ") must be longer than the renew deadline (",
                           FormatDuration(options.renew_deadline), ")");
  }
  if (options.renew_deadline <= Scale(options.retry_period, options.jitter)) {
    return InvalidArgument("the renew deadline (", FormatDuration(options.renew_deadline),
                           ") must be longer than the retry period (",
                           FormatDuration(options.retry_period), ") times ", options.jitter);
  }
  if (options.retry_period <= Duration(0) || options.lease_duration < 1s) {
    return InvalidArgument("the retry period must be positive, the lease duration 1s or more");
  }
  return OkStatus();
}

std::string NewIdentity() {
  std::random_device device;
  const auto word = [&device] { return static_cast<uint32_t>(device()); };
  const uint32_t b = word();
  const uint32_t c = word();
  return StrCat(HostName(), "_",
                absl::StrFormat("%08x-%04x-4%03x-%04x-%04x%08x", word(), b >> 16, b & 0xfff,
                                0x8000 | (c >> 18), c & 0xffff, word()));
}

StatusOr<std::unique_ptr<LeaderElection>> LeaderElection::Create(client::Client& client,
                                                                 LeaseOptions options,
                                                                 LeaseCallbacks callbacks) {
  RETURN_IF_ERROR(CheckOptions(options));
  if (!options.uniform) options.uniform = Random;
  return std::unique_ptr<LeaderElection>(
      new LeaderElection(client, std::move(options), std::move(callbacks)));
}

LeaderElection::LeaderElection(client::Client& client, LeaseOptions options,
                               LeaseCallbacks callbacks)
    : client_(client),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      leadership_(*options_.clock) {}

LeaderElection::~LeaderElection() {
  Stop();
}

void LeaderElection::Start() {
  stepper_ = std::thread([this] { Run(); });
  watch_ = std::thread([this] { Watch(); });
}

void LeaderElection::Stop() {
  bool release = false;
  {
    MutexLock lock(mutex_);
    release = options_.release_on_stop && !lost_ && !stopping_;
    stopping_ = true;
  }
  leadership_.End();
  wake_.Request(1);
  if (stepper_.joinable()) stepper_.join();
  if (watch_.joinable()) watch_.join();
  if (release) Release();
}

std::optional<Duration> LeaderElection::Step() {
  {
    MutexLock lock(mutex_);
    if (stopping_ || lost_) return std::nullopt;
  }
  const Duration started = options_.clock->Monotonic();
  const StatusOr<Try> outcome = AcquireOrRenew();
  if (!outcome.ok()) {
    kLeaseLog.Warning("the lease cannot be reached",
                      {{"lease", options_.name}, {"error", outcome.status()}});
    MutexLock lock(mutex_);
    last_error_ = outcome.status();
  } else if (*outcome == Try::kHeld) {
    Renewed(started);
  } else if (*outcome == Try::kTaken) {
    Lose(Aborted("the lease ", options_.name_space, "/", options_.name, " was taken by \"",
                 leader(), "\""));
  }
  CheckDeadline();
  MutexLock lock(mutex_);
  if (stopping_ || lost_) return std::nullopt;
  if (led_) return options_.retry_period;
  return std::min(Scale(options_.retry_period, 1 + options_.jitter * options_.uniform()),
                  TimeToExpiry());
}

Duration LeaderElection::TimeToExpiry() const {
  const bool held_by_other =
      observed_ && !observed_->holder.empty() && observed_->holder != options_.identity;
  const Duration left = held_by_other
                            ? observed_at_ + Validity(*observed_) - options_.clock->Monotonic()
                            : Duration(0);
  // If the lease is free or has expired, the attempt to acquire it has just failed, so make the
  // next attempt at the usual time.
  return left > Duration(0) ? left : Duration::max();
}

Duration LeaderElection::Validity(const LeaseRecord& record) const {
  return record.duration > Duration(0) ? record.duration : options_.lease_duration;
}

StatusOr<LeaderElection::Try> LeaderElection::AcquireOrRenew() {
  // A leader renews the lease without reading it first. This succeeds as long as no other process
  // writes the lease.
  if (led() && observed_) {
    const StatusOr<Try> renewed = Write(*observed_);
    if (renewed.ok() || !IsLostTry(renewed.status())) return renewed;
    if (callbacks_.on_slow_renewal) callbacks_.on_slow_renewal();
  }
  const Status read = Observe();
  if (read.code() == StatusCode::kNotFound) return Create();
  RETURN_IF_ERROR(read);

  const LeaseRecord& held = *observed_;
  if (!held.holder.empty() && held.holder != options_.identity) {
    if (led()) return Try::kTaken;
    if (options_.clock->Monotonic() < observed_at_ + Validity(held)) return Try::kNotHeld;
  }
  const StatusOr<Try> taken = Write(held);
  // Another process was faster. The next attempt will find out which one.
  if (IsLostTry(taken.status())) return Try::kNotHeld;
  return taken;
}

StatusOr<LeaderElection::Try> LeaderElection::Create() {
  LeaseRecord record;
  record.holder = options_.identity;
  record.duration = std::chrono::ceil<std::chrono::seconds>(options_.lease_duration);
  record.acquire_time = record.renew_time = options_.clock->Now();
  StatusOr<client::Object> stored =
      client_.Create(Kind::kLease, ToJson(record, options_.name_space, options_.name));
  // If this process leads and the lease exists after all, someone deleted the lease and another
  // process recreated it. Leadership then lasts until the next step reads the lease, so two
  // processes may lead for up to a retry period. client-go accepts the same risk.
  if (IsLostTry(stored.status()) && stored.status().code() != StatusCode::kNotFound) {
    return Try::kNotHeld;
  }
  // NotFound here means that the namespace does not exist.
  if (!stored.ok()) return Annotate(stored.status(), "creating the lease");
  RETURN_IF_ERROR(Note(*stored));
  return Try::kHeld;
}

StatusOr<LeaderElection::Try> LeaderElection::Write(const LeaseRecord& from) {
  LeaseRecord record = from;
  record.renew_time = options_.clock->Now();
  record.duration = std::chrono::ceil<std::chrono::seconds>(options_.lease_duration);
  if (record.holder != options_.identity) {
    record.holder = options_.identity;
    record.acquire_time = record.renew_time;
    ++record.transitions;
  }
  StatusOr<client::Object> stored =
      client_.Update(Kind::kLease, ToJson(record, options_.name_space, options_.name));
  if (!stored.ok()) return Annotate(stored.status(), "writing the lease");
  RETURN_IF_ERROR(Note(*stored));
  return Try::kHeld;
}

Status LeaderElection::Observe() {
  StatusOr<client::Object> stored = client_.Get({Kind::kLease, options_.name_space, options_.name});
  if (stored.status().code() == StatusCode::kNotFound) observed_.reset();
  if (!stored.ok()) return Annotate(stored.status(), "reading the lease");
  return Note(*stored);
}

Status LeaderElection::Note(const client::Object& stored) {
  const auto& resource = std::get<std::shared_ptr<const objects::CustomResource>>(stored);
  StatusOr<LeaseRecord> record = ParseLease(resource->object);
  if (!record.ok()) return Annotate(record.status(), "the lease");
  if (!observed_ || !observed_->SameAs(*record)) observed_at_ = options_.clock->Monotonic();
  observed_ = *std::move(record);
  bool is_new = false;
  {
    MutexLock lock(mutex_);
    is_new = leader_ != observed_->holder;
    leader_ = observed_->holder;
  }
  if (is_new) {
    kLeaseLog.Info("leader", {{"lease", options_.name}, {"identity", observed_->holder}});
    if (callbacks_.on_new_leader) callbacks_.on_new_leader(observed_->holder);
  }
  return OkStatus();
}

void LeaderElection::Renewed(Duration started) {
  // Count the deadline from the start of the call, because no other candidate can have seen the
  // record change earlier.
  const bool in_time = leadership_.Extend(started + options_.renew_deadline);
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (in_time) {
      first = !std::exchange(led_, true);
      renewed_at_ = started;
      last_error_ = OkStatus();
    } else if (!led_) {
      return;  // the call took longer than renew_deadline; the next attempt renews the lease
    }
  }
  if (first) {
    kLeaseLog.Info("this process leads",
                   {{"lease", options_.name}, {"identity", options_.identity}});
    if (callbacks_.on_started_leading) callbacks_.on_started_leading();
  }
}

void LeaderElection::CheckDeadline() {
  Status why;
  {
    MutexLock lock(mutex_);
    if (!led_ || lost_ || leadership_.held()) return;
    const std::string last =
        last_error_.ok() ? "no call was answered in time" : std::string(Message(last_error_));
    why = DeadlineExceeded("the lease ", options_.name_space, "/", options_.name,
                           " was not renewed for ", FormatDuration(options_.renew_deadline), ": ",
                           last);
  }
  Lose(why);
}

void LeaderElection::Lose(const Status& why) {
  leadership_.End();
  {
    MutexLock lock(mutex_);
    if (!led_ || lost_ || stopping_) return;
    lost_ = true;
  }
  wake_.Request(1);
  kLeaseLog.Error("lost leadership", {{"lease", options_.name}, {"why", why}});
  if (callbacks_.on_lost) callbacks_.on_lost(why);
}

// Releases the lease, so that another process can acquire it immediately. If another process has
// already acquired the lease, writes nothing.
void LeaderElection::Release() {
  for (int i = 0; i < kReleaseTries; ++i) {
    if (!observed_ || observed_->holder != options_.identity) return;
    LeaseRecord record = *observed_;
    record.holder.clear();
    record.duration = 1s;
    record.acquire_time = record.renew_time = options_.clock->Now();
    const Status released =
        client_.Update(Kind::kLease, ToJson(record, options_.name_space, options_.name)).status();
    if (released.ok()) {
      kLeaseLog.Info("released the lease", {{"lease", options_.name}});
      return;
    }
    if (!IsLostTry(released) || !Observe().ok()) {
      kLeaseLog.Warning("the lease was not released",
                        {{"lease", options_.name}, {"error", released}});
      return;
    }
  }
}

bool LeaderElection::led() {
  MutexLock lock(mutex_);
  return led_;
}

std::string LeaderElection::leader() {
  MutexLock lock(mutex_);
  return leader_;
}

Status LeaderElection::Check() {
  MutexLock lock(mutex_);
  if (!led_ || stopping_) return OkStatus();
  const Duration since = options_.clock->Monotonic() - renewed_at_;
  if (since <= options_.lease_duration + kCheckTolerance) return OkStatus();
  return Unavailable("the lease was last renewed ", FormatDuration(since),
                     " ago, but this process still runs");
}

void LeaderElection::Run() {
  SetThreadName("lease");
  while (const std::optional<Duration> delay = Step()) {
    if (wake_.WaitFor(*delay)) return;
  }
}

void LeaderElection::Watch() {
  SetThreadName("lease-watch");
  Duration left = options_.retry_period;
  while (!wake_.WaitFor(left)) {
    CheckDeadline();
    MutexLock lock(mutex_);
    left = options_.retry_period;
    if (led_) left = renewed_at_ + options_.renew_deadline - options_.clock->Monotonic();
    left = std::max(left, Duration(1ms));
  }
}

}  // namespace tfjob::kube
