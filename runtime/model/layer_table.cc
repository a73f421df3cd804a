#include "runtime/model/layer_table.h"

#include "runtime/model/layer/vector_normalization.h"
#include "runtime/model/layers/activations.h"
#include "runtime/model/layers/activity_regularization.h"
#include "runtime/model/layers/adaptive_pooling.h"
#include "runtime/model/layers/attention.h"
#include "runtime/model/layers/augmentation.h"
#include "runtime/model/layers/categories.h"
#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/layers/convolution.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/dot.h"
#include "runtime/model/layers/einsum_dense.h"
#include "runtime/model/layers/embedding.h"
#include "runtime/model/layers/fixed_normalization.h"
#include "runtime/model/layers/group_normalization.h"
#include "runtime/model/layers/image_size.h"
#include "runtime/model/layers/masking.h"
#include "runtime/model/layers/merge.h"
#include "runtime/model/layers/multi_head_attention.h"
#include "runtime/model/layers/noise.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/layers/pooling.h"
#include "runtime/model/layers/random_transforms.h"
#include "runtime/model/layers/recurrent.h"
#include "runtime/model/layers/resize.h"
#include "runtime/model/rnn.h"
#include "runtime/model/shape.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model {
namespace {

using Layers = std::vector<LayerConfig>;

Layers PlainLayers() {
  using namespace layers;  // NOLINT: the table uses most names of this namespace
  return {Dense{},   EinsumDense{},  Embedding{},  Identity{}, Flatten{}, Reshape{},
          Permute{}, RepeatVector{}, Activation{}, ReLU{},     ELU{},     LeakyReLU{},
          PReLU{},   Softmax{},      Masking{},    Rescaling{}};
}

Layers NoiseAndNormalizationLayers() {
  using namespace layers;  // NOLINT
  return {Dropout{},
          SpatialDropout1D{},
          SpatialDropout2D{},
          SpatialDropout3D{},
          AlphaDropout{},
          GaussianNoise{},
          GaussianDropout{},
          BatchNormalization{},
          LayerNormalization{},
          GroupNormalization{},
          UnitNormalization{},
          ActivityRegularization{},
          RMSNormalization{},
          Normalization{}};
}

// Returns the layers with several inputs.
Layers MergeLayers() {
  using namespace layers;  // NOLINT
  return {Add{},         Subtract{},         Multiply{},
          Average{},     Maximum{},          Minimum{},
          Concatenate{}, layers::Dot{},      MultiHeadAttention{},
          Attention{},   AdditiveAttention{}};
}

// Returns the layers that operate on images and rows.
Layers ImageLayers() {
  using namespace layers;  // NOLINT
  return {Conv1D{},
          Conv2D{},
          DepthwiseConv1D{},
          DepthwiseConv2D{},
          SeparableConv1D{},
          SeparableConv2D{},
          Conv1DTranspose{},
          Conv2DTranspose{},
          MaxPooling1D{},
          MaxPooling2D{},
          AveragePooling1D{},
          AveragePooling2D{},
          GlobalMaxPooling1D{},
          GlobalMaxPooling2D{},
          GlobalAveragePooling1D{},
          GlobalAveragePooling2D{},
          ZeroPadding1D{},
          ZeroPadding2D{},
          Cropping1D{},
          Cropping2D{},
          UpSampling1D{},
          UpSampling2D{}};
}

// Returns the layers that operate on volumes, and those that pool to a fixed size.
Layers VolumeLayers() {
  using namespace layers;  // NOLINT
  return {Conv3D{},
          Conv3DTranspose{},
          MaxPooling3D{},
          AveragePooling3D{},
          GlobalMaxPooling3D{},
          GlobalAveragePooling3D{},
          ZeroPadding3D{},
          Cropping3D{},
          UpSampling3D{},
          AdaptiveMaxPooling1D{},
          AdaptiveMaxPooling2D{},
          AdaptiveMaxPooling3D{},
          AdaptiveAveragePooling1D{},
          AdaptiveAveragePooling2D{},
          AdaptiveAveragePooling3D{}};
}

// Returns the layers that prepare data.
Layers PreprocessingLayers() {
  using namespace layers;  // NOLINT
  return {CategoryEncoding{}, Discretization{}, IntegerLookup{},   Resizing{},
          CenterCrop{},       RandomCrop{},     RandomFlip{},      RandomBrightness{},
          RandomContrast{},   RandomInvert{},   RandomGrayscale{}, RandomTranslation{},
          RandomRotation{},   RandomZoom{},     RandomShear{}};
}

Layers RecurrentLayers() {
  using namespace layers;  // NOLINT
  return {SimpleRNN{},  LSTM{},       GRU{},       Bidirectional{}, TimeDistributed{},
          RNN{},        LSTMCell{},   GRUCell{},   SimpleRNNCell{}, StackedRNNCells{},
          ConvLSTM1D{}, ConvLSTM2D{}, ConvLSTM3D{}};
}

// Returns one layer of each class, with default arguments.
Layers AllLayers() {
  Layers all = {layers::InputLayer{}};
  for (LayerFamily& family : LayerFamilies()) {
    for (LayerConfig& layer : family.layers) all.push_back(std::move(layer));
  }
  return all;
}

}  // namespace

std::vector<LayerFamily> LayerFamilies() {
  return {{"core", PlainLayers()},         {"normalization", NoiseAndNormalizationLayers()},
          {"merge", MergeLayers()},        {"image", ImageLayers()},
          {"volume", VolumeLayers()},      {"preprocessing", PreprocessingLayers()},
          {"recurrent", RecurrentLayers()}};
}

std::vector<std::string> LayerClasses() {
  std::vector<std::string> names;
  for (const LayerConfig& layer : AllLayers()) names.emplace_back(layer.class_name());
  return names;
}

std::optional<LayerConfig> MakeLayer(std::string_view class_name) {
  for (LayerConfig& layer : AllLayers()) {
    if (layer.class_name() == class_name) return std::move(layer);
  }
  return std::nullopt;
}

}  // namespace tfjob::model
