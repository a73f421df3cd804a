#include "runtime/wire/loopback_ports.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tfjob::wire {
namespace {

std::string Print(const std::vector<PortRange>& ranges) {
  std::string text;
  for (const PortRange& range : ranges) text += StrCat(range.first, "-", range.last, " ");
  return text;
}

TEST(LoopbackPortsTest, KeepsOutOfTheEphemeralRange) {
  EXPECT_EQ(Print(OutsideEphemeral("32768\t60999\n")), "10000-32767 61000-65535 ");
  EXPECT_EQ(Print(OutsideEphemeral("1024\t60999\n")), "61000-65535 ");
  EXPECT_EQ(Print(OutsideEphemeral("15000\t65535\n")), "10000-14999 ");
  EXPECT_EQ(Print(OutsideEphemeral("1024\t65535\n")), "");
  EXPECT_EQ(Print(OutsideEphemeral("")), "10000-65535 ");
}

int Listen(int32_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 && listen(fd, 1) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

// Returns whether two ranges overlap. Either range may be the lower one, because tests in other
// processes reserve and release ports between two calls of Choose.
bool Overlap(int32_t first, int32_t count, int32_t other, int32_t other_count) {
  return first < other + other_count && other < first + count;
}

TEST(LoopbackPortsTest, RunsDoNotOverlap) {
  LoopbackPorts one, other;
  const auto a = one.Choose(40), b = one.Choose(6), c = other.Choose(6);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok()) << a.status() << b.status() << c.status();
  EXPECT_FALSE(Overlap(*a, 40, *b, 6)) << *a << " " << *b;
  EXPECT_FALSE(Overlap(*a, 40, *c, 6)) << *a << " " << *c;
  EXPECT_FALSE(Overlap(*b, 6, *c, 6)) << *b << " " << *c;
}

// Listens on the fourth port of a range that is free and not reserved, and returns the range's
// first port. Tries again if another process takes the port between the choice and the listen.
int32_t ListenInFirstFreeRange(int& fd) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const StatusOr<int32_t> first = LoopbackPorts().Choose(6);
    if (!first.ok()) return -1;
    fd = Listen(*first + 3);
    if (fd >= 0) return *first;
  }
  return -1;
}

TEST(LoopbackPortsTest, PassesOverPortsInUse) {
  int fd = -1;
  const int32_t first = ListenInFirstFreeRange(fd);
  ASSERT_GE(first, 0);
  LoopbackPorts ports;
  const auto chosen = ports.Choose(6);
  close(fd);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_FALSE(Overlap(*chosen, 6, first + 3, 1)) << *chosen;
}

TEST(LoopbackPortsTest, SaysWhenThereAreNone) {
  EXPECT_TRUE(absl::IsResourceExhausted(LoopbackPorts().Choose(60'000).status()));
}

}  // namespace
}  // namespace tfjob::wire
