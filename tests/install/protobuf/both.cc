// Implements a user's program that calls its own gRPC service before, during and after training.
// The library contains another copy of gRPC, protobuf and Abseil; the two copies must not mix.
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <tfjob/tfjob.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "greeting.grpc.pb.h"
namespace tj = tfjob;

class Greeter : public greeting::Greeter::Service {
 public:
  grpc::Status Reverse(grpc::ServerContext*, const greeting::Words* request,
                       greeting::Words* answer) override {
    for (int i = request->words_size(); i-- > 0;) answer->add_words(request->words(i));
    return grpc::Status::OK;
  }
};

void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "not true: " << what << "\n";
  std::exit(1);
}

// Calls the service, and checks the answer. Prints the answer as text and parses the text, to test
// both with Debian's protobuf.
void Call(greeting::Greeter::Stub& stub) {
  greeting::Words request, answer, parsed;
  request.add_words("there");
  request.add_words("hello");
  grpc::ClientContext context;
  const grpc::Status status = stub.Reverse(&context, request, &answer);
  Check(status.ok(), "the service answers: " + status.error_message());
  std::string text;
  Check(google::protobuf::TextFormat::PrintToString(answer, &text), "the answer can be printed");
  Check(google::protobuf::TextFormat::ParseFromString(text, &parsed), "the text can be parsed");
  Check(parsed.words_size() == 2 && parsed.words(0) == "hello", "the words are reversed");
}

int main() {
  Greeter service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Check(server != nullptr && port > 0, "the server has a port");
  const auto stub = greeting::Greeter::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  Call(*stub);

  tj::Tensor x(tj::DType::kFloat32, {32, 4}), y(tj::DType::kFloat32, {32, 1});
  for (size_t i = 0; i < 128; ++i) x.float32()[i] = static_cast<float>(i % 7) / 7;
  tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  tj::CompiledModel model =
      session
          .Compile(tj::Sequential({tj::Dense{.units = 1}}),
                   {.optimizer = tj::SGD{.learning_rate = 0.1}, .loss = tj::MeanSquaredError{}})
          .value();
  const tj::LambdaCallback call = {
      .on_epoch_end = [&](tj::FitControl&, int64_t, const tj::Metrics&) {
        Call(*stub);
        return tj::Status();
      }};
  model.Fit(tj::data::Arrays{.x = x, .y = y}, {.epochs = 5, .callbacks = {call}}).value();
  Call(*stub);
  const std::string folder = std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp";
  model.SaveCheckpoint(folder + "/both").value();  // uses the library's protobuf
  Call(*stub);
  server->Shutdown();
}
