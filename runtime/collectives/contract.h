// Checks that a communicator, with any transport, fulfils the contract of communicator.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/collectives/communicator.h"

namespace tfjob::collectives {

// Runs every operation with spans of about the given numbers of elements, and compares the results
// bit for bit with those of plain loops. All ranks must call CheckOperations with the same counts,
// each for its own communicator. Returns the first difference or error, or "" if there is none.
std::string CheckOperations(Communicator& communicator, const std::vector<int64_t>& counts);

// Returns one hash each for float32, float64, int32, int64, bfloat16 and float16: the hash of a
// sum, over all ranks, of values with very different magnitudes. All ranks must call HashesOfSums.
// The hashes depend only on the number of ranks.
std::vector<uint64_t> HashesOfSums(Communicator& communicator);
// The hashes that HashesOfSums returned for three ranks in the first version with the type. If they
// have changed, the current version does not reproduce the runs of released versions.
inline const std::vector<uint64_t> kHashesOfThreeRanks{14972658825862893739u, 9362735683941651414u,
                                                       4175902642088202431u,  10005582208951552861u,
                                                       2210222666030440683u,  8406595516018049196u};

}  // namespace tfjob::collectives
