#include "runtime/rpc/credentials.h"

#include <grpcpp/grpcpp.h>

namespace tfjob::rpc {

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& credentials) {
  switch (credentials.kind) {
    case Credentials::Kind::kInsecure:
      break;
  }
  return grpc::InsecureChannelCredentials();
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const Credentials& credentials) {
  switch (credentials.kind) {
    case Credentials::Kind::kInsecure:
      break;
  }
  return grpc::InsecureServerCredentials();
}

}  // namespace tfjob::rpc
