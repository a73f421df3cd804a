#include "runtime/device/cpu_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace tfjob::device {
namespace {

std::span<int> Ints(const Memory& memory, size_t count) {
  return {static_cast<int*>(memory.get()), count};
}

TEST(CpuRuntime, AllKindsOfMemoryAreHostMemory) {
  for (const MemoryKind kind : {MemoryKind::kHost, MemoryKind::kPinned, MemoryKind::kDevice}) {
    const auto memory = CpuRuntime()->Allocate(kind, 40, Buffer::Contents::kZero, "ints");
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->get()) % 64, 0U);
    EXPECT_EQ(std::ranges::count(Ints(*memory, 10), 0), 10) << Name(kind);
    Ints(*memory, 10)[9] = 1;
  }
}

TEST(CpuRuntime, OperationsRunAtOnce) {
  DeviceRuntime& cpu = *CpuRuntime();
  EXPECT_TRUE(cpu.immediate());
  const auto stream = *cpu.NewStream();
  const int from = 7;
  int to = 0;
  cpu.Copy(&to, &from, sizeof to, *stream);
  EXPECT_EQ(to, 7);
  cpu.Copy(nullptr, nullptr, 0, *stream);
}

TEST(CpuRuntime, CannotCapture) {
  const auto stream = *CpuRuntime()->NewStream();
  EXPECT_EQ(CpuRuntime()->BeginCapture(*stream).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(CpuRuntime()->EndCapture(*stream).status().code(), StatusCode::kUnimplemented);
}

TEST(CpuRuntime, RefusesMoreMemoryThanTheMachineHas) {
  const auto memory = CpuRuntime()->Allocate(MemoryKind::kDevice, size_t{1} << 60,
                                             Buffer::Contents::kZero, "the program");
  EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(memory.status()).find("the program needs 1152921504606846976 bytes"), 0U);
}

}  // namespace
}  // namespace tfjob::device
