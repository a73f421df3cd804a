// Finds the address family of a host. A socket that other code connects later can be opened only if
// its family is known.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace tfjob::kube {

// Returns AF_INET, AF_INET6, or nullopt if the name does not resolve now. Blocks for as long as
// DNS does.
std::optional<int> FamilyOf(const std::string& host);

// Thread-safe.
class AddressFamily {
 public:
  using Resolve = std::function<std::optional<int>(const std::string& host)>;

  // `family` is the family of `host`, if known.
  AddressFamily(std::string host, std::optional<int> family, Resolve resolve = FamilyOf);

  // nullopt until the name has been resolved.
  std::optional<int> known() const;
  // Resolves the name, unless that has already succeeded or is in progress. Call it after an answer
  // from the host: its name can then be resolved.
  void Learn();

 private:
  const std::string host_;
  const Resolve resolve_;
  std::atomic<int> family_;  // AF_UNSPEC: not known
  std::atomic<bool> resolving_ = false;
};

}  // namespace tfjob::kube
