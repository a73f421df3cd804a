// Trains a generative adversarial network on images of clothes, with a custom training loop:
// several steps of the discriminator per step of the generator.
#include <tfjob/tfjob.h>

#include <iostream>
#include <string>
#include <vector>
namespace tj = tfjob;
namespace ops = tj::ops;

namespace {

constexpr int64_t kNoise = 32;          // random numbers from which the generator creates an image
constexpr int kDiscriminatorSteps = 2;  // per step of the generator
using Inputs = std::vector<tj::Symbol>;

tj::Model Generator() {
  return tj::Sequential(
      {tj::Input{.shape = {kNoise}}, tj::Dense{.units = 128, .activation = "relu"},
       tj::Dense{.units = 784, .activation = "sigmoid"}, tj::Reshape{.target_shape = {28, 28}}},
      "generator");
}

tj::Model Discriminator() {
  return tj::Sequential(
      {tj::Input{.shape = {28, 28}}, tj::Flatten{}, tj::Dense{.units = 128},
       tj::LeakyReLU{.negative_slope = 0.2}, tj::Dropout{.rate = 0.3}, tj::Dense{.units = 1}},
      "discriminator");
}

// The cross-entropy for the label 1, as the mean over the examples of all replicas.
tj::Symbol LossOf(tj::Step& step, const tj::Symbol& logits) {
  return -ops::Sum(ops::LogSigmoid(logits)) / step.NumExamples();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t epochs = argc > 1 ? std::stoll(argv[1]) : 5;
  const tj::Dataset images =
      tj::data::FashionMnist("/usr/share/datasets/fashion-mnist").value().train;
  const tj::Session session(tj::Strategy::FromEnvironment());
  const tj::CompileOptions how = {.optimizer = tj::Adam{.learning_rate = 2e-4, .beta_1 = 0.5}};
  const tj::CompiledModel generator = session.Compile(Generator(), how).value();
  const tj::CompiledModel discriminator = session.Compile(Discriminator(), how).value();

  tj::Function train_discriminator =
      session
          .Function({{.shape = {28, 28}}},
                    [&](tj::Step& step, const Inputs& in) {
                      const tj::Symbol fake = step.Call(generator, step.RandomNormal({kNoise}));
                      const tj::Symbol loss = LossOf(step, step.Call(discriminator, in[0])) +
                                              LossOf(step, -step.Call(discriminator, fake));
                      step.Minimize(discriminator, loss);
                      step.Return("loss", step.Reduce(tj::Reduction::kSum, loss));
                    })
          .value();
  // Uses the number of images, but not the images.
  tj::Function train_generator =
      session
          .Function({{.shape = {28, 28}}},
                    [&](tj::Step& step, const Inputs&) {
                      const tj::Symbol fake = step.Call(generator, step.RandomNormal({kNoise}));
                      const tj::Symbol loss = LossOf(step, step.Call(discriminator, fake));
                      step.Minimize(generator, loss);
                      step.Return("loss", step.Reduce(tj::Reduction::kSum, loss));
                    })
          .value();

  int64_t batches = 0;
  for (const tj::Batch& batch :
       session.Distribute(images, {.batch_size = 128, .epochs = epochs, .drop_remainder = true})
           .value()) {
    const double real_or_fake = train_discriminator(batch).value().number("loss");
    if (++batches % kDiscriminatorSteps != 0) continue;
    const double fooled = train_generator(batch).value().number("loss");
    if (batches % 100 == 0)
      std::cout << batches << " discriminator " << real_or_fake << " generator " << fooled << "\n";
  }
  generator.Save("/tmp/generator.safetensors").value();
}
