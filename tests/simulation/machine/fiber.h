// Runs a function on a separate stack. Each time it is resumed, the function runs until it yields.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace tfjob::simulation {

// All fibers run on the operating system's thread that resumes them. If a fiber is destroyed before
// its function has returned, the objects on its stack are leaked.
class Fiber {
 public:
  // `body` must not throw.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the function until it calls Yield or returns. Must not be called on a fiber.
  void Resume();
  // Returns to the caller of Resume. Must be called on this fiber.
  void Yield();
  bool done() const { return done_; }

 private:
  static void Main(unsigned high, unsigned low);
  // These two functions inform AddressSanitizer of the stack in use.
  void BeforeSwitchTo(const void* stack, size_t bytes, void** kept);
  void AfterSwitch(void* kept, const void** stack, size_t* bytes);

  std::function<void()> body_;
  std::byte* stack_;
  ucontext_t context_{};
  ucontext_t caller_{};
  bool done_ = false;
  // For AddressSanitizer: the fake stacks of the fiber and of its caller, and the caller's stack.
  void* own_fake_ = nullptr;
  void* caller_fake_ = nullptr;
  const void* caller_stack_ = nullptr;
  size_t caller_bytes_ = 0;
};

}  // namespace tfjob::simulation
