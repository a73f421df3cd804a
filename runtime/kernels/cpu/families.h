// Declares one function per family of ops, which returns the family's entries for the kernel table.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

KernelTable::Entries UnaryKernels();      // Relu … ClipByValue, and the activations' gradients
KernelTable::Entries BroadcastKernels();  // Add … Pow, comparisons, Select, BroadcastTo
KernelTable::Entries BiasKernels();       // BiasAdd, BiasAddGrad
KernelTable::Entries MatMulKernels();     // MatMul, FusedMatMul, MatMulAccumulate
KernelTable::Entries BatchMatMulKernels();
KernelTable::Entries SoftmaxKernels();  // Softmax, SoftmaxGrad, LogSoftmax, the two cross entropies
KernelTable::Entries ReduceKernels();   // Sum, Mean, Max, Min, ArgMax
KernelTable::Entries MoveKernels();  // Reshape, Transpose, Identity, Const, Fill, Assign, AssignAdd
KernelTable::Entries SliceKernels();        // Concat, Slice, Pad
KernelTable::Entries GatherKernels();       // Gather, and the sums for its gradient
KernelTable::Entries ConvolutionKernels();  // Conv2D and its gradients
KernelTable::Entries PoolingKernels();      // MaxPool, AvgPool and their gradients
KernelTable::Entries ImageTransformKernels();
KernelTable::Entries BatchNormKernels();  // FusedBatchNorm and its gradient
KernelTable::Entries CastKernels();
KernelTable::Entries NumberKernels();  // CheckNumerics
KernelTable::Entries RandomKernels();  // Dropout, DropoutGrad and the initialisers
KernelTable::Entries FusedElementwiseKernels();

}  // namespace tfjob::kernels::cpu
