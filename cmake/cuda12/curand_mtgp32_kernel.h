#pragma once

// Nothing: clang includes this header of cuRAND with every CUDA source, and the kernels draw no random numbers.
