#include "runtime/data/operators/interleaving.h"

#include <algorithm>
#include <optional>

namespace tfjob::data {

// Computes the rounds of the cycle as tf.data does, but skips many rounds at once while no source
// ends.
class Interleaving::Builder {
 public:
  Builder(std::span<const int64_t> sizes, int64_t cycle_length, int64_t block_length)
      : sizes_(sizes),
        block_(block_length),
        cycle_(static_cast<size_t>(
            std::min<int64_t>(cycle_length, static_cast<int64_t>(sizes.size())))) {}

  StatusOr<Interleaving> Build() {
    while (open_ > 0 || next_ < sizes_.size()) {
      if (made_.turns_.size() > static_cast<size_t>(kMostPlaces)) {
        return InvalidArgument("too many datasets of different sizes are interleaved; use a ",
                               "smaller cycle_length");
      }
      Fill();
      SkipRounds();
      TakeRound();
    }
    return std::move(made_);
  }

 private:
  // Fills the free places in the cycle with the next sources, in the order of the turns.
  void Fill() {
    for (std::optional<Place>& slot : cycle_) {
      if (slot || next_ == sizes_.size()) continue;
      slot = Place{next_++, 0};
      ++open_;
    }
  }

  int64_t Left(const Place& place) const { return sizes_[place.source] - place.row; }

  // Adds the following rounds, as long as every source has a full block, as a single Round.
  void SkipRounds() {
    int64_t rounds = INT64_MAX;
    for (const auto& slot : cycle_) {
      if (slot) rounds = std::min(rounds, Left(*slot) / block_);
    }
    if (open_ == 0 || rounds == 0) return;
    made_.rounds_.push_back({made_.size_, block_, made_.turns_.size(), open_});
    for (auto& slot : cycle_) {
      if (!slot) continue;
      made_.turns_.push_back(*slot);
      slot->row += rounds * block_;
      made_.size_ += rounds * block_;
    }
  }

  // Adds one block of every source. As in tf.data, a source leaves the cycle only when the cycle
  // needs an example that the source does not have. If the source's last block was full, the source
  // leaves in its next turn, without an example.
  void TakeRound() {
    for (auto& slot : cycle_) {
      if (!slot) continue;
      const int64_t block = std::min(block_, Left(*slot));
      if (block > 0) TakeBlock(*slot, block);
      if (block == block_) continue;
      slot.reset();
      --open_;
    }
  }

  void TakeBlock(Place& from, int64_t block) {
    made_.rounds_.push_back({made_.size_, block, made_.turns_.size(), 1});
    made_.turns_.push_back(from);
    from.row += block;
    made_.size_ += block;
  }

  const std::span<const int64_t> sizes_;
  const int64_t block_;
  std::vector<std::optional<Place>> cycle_;
  size_t next_ = 0;  // the first source that has not started
  size_t open_ = 0;  // number of sources in the cycle
  Interleaving made_;
};

StatusOr<Interleaving> Interleaving::Create(std::span<const int64_t> sizes, int64_t cycle_length,
                                            int64_t block_length) {
  if (cycle_length < 1)
    return InvalidArgument("cycle_length: expected at least 1, got ", cycle_length);
  if (block_length < 1)
    return InvalidArgument("block_length: expected at least 1, got ", block_length);
  return Builder(sizes, cycle_length, block_length).Build();
}

Place Interleaving::At(int64_t index) const {
  const auto after = std::ranges::upper_bound(rounds_, index, {}, &Round::begin);
  const Round& round = *std::prev(after);
  const int64_t block = (index - round.begin) / round.block;
  const auto turns = static_cast<int64_t>(round.turns);
  Place place = turns_[round.first + static_cast<size_t>(block % turns)];
  place.row += block / turns * round.block + (index - round.begin) % round.block;
  return place;
}

}  // namespace tfjob::data
