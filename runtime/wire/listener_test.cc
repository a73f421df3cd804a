#include "runtime/wire/listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/wire/dial.h"

namespace tfjob::wire {
namespace {

JobKey Key(char digit = '1') {
  return *JobKey::Parse(std::string(64, digit));
}

Duration In(Duration time) {
  return RealClock().Monotonic() + time;
}

// A listener that records its events.
class Door {
 public:
  explicit Door(std::optional<JobKey> key, ListenerOptions options = {.host = "127.0.0.1"}) {
    options.key = std::move(key);
    options.claims = "ps 0";
    options.check = [](std::string_view claims, Purpose) {
      return claims == "nobody" ? FailedPrecondition("nobody may not come in") : OkStatus();
    };
    options.on_peer = [this](ProvenPeer peer) {
      MutexLock lock(mutex_);
      peers_.push_back(std::move(peer));
      changed_.NotifyAll();
    };
    options.on_closed = [this](const std::string& source, const std::string& why, uint64_t) {
      MutexLock lock(mutex_);
      closed_.push_back(StrCat(source, ": ", why));
      changed_.NotifyAll();
    };
    listener_ = *Listener::Start(std::move(options));
  }
  ~Door() { listener_.reset(); }

  std::string address() const { return StrCat("127.0.0.1:", listener_->port()); }
  int port() const { return listener_->port(); }
  // Returns the next connection that was handed over. Waits up to 20 s.
  ProvenPeer NextPeer() {
    MutexLock lock(mutex_);
    while (peers_.empty()) {
      if (!changed_.WaitUntil(mutex_, End())) return {};
    }
    ProvenPeer peer = std::move(peers_.front());
    peers_.erase(peers_.begin());
    return peer;
  }
  std::string FirstClosed() {
    MutexLock lock(mutex_);
    while (closed_.empty()) {
      if (!changed_.WaitUntil(mutex_, End())) return "";
    }
    return closed_.front();
  }
  size_t closed() {
    MutexLock lock(mutex_);
    return closed_.size();
  }

 private:
  static std::chrono::steady_clock::time_point End() {
    return std::chrono::steady_clock::now() + 20s;
  }
  Mutex mutex_;
  CondVar changed_;
  std::vector<ProvenPeer> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> closed_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Listener> listener_;
};

// Opens a connection on which a test sends arbitrary bytes.
UniqueFd Stranger(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

void Say(const UniqueFd& fd, std::string_view bytes) {
  EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// Returns the bytes that arrive until there are `count` of them or the other side closes the
// connection. Waits up to 20 s.
std::string Hear(const UniqueFd& fd, size_t count = SIZE_MAX) {
  std::string heard;
  char buffer[256];
  while (heard.size() < count && AwaitSocket(fd.get(), POLLIN, In(20s))) {
    const ssize_t got = recv(fd.get(), buffer, std::min(count - heard.size(), sizeof buffer), 0);
    if (got <= 0) return heard + (got == 0 ? "<end>" : "<reset>");
    heard.append(buffer, static_cast<size_t>(got));
  }
  return heard;
}

Status DialStatus(const std::string& address, const JobKey* key, const std::string& claims = "") {
  return Dial(address, {.key = key, .claims = claims}).status();
}

TEST(Listener, HandsOverWhoHasProvenTheKey) {
  const JobKey key = Key();
  Door door(key);
  StatusOr<Dialled> dialled = Dial(door.address(), {.key = &key, .claims = "worker 1"});
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  EXPECT_EQ(dialled->peer_claims, "ps 0");
  ProvenPeer peer = door.NextPeer();
  EXPECT_EQ(peer.claims, "worker 1");
  EXPECT_EQ(peer.purpose, Purpose::kGrpc);
  EXPECT_TRUE(peer.address.starts_with("127.0.0.1:")) << peer.address;
  // Neither end has read bytes that follow the hello.
  Say(peer.socket, "from the listener");
  Say(dialled->socket, "from the caller");
  EXPECT_EQ(Hear(dialled->socket, 17), "from the listener");
  EXPECT_EQ(Hear(peer.socket, 15), "from the caller");
  EXPECT_EQ(door.closed(), 0u);
}

// With TCP_USER_TIMEOUT, the kernel would close the connection to a live peer that does not read
// for a while.
TEST(Listener, LetsAPeerReadAsLateAsItLikes) {
  Door door(std::nullopt);
  for (const Purpose purpose : {Purpose::kGrpc, Purpose::kData}) {
    const StatusOr<Dialled> dialled = Dial(door.address(), {.purpose = purpose});
    ASSERT_TRUE(dialled.ok()) << dialled.status();
    const ProvenPeer peer = door.NextPeer();
    for (const UniqueFd* end : {&dialled->socket, &peer.socket}) {
      int timeout = -1;
      socklen_t size = sizeof timeout;
      ASSERT_EQ(getsockopt(end->get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size), 0);
      EXPECT_EQ(timeout, 0);
    }
  }
}

TEST(Listener, RefusesOtherKeysAndDeniesInDetail) {
  const JobKey key = Key(), other = Key('2');
  Door door(key);
  EXPECT_EQ(DialStatus(door.address(), &other).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DialStatus(door.address(), nullptr).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DialStatus(door.address(), &key, "nobody"),
            FailedPrecondition("nobody may not come in"));
  EXPECT_EQ(Dial(door.address(), {.key = &key, .purpose = static_cast<Purpose>(3)}).status().code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(door.FirstClosed(),
            "127.0.0.1: the peer cannot prove the job's key: it has another one, or repeats what "
            "another peer said");
  EXPECT_EQ(door.closed(), 1u);  // all connections come from one address
}

TEST(Listener, TellsAStrangerNothing) {
  Door door(Key());
  UniqueFd stranger = Stranger(door.port());
  Say(stranger, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string heard = Hear(stranger);
  EXPECT_TRUE(heard == "<end>" || heard == "<reset>") << heard;
  EXPECT_EQ(door.FirstClosed(), "127.0.0.1: not a TFJob peer (got \"GET / HT\")");
}

TEST(Listener, GivesASlowHelloNoMoreTimeThanASilentOne) {
  Door door(Key(), {.host = "127.0.0.1", .timeout = 200ms});
  const Duration begin = RealClock().Monotonic();
  UniqueFd stranger = Stranger(door.port());
  Say(stranger, "TFJ");
  EXPECT_FALSE(AwaitSocket(stranger.get(), POLLIN, begin + 100ms));
  Say(stranger, "H");
  EXPECT_EQ(Hear(stranger), "<end>");
  EXPECT_LT(RealClock().Monotonic() - begin, 5s);
  EXPECT_EQ(door.FirstClosed(), "127.0.0.1: no proof within 200ms: it sent only \"TFJH\"");
}

TEST(Listener, ClosesTheOldestOfTooManyStrangers) {
  const JobKey key = Key();
  Door door(key, {.host = "127.0.0.1", .timeout = 60s, .max_unproven = 16});
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(Stranger(door.port()));
  for (int i = 0; i < 84; ++i) EXPECT_EQ(Hear(strangers[static_cast<size_t>(i)]), "<end>") << i;
  EXPECT_EQ(DialStatus(door.address(), &key), OkStatus());
  // The caller with the key displaced one more stranger. The other strangers are still connected.
  for (size_t i = 86; i < 100; ++i) {
    EXPECT_FALSE(AwaitSocket(strangers[i].get(), POLLIN, In(Duration(0)))) << i;
  }
  EXPECT_EQ(door.FirstClosed(),
            "127.0.0.1: too many unproven connections, and it was the oldest: it sent nothing");
}

TEST(Listener, ServesBothFamilies) {
  Door door(std::nullopt, {.host = "0.0.0.0"});
  EXPECT_EQ(DialStatus(door.address(), nullptr), OkStatus());
  EXPECT_TRUE(door.NextPeer().address.starts_with("127.0.0.1:"));
  if (!UniqueFd(socket(AF_INET6, SOCK_STREAM, 0)).valid()) GTEST_SKIP() << "no IPv6 here";
  const Status six = DialStatus(StrCat("[::1]:", door.port()), nullptr);
  if (absl::IsUnavailable(six)) GTEST_SKIP() << six;
  EXPECT_EQ(six, OkStatus());
  EXPECT_TRUE(door.NextPeer().address.starts_with("[::1]:"));
}

TEST(Dial, SaysWhyThereIsNoConnection) {
  std::string address;
  {
    Door door(std::nullopt);
    address = door.address();
  }
  EXPECT_EQ(DialStatus(address, nullptr), Unavailable("Connection refused"));
  EXPECT_EQ(DialUntil(address, {.timeout = 60ms}).status(),
            Unavailable("no connection within 60ms: Connection refused"));
  EXPECT_EQ(DialStatus("nowhere", nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DialStatus("nowhere.invalid:1", nullptr).code(), StatusCode::kUnavailable);
}

TEST(Dial, WaitsForATaskThatIsStarting) {
  int port = 0;
  {
    Door door(std::nullopt);
    port = door.port();
  }
  StatusOr<Dialled> dialled = Internal("not dialled");
  std::thread caller([&] { dialled = DialUntil(StrCat("127.0.0.1:", port), {.timeout = 20s}); });
  Door door(std::nullopt, {.host = "127.0.0.1", .port = port});
  caller.join();
  EXPECT_TRUE(dialled.ok()) << dialled.status();
}

TEST(Dial, DoesNotWaitForAPeerThatDoesNotAnswer) {
  UniqueFd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent.get(), 1), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(DialUntil(StrCat("127.0.0.1:", ntohs(address.sin_port)), {.timeout = 50ms}).status(),
            DeadlineExceeded("no answer to the handshake"));
}

}  // namespace
}  // namespace tfjob::wire
