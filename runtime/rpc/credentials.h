// Defines how a channel or a server protects its traffic.
#pragma once

#include <memory>

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace tfjob::rpc {

struct Credentials {
  enum class Kind { kInsecure };
  Kind kind = Kind::kInsecure;

  static Credentials Insecure() { return {}; }
};

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& credentials);
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const Credentials& credentials);

}  // namespace tfjob::rpc
