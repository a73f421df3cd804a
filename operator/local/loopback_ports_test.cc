#include "operator/local/loopback_ports.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tfjob::local {
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
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return -1;
  return listen(fd, 1) == 0 ? fd : -1;
}

TEST(LoopbackPortsTest, RunsDoNotOverlap) {
  LoopbackPorts one, other;
  const auto a = one.Choose(40), b = one.Choose(6), c = other.Choose(6);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok()) << a.status() << b.status() << c.status();
  EXPECT_GE(*b, *a + 40);
  EXPECT_GE(*c, *b + 6);
}

TEST(LoopbackPortsTest, PassesOverPortsInUse) {
  int32_t first = 0;
  {
    LoopbackPorts ports;
    first = *ports.Choose(6);
  }
  const int fd = Listen(first + 3);
  ASSERT_GE(fd, 0);
  LoopbackPorts ports;
  const auto chosen = ports.Choose(6);
  close(fd);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_TRUE(*chosen > first + 3 || *chosen + 6 <= first + 3) << *chosen;
}

TEST(LoopbackPortsTest, SaysWhenThereAreNone) {
  EXPECT_TRUE(absl::IsResourceExhausted(LoopbackPorts().Choose(60'000).status()));
}

}  // namespace
}  // namespace tfjob::local
