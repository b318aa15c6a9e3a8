#pragma once

namespace simile::backend {

// What the compute capability of a card decides: 75 stands for sm_75. The GPU plug-in's table of
// kernels and `simile plan` both read it, and docs/cards.md prints it.

// The lowest capability with machine code in any plug-in, and in the plug-in of the newest toolkit
// (the build's lists of architectures).
inline constexpr int kGpuCodeMin = 61;
inline constexpr int kNewestPluginCodeMin = 75;
// From here on matrix products of fp16 are made on tensor cores.
inline constexpr int kTensorProductsMin = 70;
// From here on the fused scans do too (kernels/device.h); before, they multiply in plain fp32.
inline constexpr int kTensorScanMin = 75;
// From here on copies run in the background, and there is a scan of int8 rows.
inline constexpr int kRingScanMin = 80;
inline constexpr int kInt8ScanMin = 80;

}  // namespace simile::backend
