// Sums float32 values over two processes with a bare loop over a single socket, to measure how fast
// a socket can be at best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collectives/communicator.h"

namespace tfjob::bench {

// Performs an all-reduce in place. Each of the two ranks reduces one half of the values. Pieces are
// sent in this order: raw 0, raw 1, reduced 0, raw 2, reduced 1, … Unlike the real transport, the
// loop has no frames and no plans, and does not handle errors: if one process exits, the other
// process also exits.
class BareLoop {
 public:
  // Creates the loop of one rank. `socket` and `values`, which contains float32 elements, are owned
  // by the caller.
  BareLoop(int socket, int rank, std::span<std::byte> values);
  void Run();

 private:
  // Identifies a piece in the above order by its type and its number.
  struct Frame {
    bool raw;
    int64_t piece;
  };
  std::span<std::byte> PieceOf(std::span<std::byte> values, collectives::Slice slice,
                               int64_t piece) const;
  Frame At(int64_t index) const;
  bool MaySend() const;
  bool Send();
  bool Receive();
  void Wait() const;

  const int socket_;
  const bool first_;
  int64_t pieces_ = 1;
  std::vector<std::span<std::byte>> own_, other_;
  std::vector<std::byte> scratch_;
  int64_t sent_ = 0, received_ = 0, sent_bytes_ = 0, received_bytes_ = 0, reduced_ = 0;
};

}  // namespace tfjob::bench
