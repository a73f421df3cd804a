// Examples of layers.h: each layer computes an output from two examples.
#include <gtest/gtest.h>

#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace
using Shape = std::vector<int64_t>;

// Returns the shape of `y` for two examples of the input `x`.
Shape ShapeOf(const Symbol& x, const Tensor& examples, const Symbol& y) {
  const Session session(Strategy::OneDevice(), {.threads = 1});
  Result<CompiledModel> model = session.Compile(Functional(x, y), {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  const Result<Tensor> values = model->Predict(examples);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? values->shape() : Shape{};
}

// An input, and two examples of it.
struct Examples {
  explicit Examples(const Shape& shape, DType dtype = DType::kFloat32)
      : x(Input{.shape = shape, .dtype = Name(dtype)}) {
    Shape all = shape;
    all.insert(all.begin(), 2);
    examples = Tensor(dtype, all);
  }
  Shape operator()(const Symbol& y) const { return ShapeOf(x, examples, y); }

  Symbol x;
  Tensor examples;
};

TEST(LayerExamples, Core) {
  const Examples vector({8});
  const Symbol& x = vector.x;
  // [Dense]
  const Symbol hidden = Dense{.units = 4, .activation = "relu"}(x);
  // [end]
  EXPECT_EQ(vector(hidden), (Shape{2, 4}));
  // [Identity, Activation]
  const Symbol squashed = Activation{.activation = "tanh"}(Identity{}(x));
  // [end]
  EXPECT_EQ(vector(squashed), (Shape{2, 8}));
  // [Reshape, Permute]
  const Symbol matrix = Reshape{.target_shape = {2, 4}}(x);
  const Symbol transposed = Permute{.dims = {2, 1}}(matrix);
  // [end]
  EXPECT_EQ(vector(transposed), (Shape{2, 4, 2}));
  // [Flatten, RepeatVector]
  const Symbol repeated = RepeatVector{.n = 3}(x);  // 3 steps of 8 numbers
  const Symbol flat = Flatten{}(repeated);          // 24 numbers
  // [end]
  EXPECT_EQ(vector(flat), (Shape{2, 24}));
  // [EinsumDense]
  const Symbol projected =
      EinsumDense{.equation = "abc,cd->abd", .output_shape = {-1, 5}, .bias_axes = "d"}(repeated);
  // [end]
  EXPECT_EQ(vector(projected), (Shape{2, 3, 5}));
  // [ReLU, ELU, LeakyReLU, PReLU, Softmax]
  const Symbol capped = ReLU{.max_value = 6}(x);
  const Symbol smooth = ELU{.alpha = 0.5}(capped);
  const Symbol leaky = LeakyReLU{.negative_slope = 0.1}(smooth);
  const Symbol learned = PReLU{}(leaky);
  const Symbol probabilities = Softmax{}(learned);
  // [end]
  EXPECT_EQ(vector(probabilities), (Shape{2, 8}));
  // [Rescaling]
  const Symbol centred = Rescaling{.scale = 1 / 127.5, .offset = -1}(x);  // [0, 255] to [-1, 1]
  // [end]
  EXPECT_EQ(vector(centred), (Shape{2, 8}));
  // [Masking]
  const Symbol masked = Masking{.mask_value = 0}(repeated);  // later layers skip steps of zeros
  const Symbol last = LSTM{.units = 4}(masked);
  // [end]
  EXPECT_EQ(vector(last), (Shape{2, 4}));
}

TEST(LayerExamples, Tokens) {
  const Examples tokens({6}, DType::kInt64);
  const Symbol& ids = tokens.x;
  // [Embedding]
  const Symbol vectors = Embedding{.input_dim = 1000, .output_dim = 16, .mask_zero = true}(ids);
  // [end]
  EXPECT_EQ(tokens(vectors), (Shape{2, 6, 16}));
  // [CategoryEncoding, IntegerLookup]
  const Symbol indices = IntegerLookup{.vocabulary = {0, 7, 9}}(ids);  // 0 for other numbers
  const Symbol counts = CategoryEncoding{.num_tokens = 4, .output_mode = "count"}(indices);
  // [end]
  EXPECT_EQ(tokens(counts), (Shape{2, 4}));
  const Examples numbers({3});
  const Symbol& ages = numbers.x;
  // [Discretization]
  const Symbol groups = Discretization{.bin_boundaries = {18, 65}}(ages);  // 0, 1 or 2
  // [end]
  EXPECT_EQ(numbers(ops::Cast(groups, "float32")), (Shape{2, 3}));
}

TEST(LayerExamples, Sequences) {
  const Examples sequence({10, 4});
  const Symbol& x = sequence.x;
  // [SimpleRNN, LSTM, GRU]
  const Symbol all_steps = GRU{.units = 8, .return_sequences = true}(x);
  const Symbol more = SimpleRNN{.units = 8, .return_sequences = true}(all_steps);
  const Symbol last = LSTM{.units = 16, .dropout = 0.2}(more);
  // [end]
  EXPECT_EQ(sequence(last), (Shape{2, 16}));
  // [Bidirectional]
  const Symbol both = Bidirectional{.layer = LSTM{.units = 8}, .merge_mode = "concat"}(x);
  // [end]
  EXPECT_EQ(sequence(both), (Shape{2, 16}));
  // [TimeDistributed]
  const Symbol each = TimeDistributed{.layer = Dense{.units = 3}}(x);
  // [end]
  EXPECT_EQ(sequence(each), (Shape{2, 10, 3}));
  // [RNN, StackedRNNCells, LSTMCell, GRUCell, SimpleRNNCell]
  const Symbol stacked =
      RNN{.cell = StackedRNNCells{
              .cells = {LSTMCell{.units = 8}, GRUCell{.units = 8}, SimpleRNNCell{.units = 4}}}}(x);
  // [end]
  EXPECT_EQ(sequence(stacked), (Shape{2, 4}));
  // [Conv1D, SeparableConv1D, DepthwiseConv1D, Conv1DTranspose]
  const Symbol filtered = Conv1D{.filters = 8, .kernel_size = 3, .padding = "same"}(x);
  const Symbol per_channel = DepthwiseConv1D{.kernel_size = 3, .padding = "same"}(filtered);
  const Symbol separable =
      SeparableConv1D{.filters = 8, .kernel_size = 3, .strides = 2}(per_channel);
  const Symbol longer = Conv1DTranspose{.filters = 4, .kernel_size = 2, .strides = 2}(separable);
  // [end]
  EXPECT_EQ(sequence(longer), (Shape{2, 8, 4}));
  // [MaxPooling1D, AveragePooling1D, UpSampling1D]
  const Symbol halved = MaxPooling1D{.pool_size = 2, .strides = 2}(x);           // 5 steps
  const Symbol smooth = AveragePooling1D{.pool_size = 3, .strides = 1}(halved);  // 3 steps
  const Symbol repeated = UpSampling1D{.size = 2}(smooth);                       // 6 steps
  // [end]
  EXPECT_EQ(sequence(repeated), (Shape{2, 6, 4}));
  // [GlobalMaxPooling1D, GlobalAveragePooling1D]
  const Symbol summary =
      Concatenate{}({GlobalMaxPooling1D{}(x), GlobalAveragePooling1D{}(x)});  // 8 numbers
  // [end]
  EXPECT_EQ(sequence(summary), (Shape{2, 8}));
  // [ZeroPadding1D, Cropping1D]
  const Symbol padded = ZeroPadding1D{.padding = {1, 2}}(x);      // 13 steps
  const Symbol cropped = Cropping1D{.cropping = {1, 2}}(padded);  // 10 steps
  // [end]
  EXPECT_EQ(sequence(cropped), (Shape{2, 10, 4}));
  // [AdaptiveMaxPooling1D, AdaptiveAveragePooling1D]
  const Symbol five = AdaptiveMaxPooling1D{.output_size = 5}(x);  // 5 steps of any number
  const Symbol two = AdaptiveAveragePooling1D{.output_size = 2}(five);
  // [end]
  EXPECT_EQ(sequence(two), (Shape{2, 2, 4}));
}

TEST(LayerExamples, Images) {
  const Examples image({8, 8, 4});
  const Symbol& x = image.x;
  // [Conv2D, DepthwiseConv2D, SeparableConv2D, Conv2DTranspose]
  const Symbol filtered = Conv2D{.filters = 16, .kernel_size = 3, .padding = "same"}(x);
  const Symbol per_channel = DepthwiseConv2D{.kernel_size = 3, .padding = "same"}(filtered);
  const Symbol separable =
      SeparableConv2D{.filters = 8, .kernel_size = 3, .padding = "same"}(per_channel);
  const Symbol larger = Conv2DTranspose{.filters = 4, .kernel_size = 2, .strides = 2}(separable);
  // [end]
  EXPECT_EQ(image(larger), (Shape{2, 16, 16, 4}));
  // [MaxPooling2D, AveragePooling2D, UpSampling2D]
  const Symbol halved = MaxPooling2D{}(x);                                            // 4 × 4
  const Symbol smooth = AveragePooling2D{.pool_size = {2, 2}, .strides = 1}(halved);  // 3 × 3
  const Symbol enlarged = UpSampling2D{.size = {2, 2}}(smooth);                       // 6 × 6
  // [end]
  EXPECT_EQ(image(enlarged), (Shape{2, 6, 6, 4}));
  // [GlobalMaxPooling2D, GlobalAveragePooling2D]
  const Symbol summary = Concatenate{}({GlobalMaxPooling2D{}(x), GlobalAveragePooling2D{}(x)});
  // [end]
  EXPECT_EQ(image(summary), (Shape{2, 8}));
  // [ZeroPadding2D, Cropping2D]
  const Symbol padded = ZeroPadding2D{.padding = {1, 1, 2, 2}}(x);      // 10 × 12
  const Symbol cropped = Cropping2D{.cropping = {1, 1, 2, 2}}(padded);  // 8 × 8
  // [end]
  EXPECT_EQ(image(cropped), (Shape{2, 8, 8, 4}));
  // [AdaptiveMaxPooling2D, AdaptiveAveragePooling2D]
  const Symbol four = AdaptiveMaxPooling2D{.output_size = {4, 4}}(x);
  const Symbol one = AdaptiveAveragePooling2D{.output_size = {1, 1}}(four);
  // [end]
  EXPECT_EQ(image(one), (Shape{2, 1, 1, 4}));
  // [SpatialDropout2D]
  const Symbol fewer_channels = SpatialDropout2D{.rate = 0.2}(x);  // drops whole channels
  // [end]
  EXPECT_EQ(image(fewer_channels), (Shape{2, 8, 8, 4}));
  const Examples video({5, 8, 8, 2});
  const Symbol& frames = video.x;
  // [ConvLSTM2D]
  const Symbol scene = ConvLSTM2D{.filters = 4, .kernel_size = 3, .padding = "same"}(frames);
  // [end]
  EXPECT_EQ(video(scene), (Shape{2, 8, 8, 4}));
  const Examples scans({5, 4, 4, 4, 2});
  const Symbol& volumes = scans.x;
  // [ConvLSTM3D]
  const Symbol last_volume = ConvLSTM3D{.filters = 4, .kernel_size = 3}(volumes);
  // [end]
  EXPECT_EQ(scans(last_volume), (Shape{2, 2, 2, 2, 4}));
  const Examples rows({5, 8, 2});
  const Symbol& lines = rows.x;
  // [ConvLSTM1D]
  const Symbol line = ConvLSTM1D{.filters = 4, .kernel_size = 3, .padding = "same"}(lines);
  // [end]
  EXPECT_EQ(rows(line), (Shape{2, 8, 4}));
}

TEST(LayerExamples, Augmentation) {
  const Examples photo({8, 8, 3});
  const Symbol& x = photo.x;
  // [Resizing, CenterCrop]
  const Symbol square = Resizing{.height = 16, .width = 12, .interpolation = "bicubic"}(x);
  const Symbol centre = CenterCrop{.height = 8, .width = 8}(square);
  // [end]
  EXPECT_EQ(photo(centre), (Shape{2, 8, 8, 3}));
  // [RandomCrop, RandomFlip]
  const Symbol part = RandomCrop{.height = 6, .width = 6}(x);
  const Symbol flipped = RandomFlip{.mode = "horizontal"}(part);  // changes nothing in Predict
  // [end]
  EXPECT_EQ(photo(flipped), (Shape{2, 6, 6, 3}));
  // [RandomBrightness, RandomContrast, RandomInvert, RandomGrayscale]
  const Symbol brighter = RandomBrightness{.factor = {-0.2, 0.2}}(x);
  const Symbol contrast = RandomContrast{.factor = {0.2}}(brighter);
  const Symbol inverted = RandomInvert{.factor = {0.1}}(contrast);
  const Symbol grey = RandomGrayscale{.factor = 0.1}(inverted);
  // [end]
  EXPECT_EQ(photo(grey), (Shape{2, 8, 8, 3}));
  // [RandomTranslation, RandomRotation, RandomZoom, RandomShear]
  const Symbol moved = RandomTranslation{.height_factor = {0.1}, .width_factor = {0.1}}(x);
  const Symbol turned = RandomRotation{.factor = {0.05}}(moved);  // of a whole turn
  const Symbol zoomed = RandomZoom{.height_factor = {-0.2, 0.2}}(turned);
  const Symbol sheared = RandomShear{.x_factor = {0.1}}(zoomed);
  // [end]
  EXPECT_EQ(photo(sheared), (Shape{2, 8, 8, 3}));
}

TEST(LayerExamples, Merging) {
  const Examples vector({8});
  const Symbol& x = vector.x;
  // [Add, Subtract, Multiply, Average, Maximum, Minimum]
  const Symbol hidden = Dense{.units = 8}(x);
  const Symbol residual = Add{}({x, hidden});
  const Symbol gated = Multiply{}({x, Subtract{}({residual, hidden})});
  const Symbol mean = Average{}({x, Maximum{}({x, gated}), Minimum{}({x, gated})});
  // [end]
  EXPECT_EQ(vector(mean), (Shape{2, 8}));
  // [Concatenate, Dot]
  const Symbol both = Concatenate{}({x, hidden});  // 16 numbers
  const Symbol cosine = Dot{.axes = 1, .normalize = true}({x, hidden});
  // [end]
  EXPECT_EQ(vector(both), (Shape{2, 16}));
  EXPECT_EQ(vector(cosine), (Shape{2, 1}));
  const Examples sequence({10, 8});
  const Symbol& steps = sequence.x;
  // [MultiHeadAttention]
  const Symbol attended = MultiHeadAttention{.num_heads = 2, .key_dim = 4}({steps, steps});
  // [end]
  EXPECT_EQ(sequence(attended), (Shape{2, 10, 8}));
  // [Attention, AdditiveAttention]
  const Symbol dot = Attention{.use_scale = true}({steps, steps});  // the query, and the value
  const Symbol additive = AdditiveAttention{}({dot, steps});
  // [end]
  EXPECT_EQ(sequence(additive), (Shape{2, 10, 8}));
}

TEST(LayerExamples, Normalization) {
  const Examples vector({8});
  const Symbol& x = vector.x;
  // [Normalization]
  const Symbol standard = Normalization{.mean = {3.5}, .variance = {2.25}}(x);
  // [end]
  EXPECT_EQ(vector(standard), (Shape{2, 8}));
  // [BatchNormalization, LayerNormalization, GroupNormalization, RMSNormalization]
  const Symbol per_batch = BatchNormalization{.momentum = 0.9}(x);
  const Symbol per_example = LayerNormalization{}(per_batch);
  const Symbol per_group = GroupNormalization{.groups = 4}(per_example);
  const Symbol scaled = RMSNormalization{}(per_group);
  // [end]
  EXPECT_EQ(vector(scaled), (Shape{2, 8}));
  // [UnitNormalization, ActivityRegularization]
  const Symbol unit = UnitNormalization{}(x);  // of length 1
  const Symbol penalized = ActivityRegularization{.l1 = 1e-3}(unit);
  // [end]
  EXPECT_EQ(vector(penalized), (Shape{2, 8}));
  // [Dropout, AlphaDropout, GaussianDropout, GaussianNoise]
  const Symbol dropped = Dropout{.rate = 0.5}(x);  // these layers act only in training
  const Symbol selu = AlphaDropout{.rate = 0.1}(dropped);
  const Symbol multiplied = GaussianDropout{.rate = 0.1}(selu);
  const Symbol noisy = GaussianNoise{.stddev = 0.1}(multiplied);
  // [end]
  EXPECT_EQ(vector(noisy), (Shape{2, 8}));
  const Examples sequence({10, 4});
  const Symbol& steps = sequence.x;
  // [SpatialDropout1D]
  const Symbol fewer = SpatialDropout1D{.rate = 0.2}(steps);  // drops whole channels
  // [end]
  EXPECT_EQ(sequence(fewer), (Shape{2, 10, 4}));
}

TEST(LayerExamples, Volumes) {
  const Examples volume({8, 8, 8, 2});
  const Symbol& x = volume.x;
  // [Conv3D, Conv3DTranspose]
  const Symbol filtered = Conv3D{.filters = 4, .kernel_size = 3, .strides = 2}(x);  // 3 × 3 × 3
  const Symbol larger = Conv3DTranspose{.filters = 2, .kernel_size = 2, .strides = 2}(filtered);
  // [end]
  EXPECT_EQ(volume(larger), (Shape{2, 6, 6, 6, 2}));
  // [MaxPooling3D, AveragePooling3D, UpSampling3D]
  const Symbol halved = MaxPooling3D{}(x);            // 4 × 4 × 4
  const Symbol quarter = AveragePooling3D{}(halved);  // 2 × 2 × 2
  const Symbol enlarged = UpSampling3D{.size = 3}(quarter);
  // [end]
  EXPECT_EQ(volume(enlarged), (Shape{2, 6, 6, 6, 2}));
  // [GlobalMaxPooling3D, GlobalAveragePooling3D]
  const Symbol summary = Concatenate{}({GlobalMaxPooling3D{}(x), GlobalAveragePooling3D{}(x)});
  // [end]
  EXPECT_EQ(volume(summary), (Shape{2, 4}));
  // [ZeroPadding3D, Cropping3D]
  const Symbol padded = ZeroPadding3D{.padding = {1, 1, 0, 0, 0, 0}}(x);      // 10 × 8 × 8
  const Symbol cropped = Cropping3D{.cropping = {1, 1, 2, 2, 0, 0}}(padded);  // 8 × 4 × 8
  // [end]
  EXPECT_EQ(volume(cropped), (Shape{2, 8, 4, 8, 2}));
  // [AdaptiveMaxPooling3D, AdaptiveAveragePooling3D]
  const Symbol four = AdaptiveMaxPooling3D{.output_size = {4, 4, 4}}(x);
  const Symbol two = AdaptiveAveragePooling3D{.output_size = {2, 2, 2}}(four);
  // [end]
  EXPECT_EQ(volume(two), (Shape{2, 2, 2, 2, 2}));
  // [SpatialDropout3D]
  const Symbol fewer_channels = SpatialDropout3D{.rate = 0.2}(x);
  // [end]
  EXPECT_EQ(volume(fewer_channels), (Shape{2, 8, 8, 8, 2}));
}

}  // namespace
