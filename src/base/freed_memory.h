#pragma once

namespace simile::base {

// Gives memory that was freed back to the kernel. The allocator keeps it for later allocations,
// which after a load are few: what a load needed for a moment would stay resident.
// Cost: a pass over the free blocks of each of the allocator's arenas, and one call to the kernel
// for each that has whole pages; for after large work, not for requests. Does nothing where the
// allocator has no such call.
void ReturnFreedMemory();

// Makes blocks from 4 MiB on mappings of their own, which return to the kernel when they are freed.
// By itself the allocator takes ever larger ones from its arenas, once one was freed, and a block
// that lives keeps the memory below it from being returned: a server grew with every reload.
// Smaller ones, replies among them, stay in the arenas. For a program that serves, before it has
// threads.
void MapLargeBlocks();

}  // namespace simile::base
