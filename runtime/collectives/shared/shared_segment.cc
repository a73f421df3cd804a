#include "runtime/collectives/shared/shared_segment.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/collectives/shared/await_socket.h"

namespace tfjob::collectives {
namespace {

constexpr int kAnySize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

StatusOr<std::span<std::byte>> Map(int descriptor, size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    return ErrnoStatus(errno, StrCat("mapping ", bytes, " bytes of shared memory"));
  }
  return std::span(static_cast<std::byte*>(data), bytes);
}

struct alignas(cmsghdr) DescriptorBuffer {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};
// A buffer that is announced with this length has space for one descriptor, and the system closes
// any others. The buffer's full length would have space for two.
constexpr size_t kOneDescriptor = CMSG_LEN(sizeof(int));

wire::UniqueFd DescriptorOf(msghdr& header) {
  cmsghdr* const control = CMSG_FIRSTHDR(&header);
  if (control == nullptr || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS ||
      control->cmsg_len != kOneDescriptor) {
    return {};
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
  return wire::UniqueFd(descriptor);
}

}  // namespace

Segment::Segment(wire::UniqueFd descriptor, std::span<std::byte> bytes)
    : descriptor_(std::move(descriptor)), bytes_(bytes) {}

Segment::~Segment() {
  munmap(bytes_.data(), bytes_.size());
}

StatusOr<std::unique_ptr<Segment>> Segment::Make(size_t bytes) {
  wire::UniqueFd descriptor(memfd_create("tfjob-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.valid()) return ErrnoStatus(errno, "memfd_create");
  if (bytes > INT64_MAX || ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(descriptor.get(), F_ADD_SEALS, kAnySize) != 0) {
    return ErrnoStatus(errno, StrCat("making ", bytes, " bytes of shared memory"));
  }
  ASSIGN_OR_RETURN(const std::span<std::byte> mapped, Map(descriptor.get(), bytes));
  return std::unique_ptr<Segment>(new Segment(std::move(descriptor), mapped));
}

StatusOr<std::unique_ptr<Segment>> Segment::Open(wire::UniqueFd descriptor, size_t bytes) {
  const int seals = fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
    return InvalidArgument(
        "the descriptor is not of shared memory that is sealed against "
        "shrinking");
  }
  struct stat found{};
  if (fstat(descriptor.get(), &found) != 0) return ErrnoStatus(errno, "fstat of shared memory");
  if (found.st_size < 0 || static_cast<size_t>(found.st_size) != bytes) {
    return InvalidArgument("the shared memory has ", found.st_size, " bytes: expected ", bytes);
  }
  ASSIGN_OR_RETURN(const std::span<std::byte> mapped, Map(descriptor.get(), bytes));
  return std::unique_ptr<Segment>(new Segment(std::move(descriptor), mapped));
}

Status Segment::Reserve(size_t begin, size_t bytes) {
  while (fallocate(descriptor_.get(), 0, static_cast<off_t>(begin), static_cast<off_t>(bytes)) !=
         0) {
    if (errno == EINTR) continue;
    if (errno == ENOSPC || errno == ENOMEM) {
      return ResourceExhausted("this machine does not have ", bytes,
                               " more bytes of memory that processes can share");
    }
    return ErrnoStatus(errno, StrCat("reserving ", bytes, " bytes of shared memory"));
  }
  return OkStatus();
}

Status SendMessage(int socket, const SegmentMessage& message, int descriptor) {
  iovec data{.iov_base = const_cast<SegmentMessage*>(&message), .iov_len = sizeof message};
  msghdr header{.msg_iov = &data, .msg_iovlen = 1};
  DescriptorBuffer buffer;
  if (descriptor >= 0) {
    header.msg_control = buffer.bytes.data();
    header.msg_controllen = buffer.bytes.size();
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = kOneDescriptor;
    std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(sizeof message)) return OkStatus();
  return Unavailable("sending to the peer's unix socket: ",
                     sent < 0 ? strerror(errno) : "the socket is full");
}

StatusOr<ReceivedMessage> ReceiveMessage(int socket, Duration deadline,
                                         const Interrupt& interrupt) {
  ReceivedMessage received;
  std::array<std::byte, sizeof(SegmentMessage)> bytes;
  size_t have = 0;
  while (have < bytes.size()) {
    iovec data{.iov_base = bytes.data() + have, .iov_len = bytes.size() - have};
    DescriptorBuffer buffer;
    msghdr header{.msg_iov = &data,
                  .msg_iovlen = 1,
                  .msg_control = buffer.bytes.data(),
                  .msg_controllen = kOneDescriptor};
    const ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) {
      if (wire::UniqueFd found = DescriptorOf(header); found.valid()) {
        received.descriptor = std::move(found);
      }
      have += static_cast<size_t>(got);
      continue;
    }
    if (got == 0) return Unavailable("the peer closed its unix socket");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return ErrnoStatus(errno, "receiving from the peer's unix socket");
    ASSIGN_OR_RETURN(const bool ready, AwaitSocket(socket, POLLIN, deadline, interrupt));
    if (!ready) {
      return DeadlineExceeded("the peer sent ", have, " of ", bytes.size(), " bytes in time");
    }
  }
  std::memcpy(&received.message, bytes.data(), bytes.size());
  return received;
}

}  // namespace tfjob::collectives
