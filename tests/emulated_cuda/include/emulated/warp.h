#pragma once

// Warp operations. Each function calls WarpRendezvous, which completes when the last lane of the
// mask arrives.

#include "emulated/execution.h"

namespace emulated_cuda {

template <class T>
struct ShuffleLane {
  T value;
  T result;
  int source;
};

template <class T>
T Shuffle(unsigned mask, T value, int source, int line) {
  ShuffleLane<T> lane{value, value, source};
  WarpRendezvous(
      mask, &lane,
      [](void** lanes) {
        for (int i = 0; i < 32; ++i) {
          auto* to = static_cast<ShuffleLane<T>*>(lanes[i]);
          if (to == nullptr) continue;
          const auto* from = static_cast<const ShuffleLane<T>*>(lanes[to->source]);
          if (from != nullptr) {
            to->result = from->value;
          } else {
            Poison(&to->result, sizeof(T));  // undefined on a device
          }
        }
      },
      line);
  return lane.result;
}

template <class Operation, class T>
T WarpReduce(unsigned mask, T value, int line) {
  WarpRendezvous(
      mask, &value,
      [](void** lanes) {
        T total{};
        bool first = true;
        for (int i = 0; i < 32; ++i) {
          if (lanes[i] == nullptr) continue;
          const T mine = *static_cast<const T*>(lanes[i]);
          total = first ? mine : Operation{}(total, mine);
          first = false;
        }
        for (int i = 0; i < 32; ++i) {
          if (lanes[i] != nullptr) *static_cast<T*>(lanes[i]) = total;
        }
      },
      line);
  return value;
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, int>) {  // a device wraps around
      return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
    } else {
      return a + b;
    }
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

inline int Lane() { return static_cast<int>(current->lane); }

}  // namespace emulated_cuda

// NOLINTBEGIN: these names are CUDA's, not ours.

inline void __syncwarp(unsigned mask = ~0U, int line = __builtin_LINE()) {
  emulated_cuda::WarpRendezvous(
      mask, &mask, [](void**) {}, line);
}

// CUDA guarantees no convergence between two warp operations, so only the calling lane is active.
inline unsigned __activemask() { return 1U << emulated_cuda::current->lane; }

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
  const int lane = emulated_cuda::Lane();
  return emulated_cuda::Shuffle(mask, value, (lane & -width) | (source & (width - 1)), line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  int line = __builtin_LINE()) {
  const int lane = emulated_cuda::Lane(), source = lane ^ lane_mask;
  const bool within = source < (lane & -width) + width;
  return emulated_cuda::Shuffle(mask, value, within ? source : lane, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   int line = __builtin_LINE()) {
  const int lane = emulated_cuda::Lane(), source = lane + static_cast<int>(delta);
  const bool within = source < (lane & -width) + width;
  return emulated_cuda::Shuffle(mask, value, within ? source : lane, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 int line = __builtin_LINE()) {
  const int lane = emulated_cuda::Lane(), source = lane - static_cast<int>(delta);
  const bool within = source >= (lane & -width);
  return emulated_cuda::Shuffle(mask, value, within ? source : lane, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  const unsigned mine = predicate != 0 ? 1U << emulated_cuda::Lane() : 0U;
  return emulated_cuda::WarpReduce<emulated_cuda::Or>(mask, mine, line);
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return emulated_cuda::WarpReduce<emulated_cuda::Or>(mask, predicate != 0 ? 1 : 0, line);
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return emulated_cuda::WarpReduce<emulated_cuda::And>(mask, predicate != 0 ? 1 : 0, line);
}

#define EMULATED_REDUCE(name, Operation, type)                                                 \
  inline type __reduce_##name##_sync(unsigned mask, type value, int line = __builtin_LINE()) { \
    return emulated_cuda::WarpReduce<emulated_cuda::Operation>(mask, value, line);             \
  }
EMULATED_REDUCE(add, Add, unsigned)
EMULATED_REDUCE(min, Min, unsigned)
EMULATED_REDUCE(max, Max, unsigned)
EMULATED_REDUCE(add, Add, int)
EMULATED_REDUCE(min, Min, int)
EMULATED_REDUCE(max, Max, int)
EMULATED_REDUCE(and, And, unsigned)
EMULATED_REDUCE(or, Or, unsigned)
EMULATED_REDUCE(xor, Xor, unsigned)
#undef EMULATED_REDUCE

namespace emulated_cuda {

template <class T>
struct MatchLane {
  T value;
  unsigned equal;
};

}  // namespace emulated_cuda

template <class T>
unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  using Lane = emulated_cuda::MatchLane<T>;
  Lane lane{value, 0};
  emulated_cuda::WarpRendezvous(
      mask, &lane,
      [](void** lanes) {
        for (int i = 0; i < 32; ++i) {
          for (int j = 0; j < 32; ++j) {
            if (lanes[i] == nullptr || lanes[j] == nullptr) continue;
            auto* mine = static_cast<Lane*>(lanes[i]);
            if (mine->value == static_cast<Lane*>(lanes[j])->value) mine->equal |= 1U << j;
          }
        }
      },
      line);
  return lane.equal;
}

// NOLINTEND
