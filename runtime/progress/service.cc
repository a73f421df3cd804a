#include "runtime/progress/service.h"

#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/progress/progress.grpc.pb.h"

namespace tfjob::progress {
namespace {

class ProgressServiceImpl : public ProgressService::Service {
 public:
  explicit ProgressServiceImpl(std::function<Progress()> current) : current_(std::move(current)) {}

  grpc::Status Get(grpc::ServerContext*, const GetProgressRequest*,
                   GetProgressReply* reply) override {
    reply->set_json(PrintJson(ToJson(current_())));
    return grpc::Status::OK;
  }

 private:
  const std::function<Progress()> current_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProgressService(std::function<Progress()> current) {
  return std::make_unique<ProgressServiceImpl>(std::move(current));
}

}  // namespace tfjob::progress
