#include "runtime/device/cuda/fake_blas.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/device/cuda/fake_driver.h"
#include "runtime/device/cuda/fake_layout.h"
#include "runtime/device/cuda/fake_product.h"

namespace tfjob::device::cuda {
namespace {

constexpr uint64_t kMostElements = 0x7fffffff;  // per dimension
constexpr size_t kNeededWorkspace = 100;        // of each algorithm, if that much is allowed

struct FakePreference {
  uint64_t workspace = 0;
  uint32_t schemes = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

// The problem that an algorithm was chosen for. Stored in the algorithm itself.
struct Choice {
  uint64_t problem = 0;
  uint64_t workspace = 0;
  uint32_t alignments[4] = {};
  uint32_t bias_alignment = 0, aux_alignment = 0;
};
static_assert(sizeof(Choice) <= sizeof(BlasAlgorithm));

struct Library {
  FakeBlasOptions options;
  Mutex mutex;
  std::string refusal ABSL_GUARDED_BY(mutex);
  int handles ABSL_GUARDED_BY(mutex) = 0;
  std::set<uint64_t> loaded ABSL_GUARDED_BY(mutex);  // the problems whose algorithms have run
};
Library* library = nullptr;

BlasResult Refuse(BlasResult result, std::string why) {
  MutexLock lock(library->mutex);
  library->refusal = std::move(why);
  return result;
}

template <typename... Parts>
BlasResult Invalid(const Parts&... parts) {
  return Refuse(kBlasInvalidValue, StrCat(parts...));
}

template <typename Object, typename Handle>
const Object& Get(Handle handle) {
  return *reinterpret_cast<const Object*>(handle);
}

template <typename Object, typename Handle>
BlasResult New(Handle* handle, Object object) {
  MutexLock lock(library->mutex);
  ++library->handles;
  *handle = reinterpret_cast<Handle>(new Object(std::move(object)));
  return kBlasSuccess;
}

template <typename Object, typename Handle>
BlasResult Delete(Handle handle) {
  MutexLock lock(library->mutex);
  --library->handles;
  delete reinterpret_cast<Object*>(handle);
  return kBlasSuccess;
}

// Sets an attribute. Its size must be that of the field.
template <typename Field>
BlasResult SetField(Field& field, unsigned attribute, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof field)
    return Invalid("attribute ", attribute, " has ", bytes, " bytes, but takes ", sizeof field);
  std::memcpy(&field, value, bytes);
  return kBlasSuccess;
}

BlasResult UnknownAttribute(unsigned attribute) {
  return Refuse(kBlasNotSupported, StrCat("attribute ", attribute, " is not simulated"));
}

size_t GetVersion() {
  return 130100;
}

const char* GetStatusName(BlasResult result) {
  switch (result) {
    case kBlasSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case kBlasInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kBlasNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

BlasResult Create(BlasHandle* handle) {
  return New(handle, 0);
}
BlasResult Destroy(BlasHandle handle) {
  return Delete<int>(handle);
}

BlasResult MatmulDescCreate(BlasProductHandle* handle, unsigned compute, unsigned scale) {
  if (scale != kBlasFloat32 || (compute != kBlasComputeFloat32 && compute != kBlasComputeTf32))
    return Refuse(kBlasNotSupported, StrCat("types ", compute, " and ", scale));
  return New(handle, FakeProduct{.compute = compute});
}
BlasResult MatmulDescDestroy(BlasProductHandle handle) {
  return Delete<FakeProduct>(handle);
}

BlasResult MatmulDescSetAttribute(BlasProductHandle handle, unsigned attribute, const void* value,
                                  size_t bytes) {
  auto& product = const_cast<FakeProduct&>(Get<FakeProduct>(handle));
  switch (attribute) {
    case kBlasTransposeA:
      return SetField(product.transpose_a, attribute, value, bytes);
    case kBlasTransposeB:
      return SetField(product.transpose_b, attribute, value, bytes);
    case kBlasEpilogue:
      return SetField(product.epilogue, attribute, value, bytes);
    case kBlasBiasPointer:
      return SetField(product.bias, attribute, value, bytes);
    case kBlasAuxPointer:
      return SetField(product.aux, attribute, value, bytes);
    case kBlasAuxLd:
      return SetField(product.aux_ld, attribute, value, bytes);
    default:
      return UnknownAttribute(attribute);
  }
}

BlasResult MatrixLayoutCreate(BlasLayoutHandle* handle, unsigned type, uint64_t rows, uint64_t cols,
                              int64_t ld) {
  if (type != kBlasFloat32 && type != kBlasBFloat16 && type != kBlasFloat16)
    return Refuse(kBlasNotSupported, StrCat("type ", type));
  if (rows == 0 || cols == 0 || rows > kMostElements || cols > kMostElements)
    return Invalid("a matrix of ", rows, " rows and ", cols, " columns");
  if (ld < static_cast<int64_t>(rows))
    return Invalid("a leading dimension of ", ld, " for ", rows, " rows");
  return New(handle, FakeLayout{.type = type,
                                .rows = static_cast<int64_t>(rows),
                                .cols = static_cast<int64_t>(cols),
                                .ld = ld});
}
BlasResult MatrixLayoutDestroy(BlasLayoutHandle handle) {
  return Delete<FakeLayout>(handle);
}

BlasResult MatrixLayoutSetAttribute(BlasLayoutHandle handle, unsigned attribute, const void* value,
                                    size_t bytes) {
  auto& layout = const_cast<FakeLayout&>(Get<FakeLayout>(handle));
  switch (attribute) {
    case kBlasBatchCount:
      return SetField(layout.batch, attribute, value, bytes);
    case kBlasBatchStride:
      return SetField(layout.stride, attribute, value, bytes);
    default:
      return UnknownAttribute(attribute);
  }
}

BlasResult MatmulPreferenceCreate(BlasPreferenceHandle* handle) {
  return New(handle, FakePreference());
}
BlasResult MatmulPreferenceDestroy(BlasPreferenceHandle handle) {
  return Delete<FakePreference>(handle);
}

BlasResult MatmulPreferenceSetAttribute(BlasPreferenceHandle handle, unsigned attribute,
                                        const void* value, size_t bytes) {
  auto& preference = const_cast<FakePreference&>(Get<FakePreference>(handle));
  if (attribute == kBlasMaxWorkspace)
    return SetField(preference.workspace, attribute, value, bytes);
  if (attribute == kBlasReductionSchemes)
    return SetField(preference.schemes, attribute, value, bytes);
  if (attribute >= kBlasAlignmentA && attribute < kBlasAlignmentA + 4) {
    return SetField(preference.alignments[attribute - kBlasAlignmentA], attribute, value, bytes);
  }
  return UnknownAttribute(attribute);
}

// Returns whether no element belongs to two matrices of the batch: the matrices are stored one
// after another, or their columns are interleaved.
bool AreDistinct(const FakeLayout& d) {
  const int64_t matrix = (d.cols - 1) * d.ld + d.rows;
  return d.batch == 1 || d.stride >= matrix ||
         (d.stride >= d.rows && d.ld >= (d.batch - 1) * d.stride + d.rows);
}

// The manual lists the valid combinations of types ("cublasLtMatmul"). Only those that this project
// uses are accepted.
BlasResult CheckTypes(const FakeProblem& p) {
  const bool half = p.a.type != kBlasFloat32;
  if (p.a.type != p.b.type || (p.d.type != p.a.type && p.d.type != kBlasFloat32))
    return Refuse(kBlasNotSupported, StrCat("factors of types ", p.a.type, " and ", p.b.type,
                                            " with a result of type ", p.d.type));
  if (half && p.product.compute != kBlasComputeFloat32)
    return Refuse(kBlasNotSupported, StrCat("factors of type ", p.a.type,
                                            " with a computation of type ", p.product.compute));
  return kBlasSuccess;
}

BlasResult CheckShapes(const FakeProblem& p) {
  const auto rows_of = [](const FakeLayout& l, int32_t transposed) {
    return transposed != 0 ? l.cols : l.rows;
  };
  const auto cols_of = [](const FakeLayout& l, int32_t transposed) {
    return transposed != 0 ? l.rows : l.cols;
  };
  for (const int32_t transposed : {p.product.transpose_a, p.product.transpose_b})
    if (transposed != 0 && transposed != 1) return Invalid("a transposition of ", transposed);
  if (p.c != p.d) return Invalid("the layouts of C and D differ");
  if (rows_of(p.a, p.product.transpose_a) != p.d.rows ||
      cols_of(p.b, p.product.transpose_b) != p.d.cols ||
      cols_of(p.a, p.product.transpose_a) != rows_of(p.b, p.product.transpose_b)) {
    return Invalid("A is ", p.a.rows, " x ", p.a.cols, ", B ", p.b.rows, " x ", p.b.cols, ", D ",
                   p.d.rows, " x ", p.d.cols, " before they are transposed");
  }
  for (const FakeLayout* layout : {&p.a, &p.b, &p.d}) {
    if (layout->batch != p.d.batch || layout->batch < 1)
      return Invalid("a batch of ", layout->batch, " matrices, and one of ", p.d.batch);
    if (layout->stride < 0) return Invalid("a batch stride of ", layout->stride);
  }
  if (!AreDistinct(p.d)) return Invalid("the matrices of D overlap");
  return kBlasSuccess;
}

// Checks the auxiliary matrix, which only GELU and its gradient use.
BlasResult CheckAux(const FakeProblem& problem) {
  const FakeProduct& product = problem.product;
  if (product.has_aux() != (product.aux != nullptr))
    return Invalid(
        "epilogue ", product.epilogue,
        product.has_aux() ? " without an auxiliary matrix" : " with an auxiliary matrix");
  if (!product.has_aux()) return kBlasSuccess;
  if (product.aux_ld < problem.d.rows || product.aux_ld % 8 != 0)
    return Invalid("a leading dimension of ", product.aux_ld, " of the auxiliary matrix, for ",
                   problem.d.rows, " rows: it must be a multiple of 8");
  if (problem.d.batch != 1) return Invalid("epilogue ", product.epilogue, " of a batch");
  return kBlasSuccess;
}

BlasResult CheckEpilogue(const FakeProblem& problem) {
  const FakeProduct& product = problem.product;
  constexpr uint32_t kKnown[] = {
      kBlasEpilogueNone,         kBlasEpilogueRelu,          kBlasEpilogueBias,
      kBlasEpilogueReluBias,     kBlasEpilogueGelu,          kBlasEpilogueGeluBias,
      kBlasEpilogueGeluGradient, kBlasEpilogueBiasGradientA, kBlasEpilogueBiasGradientB};
  if (std::ranges::find(kKnown, product.epilogue) == std::end(kKnown))
    return Refuse(kBlasNotSupported, StrCat("epilogue ", product.epilogue));
  const bool needs_bias = product.has_bias() || product.has_sums();
  if (needs_bias != (product.bias != nullptr))
    return Invalid("epilogue ", product.epilogue, needs_bias ? " without a bias" : " with a bias");
  // Each product of a batch would need its own sums. The attribute that sets the distance between
  // them is not simulated.
  if (product.has_sums() && problem.d.batch != 1)
    return Invalid("epilogue ", product.epilogue, " of a batch");
  return CheckAux(problem);
}

// Returns a hash of everything that the choice of an algorithm depends on.
uint64_t Digest(const FakeProblem& p) {
  uint64_t digest = 1469598103934665603U;  // FNV-1a
  const auto add = [&digest](int64_t value) {
    digest = (digest ^ static_cast<uint64_t>(value)) * 1099511628211U;
  };
  for (const int64_t value :
       {int64_t{p.product.compute}, int64_t{p.product.transpose_a}, int64_t{p.product.transpose_b},
        int64_t{p.product.epilogue}, p.product.aux_ld})
    add(value);
  for (const FakeLayout* l : {&p.a, &p.b, &p.c, &p.d})
    for (const int64_t value :
         {int64_t{l->type}, l->rows, l->cols, l->ld, int64_t{l->batch}, l->stride})
      add(value);
  return digest;
}

uint32_t AlignmentOf(const void* address) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  return number == 0 ? 256 : std::min(256U, 1U << std::min(std::countr_zero(number), 8));
}

FakeProblem ProblemOf(BlasProductHandle product, BlasLayoutHandle a, BlasLayoutHandle b,
                      BlasLayoutHandle c, BlasLayoutHandle d) {
  return {Get<FakeProduct>(product), Get<FakeLayout>(a), Get<FakeLayout>(b), Get<FakeLayout>(c),
          Get<FakeLayout>(d)};
}

BlasResult MatmulAlgoGetHeuristic(BlasHandle, BlasProductHandle product, BlasLayoutHandle a,
                                  BlasLayoutHandle b, BlasLayoutHandle c, BlasLayoutHandle d,
                                  BlasPreferenceHandle preference, int requested,
                                  BlasHeuristic* results, int* returned) {
  const FakeProblem p = ProblemOf(product, a, b, c, d);
  const auto& wanted = Get<FakePreference>(preference);
  *returned = 0;
  for (const BlasResult result : {CheckTypes(p), CheckShapes(p), CheckEpilogue(p)})
    if (result != kBlasSuccess) return result;
  if (requested < 1) return Invalid("no algorithm is requested");
  if (wanted.schemes != kBlasReduceInComputeType)
    return Invalid("reduction schemes ", wanted.schemes, ", some of which add in any order");
  Choice choice{.problem = Digest(p),
                .workspace = wanted.workspace >= kNeededWorkspace ? kNeededWorkspace : 0,
                .bias_alignment = AlignmentOf(p.product.bias),
                .aux_alignment = AlignmentOf(p.product.aux)};
  std::ranges::copy(wanted.alignments, choice.alignments);
  *results = {.workspace_bytes = choice.workspace};
  std::memcpy(&results->algorithm, &choice, sizeof choice);
  *returned = 1;
  return kBlasSuccess;
}

BlasResult CheckCall(const FakeCall& call, const Choice& choice, const void* workspace,
                     size_t bytes) {
  if (choice.problem != Digest(call.problem))
    return Invalid("the algorithm was chosen for other descriptors");
  if (bytes < choice.workspace)
    return Invalid("a workspace of ", bytes, " bytes; the algorithm needs ", choice.workspace);
  if (bytes > 0 && reinterpret_cast<uintptr_t>(workspace) % kBlasWorkspaceAlignment != 0)
    return Invalid("a workspace that is not aligned to ", kBlasWorkspaceAlignment, " bytes");
  const void* const addresses[] = {call.a, call.b, call.d, call.d};
  for (size_t i = 0; i < std::size(addresses); ++i) {
    if (addresses[i] == nullptr) return Invalid("matrix ", i, " has no address");
    if (AlignmentOf(addresses[i]) < choice.alignments[i])
      return Invalid("matrix ", i, " is aligned to ", AlignmentOf(addresses[i]),
                     " bytes, but the algorithm needs ", choice.alignments[i]);
  }
  if (call.bias != nullptr && AlignmentOf(call.bias) < choice.bias_alignment)
    return Invalid("the bias is aligned to ", AlignmentOf(call.bias),
                   " bytes, but the algorithm needs ", choice.bias_alignment);
  if (call.aux != nullptr && AlignmentOf(call.aux) < choice.aux_alignment)
    return Invalid("the auxiliary matrix is aligned to ", AlignmentOf(call.aux),
                   " bytes, but the algorithm needs ", choice.aux_alignment);
  return kBlasSuccess;
}

Operation OperationOf(const FakeCall& call, void* workspace, size_t workspace_bytes) {
  const FakeProblem& p = call.problem;
  Operation operation{.name = "cublasLtMatmul",
                      .accesses = {{call.a, p.a.bytes(), false},
                                   {call.b, p.b.bytes(), false},
                                   {call.d, p.d.bytes(), true}},
                      .run = {}};
  if (call.bias != nullptr) {
    operation.accesses.push_back({call.bias, p.d.bytes(call.bias_count()), p.product.has_sums()});
  }
  const size_t aux = operation.accesses.size();
  if (call.aux != nullptr)
    operation.accesses.push_back({call.aux, p.aux().bytes(), p.product.has_gelu()});
  if (workspace_bytes > 0) operation.accesses.push_back({workspace, workspace_bytes, true});
  operation.run = [call, aux, workspace_bytes](std::span<void* const> storage) {
    FakeCall here = call;
    here.a = storage[0];
    here.b = storage[1];
    here.d = storage[2];
    if (here.bias != nullptr) here.bias = storage[3];
    if (here.aux != nullptr) here.aux = storage[aux];
    // Overwrites the workspace, because callers must not depend on its contents before or after the
    // call.
    if (workspace_bytes > 0) std::memset(storage.back(), 0xff, workspace_bytes);
    ComputeFakeProduct(here, {library->options.reads, library->options.wrote});
  };
  return operation;
}

// Loads the algorithm if it has not run before. Returns false if it cannot be loaded, because the
// stream is capturing.
bool Load(uint64_t problem, bool capturing) {
  MutexLock lock(library->mutex);
  if (library->loaded.contains(problem)) return true;
  if (!capturing) library->loaded.insert(problem);
  return !capturing;
}

BlasResult Matmul(BlasHandle, BlasProductHandle product, const void* alpha, const void* a,
                  BlasLayoutHandle a_layout, const void* b, BlasLayoutHandle b_layout,
                  const void* beta, const void* c, BlasLayoutHandle c_layout, void* d,
                  BlasLayoutHandle d_layout, const BlasAlgorithm* algorithm, void* workspace,
                  size_t workspace_bytes, StreamHandle stream) {
  FakeCall call{.problem = ProblemOf(product, a_layout, b_layout, c_layout, d_layout),
                .alpha = *static_cast<const float*>(alpha),
                .beta = *static_cast<const float*>(beta),
                .a = a,
                .b = b,
                .bias = Get<FakeProduct>(product).bias,
                .aux = Get<FakeProduct>(product).aux,
                .d = d};
  if (c != d) return Refuse(kBlasNotSupported, "C and D at different addresses");
  for (const BlasResult result :
       {CheckTypes(call.problem), CheckShapes(call.problem), CheckEpilogue(call.problem)})
    if (result != kBlasSuccess) return result;
  Choice choice;
  std::memcpy(static_cast<void*>(&choice), algorithm, sizeof choice);
  if (const BlasResult result = CheckCall(call, choice, workspace, workspace_bytes);
      result != kBlasSuccess)
    return result;
  if (!Load(choice.problem * 31 + choice.alignments[0], library->options.captures(stream)))
    return Invalid("a stream captures the first run of an algorithm");
  const Result submitted =
      library->options.submit(OperationOf(call, workspace, choice.workspace), stream);
  return submitted == kSuccess ? kBlasSuccess
                               : Invalid("the driver refuses the product with ", submitted);
}

}  // namespace

const BlasApi& FakeBlas(FakeBlasOptions options) {
  delete library;
  library = new Library{.options = std::move(options)};
  if (!library->options.submit) library->options.submit = SubmitToFakeDriver;
  if (!library->options.captures) library->options.captures = FakeDriverCaptures;
#define TFJOB_CUDA_FAKE(name, symbol, ...) .name = name,
  static constexpr BlasApi kBlas{TFJOB_CUDA_BLAS_FUNCTIONS(TFJOB_CUDA_FAKE)};
#undef TFJOB_CUDA_FAKE
  return kBlas;
}

std::string FakeBlasRefusal() {
  MutexLock lock(library->mutex);
  return library->refusal;
}

int FakeBlasHandles() {
  MutexLock lock(library->mutex);
  return library->handles;
}

}  // namespace tfjob::device::cuda
