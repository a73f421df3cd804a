// Runs a function on its own thread, like std::thread, but in a way that a test can simulate
// (scheduler.h).
//
//   thread_ = Thread("ps-read", [this] { Read(); });
//   …
//   thread_.Join();
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "runtime/base/scheduler.h"

namespace tfjob {

// Must be joined before it is destroyed or assigned to.
class Thread {
 public:
  Thread() = default;
  // Starts a thread that runs `body`, which must not throw. ps and gdb show the thread under
  // `name`, truncated to 15 characters.
  Thread(std::string name, std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();

  bool joinable() const { return simulated_ != nullptr || thread_.joinable(); }
  void Join();

  // Identifies the calling thread.
  using Id = const void*;
  static Id CurrentId();

 private:
  std::thread thread_;
  void* simulated_ = nullptr;
};

// Sets the name of the calling thread, truncated to 15 characters.
void SetThreadName(const std::string& name);

}  // namespace tfjob
