// Provides test doubles: communicators between the threads of a test, in which an operation can
// fail on chosen ranks, and a group whose tasks are threads.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/collectives/membership/group.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::strategy {

// The object through which the ranks of one communicator exchange values.
class Meeting {
 public:
  // Returns whether the operation (counted from 1) fails on the rank, after all ranks have called
  // it.
  using Fault = std::function<bool(int64_t operation, int rank)>;

  explicit Meeting(int ranks, Fault fault = {}, Status error = Unavailable("a fault of the test"))
      : size_(ranks),
        fault_(std::move(fault)),
        error_(std::move(error)),
        values_(static_cast<size_t>(ranks)) {}

  int size() const { return size_; }

  // Waits until all ranks have called Meet. The last rank calls `combine` with all values.
  Status Meet(int rank, std::span<std::byte> values,
              const std::function<void(std::span<const std::span<std::byte>>)>& combine) {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return aborted_;
    values_[static_cast<size_t>(rank)] = values;
    const int64_t operation = finished_ + 1;
    if (++arrived_ == size()) {
      combine(values_);
      arrived_ = 0;
      ++finished_;
      changed_.NotifyAll();
    }
    while (finished_ < operation && aborted_.ok()) changed_.Wait(mutex_);
    if (finished_ < operation) return aborted_;
    if (!fault_ || !fault_(operation, rank)) return OkStatus();
    // Another rank may already have left after the operation, which aborts the meeting.
    if (aborted_.ok()) aborted_ = error_;
    changed_.NotifyAll();
    return error_;
  }
  void Abort(const Status& why) {
    MutexLock lock(mutex_);
    if (aborted_.ok()) aborted_ = why;
    changed_.NotifyAll();
  }
  bool Aborted() {
    MutexLock lock(mutex_);
    return !aborted_.ok();
  }

 private:
  const int size_;
  const Fault fault_;
  const Status error_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::span<std::byte>> values_ ABSL_GUARDED_BY(mutex_);
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  Status aborted_ ABSL_GUARDED_BY(mutex_);
};

class MeetingCommunicator : public collectives::Communicator {
 public:
  // If `allocation` is not OK, Allocate fails with this status.
  MeetingCommunicator(std::shared_ptr<Meeting> meeting, int rank, Status allocation = OkStatus())
      : meeting_(std::move(meeting)), rank_(rank), allocation_(std::move(allocation)) {}
  ~MeetingCommunicator() override { Abort(Cancelled("the communicator of a rank is gone")); }

  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  std::string_view transport() const override { return "test"; }

  StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) override {
    class Bytes : public Memory {
     public:
      explicit Bytes(size_t size) : tensor_(DType::kUInt8, Shape({static_cast<int64_t>(size)})) {}
      std::span<std::byte> bytes() const override { return tensor_.bytes(); }

     private:
      mutable Tensor tensor_;
    };
    if (!allocation_.ok()) Abort(allocation_);
    RETURN_IF_ERROR(Barrier());
    return std::unique_ptr<Memory>(std::make_unique<Bytes>(bytes));
  }
  Status AllReduce(std::span<std::byte> values, DType dtype,
                   collectives::Reduction reduction) override {
    return meeting_->Meet(rank_, values, [&](std::span<const std::span<std::byte>> all) {
      std::vector<std::span<const std::byte>> from(all.begin(), all.end());
      std::vector<std::byte> result(values.size());
      collectives::CombineAll(dtype, reduction, result, from);
      for (const std::span<std::byte> to : all) std::ranges::copy(result, to.begin());
    });
  }
  Status Broadcast(std::span<std::byte> values, int root) override {
    return meeting_->Meet(rank_, values, [&](std::span<const std::span<std::byte>> all) {
      const std::span<std::byte> from = all[static_cast<size_t>(root)];
      for (const std::span<std::byte> to : all)
        if (to.data() != from.data()) std::ranges::copy(from, to.begin());
    });
  }
  Status AllGather(std::span<std::byte> values, size_t element_bytes) override {
    const auto count = static_cast<int64_t>(values.size() / element_bytes);
    std::vector<size_t> sizes;
    for (int rank = 0; rank < size(); ++rank) {
      const int64_t elements = collectives::SliceOf(count, rank, size()).count;
      sizes.push_back(static_cast<size_t>(elements) * element_bytes);
    }
    return Gather(values, sizes);
  }
  // Counts as two operations: the exchange of the sizes, and that of the bytes.
  Status AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                           std::vector<std::byte>& all, std::vector<size_t>& sizes) override {
    sizes.assign(static_cast<size_t>(size()), 0);
    sizes[static_cast<size_t>(rank_)] = own.size();
    RETURN_IF_ERROR(AllGather(std::as_writable_bytes(std::span(sizes)), sizeof(size_t)));
    const auto begin = std::accumulate(sizes.begin(), sizes.begin() + rank_, size_t{0});
    const auto total = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
    if (total > most_bytes) {
      Abort(ResourceExhausted("more than ", most_bytes, " bytes"));
      return ResourceExhausted("more than ", most_bytes, " bytes");
    }
    all.resize(total);
    std::ranges::copy(own, all.begin() + static_cast<ptrdiff_t>(begin));
    return Gather(all, sizes);
  }
  Status Barrier() override {
    return meeting_->Meet(rank_, {}, [](std::span<const std::span<std::byte>>) {});
  }
  void Abort(const Status& why) override { meeting_->Abort(why); }
  collectives::Waiting CurrentWait() const override { return {}; }

  Status ReduceScatter(std::span<std::byte>, DType, collectives::Reduction) override {
    return Unused();
  }
  Status Reduce(std::span<std::byte>, DType, collectives::Reduction, int) override {
    return Unused();
  }
  Status AllToAll(std::span<std::byte>, size_t) override { return Unused(); }

 private:
  // Exchanges parts of these sizes, one per rank.
  Status Gather(std::span<std::byte> values, const std::vector<size_t>& sizes) {
    return meeting_->Meet(rank_, values, [&](std::span<const std::span<std::byte>> all) {
      size_t begin = 0;
      for (size_t from = 0; from < all.size(); begin += sizes[from], ++from) {
        const auto part = all[from].subspan(begin, sizes[from]);
        for (const std::span<std::byte> to : all)
          if (to.data() != all[from].data())
            std::ranges::copy(part, to.begin() + static_cast<ptrdiff_t>(begin));
      }
    });
  }
  static Status Unused() { return Unimplemented("no strategy uses this operation"); }

  const std::shared_ptr<Meeting> meeting_;
  const int rank_;
  const Status allocation_;
};

// Runs work(rank, communicator) on one thread per rank. `C` is a MeetingCommunicator.
template <typename C = MeetingCommunicator, typename Work>
void OnEveryRank(size_t ranks, const Work& work) {
  auto meeting = std::make_shared<Meeting>(static_cast<int>(ranks));
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, rank = static_cast<int>(r)] {
      C communicator(meeting, rank);
      work(rank, communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The tasks of a job, each of which is a thread. Every generation contains all tasks, except those
// that have left or were lost, and have not joined again.
class TestJob {
 public:
  // `fault_of(g)` is the fault of generation g, counted from 1.
  explicit TestJob(int tasks, std::function<Meeting::Fault(int64_t)> fault_of = {})
      : fault_of_(std::move(fault_of)), tasks_(static_cast<size_t>(tasks)) {}

  std::unique_ptr<collectives::Group> GroupOf(int task);
  // The other tasks continue without this task until it joins again.
  void Lose(int task) {
    MutexLock lock(mutex_);
    tasks_[static_cast<size_t>(task)].lost = true;
    FormIfAllJoin();
  }
  // From the next generation on, no rank can allocate memory.
  void FailAllocations(const Status& why) {
    MutexLock lock(mutex_);
    allocation_ = why;
  }
  // From the next generation on, operations in which a fault occurs return this error.
  void FailWith(const Status& error) {
    MutexLock lock(mutex_);
    error_ = error;
  }
  int64_t generations() {
    MutexLock lock(mutex_);
    return number_;
  }
  // The number of processes that have announced their departure.
  int departures() const { return departures_; }
  // The claims (Joining) of all tasks with a state.
  std::set<int64_t> claims() {
    MutexLock lock(mutex_);
    return claims_;
  }
  // The departures that each task has noted: "worker 1 in 2" for generation 2.
  std::map<size_t, std::vector<std::string>> noted() {
    MutexLock lock(mutex_);
    return noted_;
  }
  // Blocks until a task outside the current generation is waiting to join.
  void AwaitTaskWaits() {
    MutexLock lock(mutex_);
    while (!TaskWaits()) changed_.Wait(mutex_);
  }

 private:
  friend class TestGroup;
  struct Task {
    bool joining = false, left = false, lost = false;
    bool member = false;  // belongs to the current generation
    collectives::Joining brings;
    collectives::Generation generation;  // set while `formed`
    bool formed = false;
  };

  bool AllJoin() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::ranges::all_of(tasks_, [](const Task& t) { return t.joining || t.left || t.lost; });
  }
  bool TaskWaits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::ranges::any_of(tasks_, [](const Task& t) { return t.joining && !t.member; });
  }
  void FormIfAllJoin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::ranges::any_of(tasks_, [](const Task& t) { return t.joining; }) && AllJoin()) Form();
  }
  // Returns a key that orders states: the newest state has the greatest key.
  static std::pair<int64_t, int64_t> Age(const Task& task) {
    const collectives::Joining& brings = task.brings;
    return {brings.step < 0 ? -1 : brings.state_generation, brings.step};
  }
  void Form() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++number_;
    std::vector<Task*> members;
    for (Task& task : tasks_) {
      task.member = task.joining;
      if (task.member) members.push_back(&task);
    }
    auto meeting = meeting_ =
        std::make_shared<Meeting>(static_cast<int>(members.size()),
                                  fault_of_ ? fault_of_(number_) : Meeting::Fault(), error_);
    int source = 0;
    for (size_t r = 0; r < members.size(); ++r)
      if (Age(*members[r]) > Age(*members[static_cast<size_t>(source)]))
        source = static_cast<int>(r);
    for (size_t r = 0; r < members.size(); ++r) {
      collectives::Generation generation{.number = number_, .source = source};
      generation.rank = static_cast<int>(r);
      for (size_t m = 0; m < members.size(); ++m)
        generation.members.push_back({.task = StrCat("worker ", m),
                                      .step = members[m]->brings.step,
                                      .state_generation = members[m]->brings.state_generation});
      generation.communicator =
          std::make_unique<MeetingCommunicator>(meeting, generation.rank, allocation_);
      members[r]->generation = std::move(generation);
      members[r]->formed = true;
      members[r]->joining = false;
    }
    changed_.NotifyAll();
  }

  const std::function<Meeting::Fault(int64_t)> fault_of_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Meeting> meeting_ ABSL_GUARDED_BY(mutex_);  // of the latest generation
  Status allocation_ ABSL_GUARDED_BY(mutex_);
  Status error_ ABSL_GUARDED_BY(mutex_) = Unavailable("a fault of the test");
  std::set<int64_t> claims_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> departures_ = 0;
  std::map<size_t, std::vector<std::string>> noted_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Status failure_ ABSL_GUARDED_BY(mutex_);
};

class TestGroup : public collectives::Group {
 public:
  TestGroup(TestJob& job, int task) : job_(job), task_(static_cast<size_t>(task)) {}

  StatusOr<collectives::Generation> Join(const collectives::Joining& joining) override {
    MutexLock lock(job_.mutex_);
    TestJob::Task& task = job_.tasks_[task_];
    task.brings = joining;
    if (joining.step >= 0) job_.claims_.insert(joining.claim);
    task.joining = true;
    task.left = task.lost = false;
    job_.changed_.NotifyAll();
    for (const TestJob::Task& other : job_.tasks_) {
      if (other.joining && other.brings.agreement != joining.agreement)
        return FailedPrecondition("the tasks differ");
    }
    if (!job_.ended_ && job_.AllJoin()) job_.Form();
    while (!task.formed && !job_.ended_) job_.changed_.Wait(job_.mutex_);
    task.joining = false;
    if (!task.formed) return job_.failure_.ok() ? Cancelled("the job is over") : job_.failure_;
    task.formed = false;
    return std::move(task.generation);
  }
  Status Leave() override {
    MutexLock lock(job_.mutex_);
    job_.tasks_[task_].left = true;
    job_.FormIfAllJoin();
    return OkStatus();
  }
  bool TaskWaits() override {
    MutexLock lock(job_.mutex_);
    return task_ == 0 && job_.TaskWaits();
  }
  void Announce(state::WorkPhase, Duration) override {}
  bool IsCurrent(int64_t generation) override {
    MutexLock lock(job_.mutex_);
    return job_.number_ == generation && job_.meeting_ != nullptr && !job_.meeting_->Aborted();
  }
  void StateIsShared() override {}
  void NoteClaim(int64_t claim) override {
    MutexLock lock(job_.mutex_);
    job_.claims_.insert(claim);
  }
  std::function<bool()> WriteGuard() override {
    return [] { return true; };
  }
  Status Depart() override {
    job_.departures_++;
    return OkStatus();
  }
  void NoteDepartures(int64_t generation,
                      const std::vector<collectives::Member>& members) override {
    MutexLock lock(job_.mutex_);
    for (const collectives::Member& member : members) {
      job_.noted_[task_].push_back(StrCat(member.task, " in ", generation));
    }
  }
  Status Finish() override { return Fail(OkStatus()); }
  Status Fail(const Status& failure) override {
    MutexLock lock(job_.mutex_);
    job_.ended_ = true;
    job_.failure_ = failure;
    job_.changed_.NotifyAll();
    return OkStatus();
  }
  std::vector<state::PeerState> Peers() override { return {}; }

 private:
  TestJob& job_;
  const size_t task_;
};

inline std::unique_ptr<collectives::Group> TestJob::GroupOf(int task) {
  return std::make_unique<TestGroup>(*this, task);
}

}  // namespace tfjob::strategy
