// Coordinates the tasks of a job that take the steps of a program together. Every task runs the
// same program, and calls the same functions in the same order. At the beginning of each call, the
// tasks announce it to each other. A task that cannot take part, or that calls a different function
// from another task, therefore causes an error in all tasks, and no task waits forever.
//
//   ASSIGN_OR_RETURN(const Agreed agreed, group.Announce({.call = "Step of model m", …}));
//   RETURN_IF_ERROR(group.Check(group.communicator().AllReduce(…)));
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"

namespace tfjob::steps {

// A task's announcement of a call.
struct Announcement {
  // Describes what the task does, in words for error messages: "function 1 (x float32[2])". Must be
  // equal in all tasks.
  std::string call;
  // A digest of the properties that `call` does not describe, such as the operations of a function.
  // Must be equal in all tasks.
  uint64_t digest = 0;
  // For each model that the call uses: the number of its updates, or -1 if its values may differ
  // from those of the other tasks. Must be equal in all tasks, unless it is -1 in any of them.
  std::vector<int64_t> steps = {};
  int64_t examples = 0;              // of this task; at least 0
  std::vector<int64_t> counts = {};  // numbers to add up over all tasks
  bool connects = false;             // this task must connect to the others first
  Status error = OkStatus();         // if not OK, this task cannot take part
};

// Combines the announcements of all tasks. Equal in all tasks.
struct Agreed {
  int64_t examples = 0;             // of all tasks; above 0
  int64_t tasks_with_examples = 0;  // above 0
  std::vector<bool> sends;          // for each model: rank 0 must send its values to the others
  std::vector<int64_t> counts;      // sums over all tasks
  bool connects = false;            // a task has announced it
};

// Owned by one thread.
class StepGroup {
 public:
  // `tasks` are the names of the ranks: "worker 0". `on_lost`, if not null, is called once, when an
  // operation of the communicator has failed, before the error is returned.
  StepGroup(std::unique_ptr<collectives::Communicator> communicator, std::vector<std::string> tasks,
            std::function<void()> on_lost = nullptr);

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  const std::string& task(int rank) const { return tasks_[static_cast<size_t>(rank)]; }
  collectives::Communicator& communicator() { return *communicator_; }
  // Returns the error that makes further calls impossible, or OK.
  const Status& broken() const { return broken_; }

  // All tasks must call Announce at the beginning of each call. Returns
  //   the task's own error   if it has announced one;
  //   Aborted                if another task has announced an error, which the message contains;
  //   InvalidArgument        if no task has examples;
  //   FailedPrecondition     if the tasks have announced different calls. The message names two
  //                          tasks and their calls;
  //   an error of Check.
  // After the first three errors, the tasks may continue with the next call.
  StatusOr<Agreed> Announce(const Announcement& own);
  // Waits until all tasks have called Barrier.
  Status Barrier();
  // Ends the work of the group. Returns once all tasks have called End, or an error.
  Status End();

  // Returns OK, or the error of an operation of the communicator with an explanation. After such an
  // error, each further call of Announce returns it again.
  Status Check(const Status& operation);
  // Notifies the other tasks that this task has failed during a call. Has the same consequence as
  // an error of the communicator.
  void Fail(const Status& error);

 private:
  struct Heard;
  StatusOr<std::vector<Heard>> Exchange(const std::string& text);
  StatusOr<Agreed> Exchanged(const Announcement& own);
  Status Compare(const std::vector<Heard>& heard) const;

  const std::unique_ptr<collectives::Communicator> communicator_;
  const std::vector<std::string> tasks_;
  const std::function<void()> on_lost_;
  int64_t calls_ = 0;
  Status broken_;  // the error that keeps the tasks from working together
  std::vector<std::byte> received_;
  std::vector<size_t> sizes_;
};

}  // namespace tfjob::steps
