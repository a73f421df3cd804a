#include "tests/simulation/machine/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TFJOB_ADDRESS_SANITIZER 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tfjob::simulation {
namespace {

constexpr size_t kStackBytes = size_t{512} << 10;
constexpr size_t kGuardBytes = 4096;

// Returns the stacks of finished fibers. Later fibers reuse them, because mapping a new stack would
// take longer than most fibers run.
std::vector<std::byte*>& FreeStacks() {
  static auto& stacks = *new std::vector<std::byte*>;
  return stacks;
}

std::byte* TakeStack() {
  if (!FreeStacks().empty()) {
    std::byte* stack = FreeStacks().back();
    FreeStacks().pop_back();
    return stack;
  }
  void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // Protect a guard page, so a stack overflow cannot overwrite other memory.
  if (stack == MAP_FAILED || mprotect(stack, kGuardBytes, PROT_NONE) != 0) std::abort();
  return static_cast<std::byte*>(stack);
}

void GiveStackBack(std::byte* stack) {
#ifdef TFJOB_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(stack + kGuardBytes, kStackBytes - kGuardBytes);
#endif
  FreeStacks().push_back(stack);
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(TakeStack()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  // makecontext passes only arguments of type int.
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::Main), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  GiveStackBack(stack_);
}

void Fiber::Resume() {
  BeforeSwitchTo(stack_, kStackBytes, &caller_fake_);
  swapcontext(&caller_, &context_);
  AfterSwitch(caller_fake_, nullptr, nullptr);
}

void Fiber::Yield() {
  BeforeSwitchTo(caller_stack_, caller_bytes_, done_ ? nullptr : &own_fake_);
  swapcontext(&context_, &caller_);
  AfterSwitch(own_fake_, &caller_stack_, &caller_bytes_);
}

void Fiber::Main(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>((uintptr_t{high} << 32) | low);
  self->AfterSwitch(nullptr, &self->caller_stack_, &self->caller_bytes_);
  self->body_();
  self->body_ = nullptr;  // destroys the captures, which may use the fiber
  self->done_ = true;
  self->Yield();
  std::abort();  // reached only if the fiber is resumed after its end
}

#ifdef TFJOB_ADDRESS_SANITIZER
void Fiber::BeforeSwitchTo(const void* stack, size_t bytes, void** kept) {
  __sanitizer_start_switch_fiber(kept, stack, bytes);
}
void Fiber::AfterSwitch(void* kept, const void** stack, size_t* bytes) {
  __sanitizer_finish_switch_fiber(kept, stack, bytes);
}
#else
void Fiber::BeforeSwitchTo(const void* /*stack*/, size_t /*bytes*/, void** /*kept*/) {}
void Fiber::AfterSwitch(void* /*kept*/, const void** /*stack*/, size_t* /*bytes*/) {}
#endif

}  // namespace tfjob::simulation
