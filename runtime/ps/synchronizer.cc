#include "runtime/ps/synchronizer.h"

namespace tfjob::ps {

void Staging::Take(rpc::IncomingFrame& frame, int, size_t length) {
  frame.Skip(length);
}
std::shared_ptr<Staging> Synchronizer::Stage(const protocol::Name&, int64_t,
                                             const std::shared_ptr<Store>&) {
  return nullptr;
}
void Synchronizer::Staged(const protocol::Name&, std::shared_ptr<Staging>) {}
void Synchronizer::Pull(const protocol::Name&, int64_t) {}

}  // namespace tfjob::ps
