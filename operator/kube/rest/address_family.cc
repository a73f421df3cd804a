#include "operator/kube/rest/address_family.h"

#include <netdb.h>
#include <sys/socket.h>

#include <utility>

namespace tfjob::kube {

std::optional<int> FamilyOf(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const int family = found->ai_family;
  freeaddrinfo(found);
  return family;
}

AddressFamily::AddressFamily(std::string host, std::optional<int> family, Resolve resolve)
    : host_(std::move(host)), resolve_(std::move(resolve)), family_(family.value_or(AF_UNSPEC)) {}

std::optional<int> AddressFamily::known() const {
  const int family = family_;
  if (family == AF_UNSPEC) return std::nullopt;
  return family;
}

void AddressFamily::Learn() {
  if (family_ != AF_UNSPEC || resolving_.exchange(true)) return;
  if (const std::optional<int> family = resolve_(host_)) family_ = *family;
  resolving_ = false;
}

}  // namespace tfjob::kube
