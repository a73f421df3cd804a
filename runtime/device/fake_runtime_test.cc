#include "runtime/device/fake_runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <utility>

namespace tfjob::device {
namespace {

constexpr size_t kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);

class FakeRuntimeTest : public testing::Test {
 protected:
  FakeRuntimeTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  Memory Allocate(MemoryKind kind, std::string_view name, size_t bytes = kBytes) {
    return *runtime_->Allocate(kind, bytes, Buffer::Contents::kZero, name);
  }
  static int* Ints(const Memory& memory) { return static_cast<int*>(memory.get()); }

  // Submits an operation that adds `added` to the numbers.
  void Add(const Memory& memory, int added, Stream& stream, const std::string& name = "add") {
    runtime_->Submit({name,
                      {{memory.get(), kBytes, true}},
                      [added](std::span<void* const> storage) {
                        for (size_t i = 0; i < kCount; ++i)
                          static_cast<int*>(storage[0])[i] += added;
                      }},
                     stream);
  }
  // Submits an operation that records its name when it runs.
  void Note(const std::string& name, Stream& stream) {
    runtime_->Submit({name, {}, [this, name](std::span<void* const>) { notes_ += name; }}, stream);
  }
  int ValueOf(const Memory& memory) {
    int value = 0;
    EXPECT_EQ(runtime_->Read(&value, memory.get(), sizeof value), OkStatus());
    return value;
  }

  std::shared_ptr<FakeRuntime> runtime_ = FakeRuntime::Create();
  std::unique_ptr<Stream> stream_ = *runtime_->NewStream();
  std::unique_ptr<Stream> other_ = *runtime_->NewStream();
  std::unique_ptr<Event> event_ = *runtime_->NewEvent();
  std::string notes_;
};

using FakeRuntimeDeathTest = FakeRuntimeTest;

TEST_F(FakeRuntimeTest, CopiesThroughPinnedMemory) {
  const Memory pinned = Allocate(MemoryKind::kPinned, "pinned");
  const Memory device = Allocate(MemoryKind::kDevice, "device");
  const Memory back = Allocate(MemoryKind::kPinned, "back");
  for (size_t i = 0; i < kCount; ++i) Ints(pinned)[i] = static_cast<int>(i);
  runtime_->Copy(device.get(), pinned.get(), kBytes, *stream_);
  Add(device, 5, *stream_);
  runtime_->Copy(back.get(), device.get(), kBytes, *stream_);
  runtime_->Record(*event_, *stream_);
  ASSERT_EQ(runtime_->Synchronize(*event_), OkStatus());
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(Ints(back)[i], static_cast<int>(i) + 5);
  Ints(back)[0] = 1;
  Ints(pinned)[0] = 1;
}

TEST_F(FakeRuntimeTest, AnOperationRunsOnlyOnceItIsReady) {
  bool ready = false;
  runtime_->Submit({.name = "late",
                    .accesses = {},
                    .run = [this](std::span<void* const>) { notes_ += "late "; },
                    .ready = [&ready] { return ready; }},
                   *stream_);
  Note("next ", *stream_);
  runtime_->Record(*event_, *stream_);
  Note("other ", *other_);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(runtime_->HasRun(*event_));
  EXPECT_EQ(notes_, "other ");
  ready = true;
  for (int i = 0; i < 10 && !runtime_->HasRun(*event_);) ++i;
  EXPECT_EQ(notes_, "other late next ");
  EXPECT_TRUE(runtime_->HasRun(*event_));
}

TEST_F(FakeRuntimeTest, AWaitEndsWhenAnotherThreadMakesAnOperationReady) {
  std::atomic<bool> ready = false, asked = false;
  runtime_->Submit({.name = "late",
                    .accesses = {},
                    .run = [this](std::span<void* const>) { notes_ += "late"; },
                    .ready =
                        [&] {
                          asked = true;
                          return ready.load();
                        }},
                   *stream_);
  runtime_->Record(*event_, *stream_);
  std::thread other([&] {
    while (!asked) std::this_thread::yield();
    ready = true;
  });
  EXPECT_EQ(runtime_->Synchronize(*event_), OkStatus());
  EXPECT_EQ(notes_, "late");
  other.join();
}

TEST_F(FakeRuntimeTest, UndefinedMemoryIsNaN) {
  const Memory memory =
      *runtime_->Allocate(MemoryKind::kDevice, 64, Buffer::Contents::kUndefined, "arena");
  float value = 0;
  ASSERT_EQ(runtime_->Read(&value, memory.get(), sizeof value), OkStatus());
  EXPECT_NE(value, value);
}

TEST_F(FakeRuntimeTest, OperationsRunLateAndInAnyOrderThatStreamsAllow) {
  std::set<std::string> orders;
  bool late = false;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    runtime_ = FakeRuntime::Create({.seed = seed});
    const auto a = *runtime_->NewStream(), b = *runtime_->NewStream();
    notes_.clear();
    Note("1", *a);
    Note("x", *b);
    Note("2", *a);
    late = late || notes_.empty();
    ASSERT_EQ(runtime_->Synchronize(), OkStatus());
    orders.insert(notes_);
  }
  EXPECT_TRUE(late);
  EXPECT_EQ(orders, (std::set<std::string>{"12x", "1x2", "x12"}));
}

TEST_F(FakeRuntimeTest, TheOrderDependsOnlyOnTheSeed) {
  std::set<std::string> orders;
  for (int run = 0; run < 3; ++run) {
    runtime_ = FakeRuntime::Create({.seed = 7});
    const auto a = *runtime_->NewStream(), b = *runtime_->NewStream();
    notes_.clear();
    for (int i = 0; i < 20; ++i) Note(std::to_string(i), i % 2 == 0 ? *a : *b);
    ASSERT_EQ(runtime_->Synchronize(), OkStatus());
    orders.insert(notes_);
  }
  EXPECT_EQ(orders.size(), 1U);
}

TEST_F(FakeRuntimeTest, AnEventOrdersStreams) {
  for (uint64_t seed = 0; seed < 32; ++seed) {
    runtime_ = FakeRuntime::Create({.seed = seed});
    const auto a = *runtime_->NewStream(), b = *runtime_->NewStream(), c = *runtime_->NewStream();
    const auto first = *runtime_->NewEvent(), second = *runtime_->NewEvent();
    notes_.clear();
    Note("1", *a);
    runtime_->Record(*first, *a);
    runtime_->Wait(*b, *first);
    Note("2", *b);
    runtime_->Record(*second, *b);
    runtime_->Wait(*c, *second);
    Note("3", *c);
    ASSERT_EQ(runtime_->Synchronize(), OkStatus());
    EXPECT_EQ(notes_, "123");
  }
}

TEST_F(FakeRuntimeTest, SynchronizeOfAnEventRunsWhatItCovers) {
  Note("1", *stream_);
  runtime_->Record(*event_, *stream_);
  ASSERT_EQ(runtime_->Synchronize(*event_), OkStatus());
  EXPECT_EQ(notes_, "1");
  const auto never_recorded = *runtime_->NewEvent();
  EXPECT_EQ(runtime_->Synchronize(*never_recorded), OkStatus());
}

TEST_F(FakeRuntimeTest, ACapturedSequenceRunsWhenItIsReplayed) {
  const Memory memory = Allocate(MemoryKind::kDevice, "memory");
  ASSERT_EQ(runtime_->BeginCapture(*stream_), OkStatus());
  Add(memory, 1, *stream_);
  Add(memory, 2, *stream_);
  const auto sequence = runtime_->EndCapture(*stream_);
  ASSERT_TRUE(sequence.ok()) << sequence.status();
  EXPECT_EQ(ValueOf(memory), 0);
  for (int replay = 0; replay < 3; ++replay) runtime_->Replay(**sequence, *other_);
  EXPECT_EQ(ValueOf(memory), 9);
  EXPECT_EQ(runtime_->EndCapture(*stream_).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(FakeRuntimeTest, ReadAndWriteWaitForEverything) {
  const Memory memory = Allocate(MemoryKind::kDevice, "memory");
  Add(memory, 1, *stream_);
  const int value = 10;
  ASSERT_EQ(runtime_->Write(memory.get(), &value, sizeof value), OkStatus());
  Add(memory, 1, *stream_);
  EXPECT_EQ(ValueOf(memory), 11);
}

TEST_F(FakeRuntimeTest, MemoryIsLimited) {
  runtime_ = FakeRuntime::Create({.memory_bytes = 100});
  Memory memory =
      *runtime_->Allocate(MemoryKind::kDevice, 60, Buffer::Contents::kZero, "the first");
  const auto refused =
      runtime_->Allocate(MemoryKind::kPinned, 60, Buffer::Contents::kZero, "the second");
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(refused.status()),
            "the second needs 60 bytes of memory, but the fake device has 100 bytes, of which 60 "
            "are in use");
  memory.reset();
  EXPECT_TRUE(
      runtime_->Allocate(MemoryKind::kPinned, 60, Buffer::Contents::kZero, "the second").ok());
}

TEST_F(FakeRuntimeDeathTest, TheHostCannotTouchDeviceMemory) {
  const Memory memory = Allocate(MemoryKind::kDevice, "dense/kernel");
  EXPECT_DEATH(Ints(memory)[0] = 1, "the host touches device memory of dense/kernel");
  EXPECT_DEATH(notes_.resize(static_cast<size_t>(Ints(memory)[7])),
               "the host touches device memory of dense/kernel");
}

TEST_F(FakeRuntimeDeathTest, ALongNameIsShortened) {
  Memory memory = Allocate(MemoryKind::kDevice, std::string(1000, 'x'));
  int* const address = Ints(memory);
  memory.reset();
  EXPECT_DEATH(*address = 1, "device memory of xxx*, which has been freed\n");
}

TEST_F(FakeRuntimeDeathTest, TheHostCannotTouchPinnedMemoryThatIsInUse) {
  const Memory memory = Allocate(MemoryKind::kDevice, "memory");
  const Memory pinned = Allocate(MemoryKind::kPinned, "images");
  runtime_->Copy(memory.get(), pinned.get(), kBytes, *stream_);
  EXPECT_EQ(Ints(pinned)[0], 0);  // the host and the operation may both read it
  const char* message = "the host touches pinned memory of images, which an operation may use";
  EXPECT_DEATH(Ints(pinned)[0] = 1, message);
  runtime_->Copy(pinned.get(), memory.get(), kBytes, *stream_);
  EXPECT_DEATH(notes_.resize(static_cast<size_t>(Ints(pinned)[7])), message);
  ASSERT_EQ(runtime_->Synchronize(), OkStatus());
  Ints(pinned)[0] = 1;
}

TEST_F(FakeRuntimeDeathTest, OperationsOnTheSameMemoryMustBeOrdered) {
  const Memory memory = Allocate(MemoryKind::kDevice, "memory");
  const Memory copy = Allocate(MemoryKind::kDevice, "copy");
  Add(memory, 1, *stream_, "first");
  const char* message = "reads memory, which first writes, and no stream or event orders the two";
  EXPECT_DEATH(runtime_->Copy(copy.get(), memory.get(), kBytes, *other_), message);
  // The operation "first" may have run by now, but the host has not waited for it.
  for (int i = 0; i < 100; ++i) Note("x", *stream_);
  EXPECT_DEATH(runtime_->Copy(copy.get(), memory.get(), kBytes, *other_), message);
  runtime_->Record(*event_, *stream_);
  runtime_->Wait(*other_, *event_);
  runtime_->Copy(copy.get(), memory.get(), kBytes, *other_);
  EXPECT_EQ(ValueOf(copy), 1);
}

TEST_F(FakeRuntimeDeathTest, OperationsUseOnlyMemoryOfTheDevice) {
  const Memory memory = Allocate(MemoryKind::kDevice, "memory");
  int host = 0;
  EXPECT_DEATH(runtime_->Copy(memory.get(), &host, sizeof host, *stream_),
               "copy uses memory of the host");
  EXPECT_DEATH(runtime_->Copy(memory.get(), Ints(memory) + kCount - 1, 8, *stream_),
               "copy uses bytes 3996 to 4004 of memory, which has 4000");
}

TEST_F(FakeRuntimeDeathTest, MemoryIsNotFreedWhileItIsUsed) {
  Memory memory = Allocate(MemoryKind::kDevice, "memory");
  Add(memory, 1, *stream_);
  EXPECT_DEATH(memory.reset(), "free of memory, which an operation may still use");
  ASSERT_EQ(runtime_->Synchronize(), OkStatus());
  int* const address = Ints(memory);
  memory.reset();
  EXPECT_DEATH(runtime_->Copy(address, address + 1, 4, *stream_), "after its free");
  EXPECT_DEATH(*address = 1, "the host touches device memory of memory, which has been freed");
}

TEST_F(FakeRuntimeDeathTest, ASequenceContainsOnlyOperations) {
  Memory before = Allocate(MemoryKind::kDevice, "memory");
  ASSERT_EQ(runtime_->BeginCapture(*stream_), OkStatus());
  EXPECT_DEATH(before.reset(), "free of memory while a stream captures");
  EXPECT_DEATH(Allocate(MemoryKind::kDevice, "memory"),
               "allocation of memory while a stream captures");
  EXPECT_DEATH(static_cast<void>(runtime_->Synchronize()),
               "synchronisation while a stream captures");
  EXPECT_DEATH(runtime_->Record(*event_, *stream_), "an event is recorded in a sequence");
  EXPECT_DEATH(runtime_->Wait(*stream_, *event_), "a sequence waits for an event");
  ASSERT_TRUE(runtime_->EndCapture(*stream_).ok());
}

}  // namespace
}  // namespace tfjob::device
