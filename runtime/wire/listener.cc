#include "runtime/wire/listener.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "runtime/base/log.h"
#include "runtime/base/thread_pool.h"
#include "runtime/wire/bind.h"

namespace tfjob::wire {
namespace {

constexpr Logger kWireLog("wire");
constexpr uint64_t kStopId = 0, kSocketId = 1, kFirstId = 2;
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kPauseWithoutDescriptors = 1s;

void LogClosed(const std::string& source, const std::string& why, uint64_t left_out) {
  kWireLog.Warning("closed a connection",
                   {{"from", source}, {"why", why}, {"not_logged", left_out}});
}

// Describes the progress of an unfinished hello.
std::string Reached(const ListenerHello& hello) {
  if (hello.opened()) return "it did not prove the job's key";
  if (hello.begun().empty()) return "it sent nothing";
  return StrCat("it sent only ", Printable(hello.begun()));
}

}  // namespace

StatusOr<std::unique_ptr<Listener>> Listener::Start(ListenerOptions options) {
  ASSIGN_OR_RETURN(BoundSocket bound, Bind(options.host, options.port));
  UniqueFd poll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!poll.valid() || !stop.valid()) return ErrnoStatus(errno, "epoll_create1 or eventfd");
  std::unique_ptr<Listener> listener(new Listener(std::move(options), std::move(bound.socket),
                                                  std::move(poll), std::move(stop), bound.port));
  if (!listener->Watch(listener->stop_.get(), kStopId) ||
      !listener->Watch(listener->socket_.get(), kSocketId)) {
    return ErrnoStatus(errno, "epoll_ctl");
  }
  try {
    listener->thread_ = std::thread([raw = listener.get()] { raw->Run(); });
  } catch (const std::system_error& error) {
    return ResourceExhausted("no thread can be started: ", error.what());
  }
  return listener;
}

Listener::Listener(ListenerOptions options, UniqueFd socket, UniqueFd poll, UniqueFd stop, int port)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      poll_(std::move(poll)),
      stop_(std::move(stop)),
      port_(port),
      next_id_(kFirstId) {}

Listener::~Listener() {
  Stop();
}

void Listener::Stop() {
  if (!thread_.joinable()) return;
  (void)eventfd_write(stop_.get(), 1);
  thread_.join();
  socket_.Close();
  unproven_.clear();
}

bool Listener::Watch(int fd, uint64_t id) const {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  return epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Listener::Run() {
  SetThreadName("wire-listener");
  epoll_event events[64];
  while (true) {
    const int ready = epoll_wait(poll_.get(), events, std::size(events), PollTimeoutMs());
    for (int i = 0; i < ready; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kStopId) return;
      if (id == kSocketId) {
        AcceptAll();
      } else {
        Read(id);
      }
    }
    CloseOverdue();
  }
}

int Listener::PollTimeoutMs() const {
  Duration next = Duration::max();
  if (!unproven_.empty()) next = unproven_.begin()->second.deadline;
  if (paused_until_) next = std::min(next, *paused_until_);
  if (next == Duration::max()) return -1;
  const Duration left = std::max(next - RealClock().Monotonic(), Duration(0));
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void Listener::AcceptAll() {
  for (int i = 0; i < kAcceptsPerTurn && AcceptOne(); ++i) {
  }
}

bool Listener::AcceptOne() {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  UniqueFd socket(accept4(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.valid()) {
    Add(std::move(socket), address);
    return true;
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    OutOfDescriptors();
    return false;
  }
  // All other errors concern only the connection being accepted, which is already closed.
  return errno != EAGAIN && errno != EWOULDBLOCK;
}

// Closes the oldest unproven connection or, if there is none, stops accepting for a while. Without
// this pause, the waiting connection, which cannot be accepted, would wake the thread again at
// once.
void Listener::OutOfDescriptors() {
  if (!unproven_.empty()) {
    Close(unproven_.begin(), "this process has no descriptor left");
    return;
  }
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
  paused_until_ = RealClock().Monotonic() + kPauseWithoutDescriptors;
}

void Listener::Add(UniqueFd socket, const sockaddr_storage& address) {
  const uint64_t id = next_id_++;
  if (!Watch(socket.get(), id)) return;
  PrepareSocket(socket.get());
  const JobKey* key = options_.key ? &*options_.key : nullptr;
  unproven_.emplace(
      id, Unproven{.socket = std::move(socket),
                   .host = HostText(address),
                   .address = AddressText(address),
                   .deadline = RealClock().Monotonic() + options_.timeout,
                   .hello = ListenerHello(key, &options_.claims, &options_.check, NewNonce())});
  if (unproven_.size() > options_.max_unproven) {
    Close(unproven_.begin(), StrCat("too many unproven connections, and it was the oldest: ",
                                    Reached(unproven_.begin()->second.hello)));
  }
}

void Listener::Read(uint64_t id) {
  const auto connection = unproven_.find(id);
  if (connection == unproven_.end()) return;  // closed by an earlier event of the same iteration
  Unproven& peer = connection->second;
  char buffer[2048];
  while (!peer.hello.done()) {
    const size_t wanted = std::min(peer.hello.wanted(), sizeof buffer);
    const ssize_t got = recv(peer.socket.get(), buffer, wanted, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got < 0) return Close(connection, StrCat("it broke: ", std::strerror(errno)));
    if (got == 0) return Close(connection, StrCat("the peer closed it: ", Reached(peer.hello)));
    const Status status = peer.hello.Feed({buffer, static_cast<size_t>(got)});
    const bool answered = Answer(peer);
    if (!status.ok()) return Close(connection, std::string(Message(status)));
    if (!answered) return Close(connection, "it takes no answer");
  }
  HandOver(connection);
}

bool Listener::Answer(Unproven& peer) {
  const std::string output = peer.hello.TakeOutput();
  if (output.empty()) return true;
  // The send buffer of a new socket is larger than all messages of the hello, so this call does not
  // block.
  const ssize_t sent = send(peer.socket.get(), output.data(), output.size(), MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(output.size());
}

void Listener::HandOver(Connections::iterator connection) {
  Unproven peer = std::move(connection->second);
  unproven_.erase(connection);
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
  options_.on_peer({.socket = std::move(peer.socket),
                    .address = std::move(peer.address),
                    .claims = peer.hello.peer_claims(),
                    .purpose = peer.hello.purpose()});
}

void Listener::CloseOverdue() {
  const Duration now = RealClock().Monotonic();
  while (!unproven_.empty() && unproven_.begin()->second.deadline <= now) {
    Close(unproven_.begin(), StrCat("no proof within ", FormatDuration(options_.timeout), ": ",
                                    Reached(unproven_.begin()->second.hello)));
  }
  if (paused_until_ && *paused_until_ <= now) {
    paused_until_.reset();
    Watch(socket_.get(), kSocketId);
  }
}

void Listener::Close(Connections::iterator connection, const std::string& why) {
  const Unproven peer = std::move(connection->second);
  unproven_.erase(connection);
  const auto left_out = log_.Note(peer.host, RealClock().Monotonic());
  if (!left_out) return;
  (options_.on_closed ? options_.on_closed : LogClosed)(peer.host, why, *left_out);
}

}  // namespace tfjob::wire
