#pragma once

namespace simile::base {

// Gives memory that was freed back to the kernel. The allocator keeps it for later allocations,
// which after a load are few: what a load needed for a moment would stay resident.
// Cost: a pass over the free blocks of each of the allocator's arenas, and one call to the kernel
// for each that has whole pages; for after large work, not for requests. Does nothing where the
// allocator has no such call.
void ReturnFreedMemory();

// Gives each block of 4 MiB or more a mapping of its own, which returns to the kernel when the
// block is freed. By default the allocator raises this limit whenever such a block is freed. Larger
// blocks then come from its heaps, where a block in use keeps the free memory below it from the
// kernel: a server grew with every reload. Smaller blocks, replies among them, stay in the heaps.
// REQUIRES: the program has one thread.
void MapLargeBlocks();

}  // namespace simile::base
