// Tests the contracts of mutex.h and thread_pool.h for waits and closures.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace {
std::atomic<int> allocations{0};
std::atomic<int> steady_waits{0};
std::atomic<int> system_waits{0};
}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  std::abort();
}
// Replace this operator as well, because AddressSanitizer reports mismatched new and delete.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

#if !__has_feature(thread_sanitizer)
// Override functions of the C library, to determine which clock a wait uses.
extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      clockid_t clock, const timespec* deadline) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const Wait wait = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  ++(clock == CLOCK_MONOTONIC ? steady_waits : system_waits);
  return wait(condition, mutex, clock, deadline);
}
extern "C" int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      const timespec* deadline) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static const Wait wait = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_timedwait"));
  ++system_waits;
  return wait(condition, mutex, deadline);
}
#endif

namespace tfjob {
namespace {

TEST(CondVar, WaitsOnTheSteadyClock) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer must see the waits that this test would replace";
#endif
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  while (never.WaitFor(mutex, std::chrono::milliseconds(5))) {
  }
  EXPECT_GT(steady_waits, 0);
  EXPECT_EQ(system_waits, 0);
}

TEST(ThreadPool, ParallelForVisitsEveryIndexOnce) {
  for (int threads : {0, 1, 3}) {
    ThreadPool pool("test", threads);
    std::vector<std::atomic<int>> visits(1000);
    for (int round = 1; round <= 200; ++round) {
      pool.ParallelFor(1000, 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const auto& count : visits) ASSERT_EQ(count, round);
    }
  }
}

TEST(ThreadPool, ParallelForAllocatesNothing) {
  ThreadPool pool("test", 3);
  std::atomic<int64_t> sum{0};
  const std::function<void(int64_t, int64_t)> add = [&](int64_t begin, int64_t end) {
    sum += end - begin;
  };
  pool.ParallelFor(1000, 10, add);
  const int before = allocations;
  for (int i = 0; i < 100; ++i) pool.ParallelFor(1000, 10, add);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(sum, 101'000);
}

TEST(ThreadPool, ParallelForOfSeveralCallersAtOnce) {
  ThreadPool pool("test", 2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        pool.ParallelFor(300, 100, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 300);
}

TEST(ThreadPool, RunsEverythingBeforeItEnds) {
  std::atomic<int> runs{0};
  {
    ThreadPool pool("test", 2);
    for (int i = 0; i < 100; ++i) pool.Schedule([&] { ++runs; });
  }
  EXPECT_EQ(runs, 100);
}

}  // namespace
}  // namespace tfjob
