#include "runtime/ps/rate_record.h"

#include <bit>
#include <sstream>

namespace tfjob::ps {

std::string RateRecord(const state::LearningRate& rate) {
  return StrCat(kRateLine, " rate 0 ", rate.step, " ", std::bit_cast<uint64_t>(rate.rate), "\n");
}

state::LearningRate RateOf(int64_t step, uint64_t bits) {
  return {.rate = std::bit_cast<double>(bits), .step = step};
}

std::optional<state::LearningRate> TakeRate(std::string& ledger) {
  const std::string prefix = StrCat(kRateLine, " ");
  if (!ledger.starts_with(prefix) && ledger.find("\n" + prefix) == std::string::npos)
    return std::nullopt;
  std::optional<state::LearningRate> found;
  std::string rest;
  std::istringstream lines(ledger);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(prefix)) {
      rest += line + "\n";
      continue;
    }
    std::istringstream words(line);
    std::string shard, type, index;
    int64_t step = 0;
    uint64_t bits = 0;
    if (!(words >> shard >> type >> index >> step >> bits) || found) continue;
    const state::LearningRate rate = RateOf(step, bits);
    if (rate.IsValid()) found = rate;
  }
  ledger = std::move(rest);
  return found;
}

}  // namespace tfjob::ps
