#pragma once

// The calls of NVTX 3 that the engine makes; emulated_device.h reads what they recorded.

extern "C" {
// Returns the depth of the new range, from 0 on.
int nvtxRangePushA(const char* message);
// Returns the depth of the range that ended, or a negative value where none was open.
int nvtxRangePop();
}
