// Simulates a network with limited bandwidth, for tests.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/transport.h"

namespace tfjob::ps {

// Wraps the streams of another connector. A frame is delivered once its last byte has arrived. Each
// stream has its own bandwidth.
class SlowConnector : public rpc::Connector {
 public:
  SlowConnector(rpc::Connector& inner, double bytes_per_second)
      : inner_(inner), rate_(bytes_per_second) {}
  std::atomic<int> values = 0;  // frames of values that have arrived

  StatusOr<rpc::OpenStream> Connect(const std::string& address, const std::string& service,
                                    const rpc::Identity& self, Duration timeout) override {
    ASSIGN_OR_RETURN(rpc::OpenStream stream, inner_.Connect(address, service, self, timeout));
    stream.transport = std::make_unique<Slow>(*this, std::move(stream.transport));
    return stream;
  }

 private:
  class Slow : public rpc::Transport {
   public:
    Slow(SlowConnector& owner, std::unique_ptr<rpc::Transport> inner)
        : owner_(owner), inner_(std::move(inner)) {}
    Status Write(const rpc::OutgoingFrame& frame) override {
      Travel(rpc::PayloadBytes(frame));
      return inner_->Write(frame);
    }
    Status Read(rpc::IncomingFrame& frame) override {
      RETURN_IF_ERROR(inner_->Read(frame));
      if (frame.header.type == wire::kValues) ++owner_.values;
      Travel(frame.remaining());
      return OkStatus();
    }
    void Cancel() override {
      inner_->Cancel();
      MutexLock lock(mutex_);
      cancelled_ = true;
      changed_.NotifyAll();
    }

   private:
    void Travel(size_t bytes) {
      const auto end =
          std::chrono::steady_clock::now() +
          Duration(static_cast<int64_t>(static_cast<double>(bytes) / owner_.rate_ * 1e6));
      MutexLock lock(mutex_);
      while (!cancelled_ && changed_.WaitUntil(mutex_, end)) {
      }
    }
    SlowConnector& owner_;
    const std::unique_ptr<rpc::Transport> inner_;
    Mutex mutex_;
    CondVar changed_;
    bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  };

  rpc::Connector& inner_;
  const double rate_;
};

}  // namespace tfjob::ps
