// Runs tests on all ranks of a communicator, each on its own thread. Provides tests of the
// guarantees that every transport gives about wrong arguments, limits and memory.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/collectives/communicator.h"

namespace tfjob::collectives {

using Communicators = std::vector<std::unique_ptr<Communicator>>;  // by rank
using MakeCommunicators = std::function<Communicators(int ranks)>;

// Calls the function for every rank, each on its own thread.
void OnAllRanks(const Communicators& communicators, const std::function<void(Communicator&)>& body);

inline std::span<std::byte> Bytes(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

// These functions report failures through GoogleTest.
void ExpectWrongArgumentsEndTheOperationsOfAllRanks(const MakeCommunicators& make);
void ExpectMoreBytesThanAllowedAreAnErrorOnEveryRank(const MakeCommunicators& make);
void ExpectDifferentLimitsAreAnError(const MakeCommunicators& make);
void ExpectReasonsArePrintable(const MakeCommunicators& make);
void ExpectMemoryOutlivesTheCommunicator(const MakeCommunicators& make);

}  // namespace tfjob::collectives
