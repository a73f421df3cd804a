// Finds the address family of a host. A socket that must be open before other code connects it to
// the host must be opened with this family.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace tfjob::kube {

// Returns AF_INET or AF_INET6; nullopt if the name cannot be resolved now. Blocks while it resolves
// the name.
std::optional<int> FamilyOf(const std::string& host);

// Caches the address family of one host. Thread-safe.
class AddressFamily {
 public:
  using Resolve = std::function<std::optional<int>(const std::string& host)>;

  // `family` is the family of `host`, if known.
  AddressFamily(std::string host, std::optional<int> family, Resolve resolve = FamilyOf);

  // Returns the family; nullopt until the name has been resolved.
  std::optional<int> known() const;
  // Resolves the name, unless this has already succeeded or is in progress. Call this after the
  // host has responded, because its name can then be resolved.
  void Learn();

 private:
  const std::string host_;
  const Resolve resolve_;
  std::atomic<int> family_;  // AF_UNSPEC if not known
  std::atomic<bool> resolving_ = false;
};

}  // namespace tfjob::kube
