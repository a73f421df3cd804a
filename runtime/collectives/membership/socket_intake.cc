#include "runtime/collectives/membership/socket_intake.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace tfjob::collectives {
namespace {

constexpr char kPrefix[] = "group-";

}  // namespace

std::string Print(const DataChannel& channel) {
  return StrCat(kPrefix, channel.leader_incarnation, "-", channel.generation);
}

std::optional<DataChannel> ParseDataChannel(const std::string& text) {
  const size_t dash = text.rfind('-');
  const size_t prefix = sizeof kPrefix - 1;
  DataChannel channel;
  if (dash == std::string::npos || dash < prefix ||
      !absl::SimpleAtoi(text.substr(prefix, dash - prefix), &channel.leader_incarnation) ||
      !absl::SimpleAtoi(text.substr(dash + 1), &channel.generation) || Print(channel) != text) {
    return std::nullopt;
  }
  return channel;
}

SocketIntake::SocketIntake(std::vector<std::string> tasks, std::string self)
    : tasks_(std::move(tasks)), self_(std::move(self)) {}

Status SocketIntake::Admit(const DataPeer& peer, const DataChannel& channel) const {
  if (peer.task == self_ || std::ranges::find(tasks_, peer.task) == tasks_.end()) {
    return FailedPrecondition("refused: ", peer.task, " is no other task that trains");
  }
  if (channel == channel_) {
    const auto expected = expected_.find(peer.task);
    if (expected == expected_.end() || expected->second.incarnation != peer.incarnation) {
      return FailedPrecondition("refused: this process of ", peer.task, " has no connection to ",
                                self_, " in generation ", channel.generation);
    }
    if (expected->second.arrived) {
      return FailedPrecondition("refused: ", peer.task, " is already connected to ", self_,
                                " in generation ", channel.generation);
    }
    return OkStatus();
  }
  if (channel.leader_incarnation == channel_.leader_incarnation &&
      channel.generation < channel_.generation) {
    return FailedPrecondition("refused: generation ", channel.generation, " has ended");
  }
  const auto kept = kept_.find(peer.task);
  if (kept != kept_.end() && kept->second.channel == channel &&
      kept->second.incarnation == peer.incarnation) {
    return FailedPrecondition("refused: ", peer.task, " is already connected to ", self_,
                              " in generation ", channel.generation);
  }
  return OkStatus();
}

void SocketIntake::Accept(const DataPeer& peer, const DataChannel& channel, wire::UniqueFd socket) {
  if (!Admit(peer, channel).ok()) return;
  if (channel == channel_) expected_.at(peer.task).arrived = true;
  // Replace a connection that was kept for another generation.
  kept_.insert_or_assign(peer.task, Kept{peer.incarnation, channel, std::move(socket)});
}

void SocketIntake::Begin(const DataChannel& channel, const std::vector<Member>& members, int rank) {
  channel_ = channel;
  expected_.clear();
  for (int other = 0; other < rank; ++other) {
    const Member& member = members[static_cast<size_t>(other)];
    expected_[member.task] = {.rank = other, .incarnation = member.incarnation};
  }
  std::erase_if(kept_, [&](const auto& entry) {
    const auto expected = expected_.find(entry.first);
    const bool fits = entry.second.channel == channel && expected != expected_.end() &&
                      expected->second.incarnation == entry.second.incarnation;
    if (fits) expected->second.arrived = true;
    return !fits;
  });
}

std::vector<std::pair<int, wire::UniqueFd>> SocketIntake::Take() {
  std::vector<std::pair<int, wire::UniqueFd>> sockets;
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    const auto expected = expected_.find(kept->first);
    if (kept->second.channel != channel_ || expected == expected_.end()) {
      ++kept;
      continue;
    }
    sockets.emplace_back(expected->second.rank, std::move(kept->second.socket));
    kept = kept_.erase(kept);
  }
  return sockets;
}

}  // namespace tfjob::collectives
