// Of which family the addresses of a host are: what must be known to open a socket before somebody
// else connects it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace tfjob::kube {

// AF_INET, AF_INET6, or nothing when the name does not resolve now. Blocks as long as DNS takes.
std::optional<int> FamilyOf(const std::string& host);

// Thread-safe.
class AddressFamily {
 public:
  using Resolve = std::function<std::optional<int>(const std::string& host)>;

  // `family` is what is known of `host` now.
  AddressFamily(std::string host, std::optional<int> family, Resolve resolve = FamilyOf);

  // Nothing as long as the name has not resolved.
  std::optional<int> known() const;
  // Resolves the name if that has never succeeded and nobody is at it: after an answer of the host,
  // when its name can be resolved.
  void Learn();

 private:
  const std::string host_;
  const Resolve resolve_;
  std::atomic<int> family_;  // AF_UNSPEC: not known
  std::atomic<bool> resolving_ = false;
};

}  // namespace tfjob::kube
