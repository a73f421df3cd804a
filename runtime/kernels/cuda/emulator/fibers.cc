#include "runtime/kernels/cuda/emulator/fibers.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TFJOB_EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TFJOB_EMULATOR_ASAN 1
#endif
#endif
#ifdef TFJOB_EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the stack pointer, and continues on another stack. The rest of a fiber's state, that is,
// the registers that a function must preserve (System V ABI, x86-64), is on the fiber's stack.
extern "C" void tfjob_emulator_switch(void** save, void* load);
asm(R"(
.text
.p2align 4
.globl tfjob_emulator_switch
.type tfjob_emulator_switch, @function
tfjob_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tfjob_emulator_switch, .-tfjob_emulator_switch
)");

namespace tfjob::kernels::cuda {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kGuardBytes = 4096;
constexpr int kMostThreads = 1024;

struct Host {
  void* sp = nullptr;
  const void* bottom = nullptr;  // the bottom of its stack, for the address sanitizer
  size_t bytes = 0;
  std::vector<int> free_stacks;
  // The address sanitizer's fake stack for each stack. The next fiber on a stack reuses the fake
  // stack, because creating one for each fiber would take 20 times as long as everything else.
  void* fake_stacks[kMostThreads] = {};
};
Host host;

// The stacks of all fibers, with an inaccessible page below each.
char* Stacks() {
  static char* const kStacks = [] {
    void* const memory = mmap(nullptr, kStackBytes * kMostThreads, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    for (int i = 0; i < kMostThreads; ++i)
      mprotect(static_cast<char*>(memory) + i * kStackBytes, kGuardBytes, PROT_NONE);
    return static_cast<char*>(memory);
  }();
  return kStacks;
}

// Prepares a stack on which tfjob_emulator_switch returns to `main`.
void Prepare(Thread& thread, void (*main)()) {
  thread.started = true;
  thread.stack = host.free_stacks.back();
  host.free_stacks.pop_back();
  char* const top = Stacks() + (thread.stack + 1) * kStackBytes;
#ifdef TFJOB_EMULATOR_ASAN
  __asan_unpoison_memory_region(top - kStackBytes + kGuardBytes, kStackBytes - kGuardBytes);
#endif
  void** sp = reinterpret_cast<void**>(top) - 1;  // 8 below a multiple of 16, as after a call
  *--sp = reinterpret_cast<void*>(main);
  constexpr int kRegisters = 6;
  sp -= kRegisters;
  std::memset(sp, 0, kRegisters * sizeof *sp);
  thread.sp = sp;
}

}  // namespace

void ResetFibers(int count) {
  host.free_stacks.clear();
  for (int i = count; i-- > 0;) host.free_stacks.push_back(i);
}

void ResumeFiber(Thread& thread, void (*main)()) {
  if (!thread.started) Prepare(thread, main);
#ifdef TFJOB_EMULATOR_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, Stacks() + thread.stack * kStackBytes, kStackBytes);
  tfjob_emulator_switch(&host.sp, thread.sp);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
  tfjob_emulator_switch(&host.sp, thread.sp);
#endif
  if (thread.wait != Thread::Wait::kDone) return;
  host.free_stacks.push_back(thread.stack);
  thread.stack = -1;
}

void LeaveFiber() {
#ifdef TFJOB_EMULATOR_ASAN
  void*& fake = host.fake_stacks[state.current->stack];
  __sanitizer_start_switch_fiber(&fake, host.bottom, host.bytes);
  tfjob_emulator_switch(&state.current->sp, host.sp);
  __sanitizer_finish_switch_fiber(fake, &host.bottom, &host.bytes);
#else
  tfjob_emulator_switch(&state.current->sp, host.sp);
#endif
}

void EnterFiber() {
#ifdef TFJOB_EMULATOR_ASAN
  void* const fake = host.fake_stacks[state.current->stack];
  __sanitizer_finish_switch_fiber(fake, &host.bottom, &host.bytes);
#endif
}

int StackOf(uintptr_t address) {
  const auto base = reinterpret_cast<uintptr_t>(Stacks());
  return address - base < kStackBytes * kMostThreads
             ? static_cast<int>((address - base) / kStackBytes)
             : -1;
}

}  // namespace tfjob::kernels::cuda
