// Describes the addresses of a job's tasks without listing them: the addresses of all tasks of one
// type differ only in a number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::cluster {

// Returns whether the text is "HOST:PORT" with a port from 1 to 65535. Does not resolve HOST.
bool IsAddress(std::string_view text);

// The addresses of the tasks of one type. The number of task i is first + i.
struct AddressPattern {
  std::string before;
  int32_t first = 0;
  std::string after;

  // Returns the address of a task. The result is not an address (IsAddress) if the number is part
  // of a port and too large.
  std::string operator()(int32_t index) const;

  bool operator==(const AddressPattern&) const = default;
};

// Convert between a pattern and its text, such as "mnist-worker-{index}.ns.svc:2222" or
// "127.0.0.1:{20001+index}". ParseAddressPattern returns InvalidArgument unless the text contains
// exactly one such placeholder, with a number from 0 to 65535, and the address of task 0 is valid.
std::string Print(const AddressPattern& pattern);
StatusOr<AddressPattern> ParseAddressPattern(std::string_view text);

// By the type of the tasks.
using AddressPatterns = std::map<std::string, AddressPattern>;

// The environment variable with the addresses of a job's tasks.
inline constexpr char kAddressPatternsVariable[] = "TFJOB_ADDRESS_PATTERNS";

// Convert between patterns and the JSON object in this variable, such as
//   {"chief":"mnist-chief-{index}.ns.svc:2222","worker":"mnist-worker-{index}.ns.svc:2222"}
// The types are chief, master, worker and evaluator. ParseAddressPatterns returns InvalidArgument,
// which names the variable and the type, if the text is invalid, names another type, or names both
// a chief and a master.
std::string Print(const AddressPatterns& patterns);
StatusOr<AddressPatterns> ParseAddressPatterns(std::string_view text);

}  // namespace tfjob::cluster
